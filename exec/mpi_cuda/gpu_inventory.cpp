// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_inventory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/cuda_inventory.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/memory.h"
#include "exec/cuda/wiring.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/watchdog.h"
#include "exec/mpi_cuda/gpu_of_process.h"
#include "exec/mpi_cuda/routes.h"
#include "exec/mpi_cuda/shared_memory.h"
#include "ir/program.h"
#include "run/options.h"

namespace espalier {
namespace {

/// A process's GPU, and how messages leave it.
struct Described {
  DescribedGpu gpu;
  std::vector<cuda::Route> to;  ///< by rank
};

/// Of the messages that a program would send: found with as little memory as can be mapped.
std::vector<cuda::Route> routes_from(const Processes& processes, const GpuChoice& choice, int gpu) {
  if (choice.transport == GpuTransport::nccl) {
    return std::vector<cuda::Route>(processes.places.size(), cuda::Route::nccl);
  }
  cuda::DeviceBytes block;
  agree(processes, refusal_of([&] {
          cuda::use_gpu(gpu);
          block = cuda::allocate(cuda::kSharedBlock, gpu, "a block to be mapped");
        }),
        {});
  cuda::SharedMemory shared(gpu, {static_cast<std::byte*>(block.get())});
  std::vector<cuda::Route> to =
      cuda::settle_routes(processes, choice.transport, true, shared).routes.to;
  // Nobody frees what another still maps.
  shared.unmap();
  agree(processes, {}, {});
  return to;
}

void pack(const Described& mine, Packed& packed) {
  const ProbedDevice& device = mine.gpu.device;
  packed.put(device.name);
  packed.put(device.place);
  packed.put(device.numa);
  packed.put(device.free_bytes);
  packed.put(device.copy_engines);
  packed.put(device.pcie_kind);
  packed.put(device.pcie_gbps);
  packed.put(device.switches.size());
  for (const std::string& name : device.switches) packed.put(name);
  packed.put(mine.gpu.bus_id);
  packed.put(mine.gpu.nvlinks.size());
  for (const NvlinkEnd& link : mine.gpu.nvlinks) {
    packed.put(link.to_switch);
    packed.put(link.peer_bus_id);
    packed.put(link.generation);
  }
  packed.put(mine.to);
}

Described unpack(Unpacking& unpacking) {
  Described other;
  ProbedDevice& device = other.gpu.device;
  std::size_t count = 0;
  unpacking.get(device.name);
  unpacking.get(device.place);
  unpacking.get(device.numa);
  unpacking.get(device.free_bytes);
  unpacking.get(device.copy_engines);
  unpacking.get(device.pcie_kind);
  unpacking.get(device.pcie_gbps);
  unpacking.get(count);
  device.switches.resize(count);
  for (std::string& name : device.switches) unpacking.get(name);
  unpacking.get(other.gpu.bus_id);
  unpacking.get(count);
  other.gpu.nvlinks.resize(count);
  for (NvlinkEnd& link : other.gpu.nvlinks) {
    unpacking.get(link.to_switch);
    unpacking.get(link.peer_bus_id);
    unpacking.get(link.generation);
  }
  unpacking.get(other.to);
  return other;
}

std::vector<Described> gather(const Processes& processes, const Described& mine) {
  Packed packed;
  pack(mine, packed);
  const Meeting meeting(processes.board);
  std::vector<Described> all;
  for (const auto& bytes : gather_from_all(processes.transport, packed.bytes())) {
    Unpacking unpacking(bytes);
    all.push_back(unpack(unpacking));
  }
  return all;
}

/// What all have to be asked alike.
Fingerprint asked(const Processes& processes, const GpuChoice& choice) {
  Fingerprint print;
  print.build = processes.build;
  print.memory = hash_bytes(fmt::format("cuda, transport {}", to_string(choice.transport)));
  print.question = hash_bytes(fmt::format("{}", fmt::join(choice.devices, ",")));
  return print;
}

bool passes_host(cuda::Route route) { return route == cuda::Route::staged; }

/// The bundles of the first host between GPUs whose messages take them: those that go through the
/// memory of the host use no NVLink.
std::vector<ProbedNvlink> nvlinks_of(const std::vector<Described>& all,
                                     const Inventory& inventory) {
  std::vector<std::string> bus_ids;
  std::vector<std::vector<NvlinkEnd>> ends;
  const int each = inventory.ranks_of_a_host();
  for (int rank = 0; rank < each; ++rank) {
    bus_ids.push_back(all[static_cast<std::size_t>(rank)].gpu.bus_id);
    ends.push_back(all[static_cast<std::size_t>(rank)].gpu.nvlinks);
  }
  std::vector<ProbedNvlink> nvlinks = bundle_nvlinks(bus_ids, ends);
  const auto is_idle = [&](const ProbedNvlink& link) {
    const auto& can_map = inventory.can_access[static_cast<std::size_t>(link.device)];
    if (link.peer != ProbedNvlink::kSwitch) {
      return !can_map[static_cast<std::size_t>(link.peer)];
    }
    for (int other = 0; other < each; ++other) {
      if (other != link.device && can_map[static_cast<std::size_t>(other)]) return false;
    }
    return true;
  };
  std::erase_if(nvlinks, is_idle);
  return nvlinks;
}

}  // namespace

Inventory gpu_inventory(const Processes& processes, const GpuChoice& choice) {
  // A driver may hang.
  const Program nothing;
  const Watched watched(processes.watchdog, nothing, RunOptions{}.timeout_s);
  Described mine;
  std::optional<cuda::Gpus> opened;
  int gpu = 0;
  agree(processes, refusal_of([&] {
          gpu = cuda::gpu_of_process(processes, choice, {});
          opened = cuda::open_gpus({gpu});
          mine.gpu = describe_gpu(gpu);
        }),
        asked(processes, choice));
  const std::vector<cuda::GpuPlace> places = cuda::gather_places(
      processes, cuda::place_of(processes, opened->all.front(), choice.nccl_host));
  cuda::require_gpus_for(processes, choice, places);
  mine.to = routes_from(processes, choice, gpu);
  const std::vector<Described> all = gather(processes, mine);
  std::vector<ProbedProcess> probed;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ProbedProcess& process = probed.emplace_back();
    process.host = processes.board.group(static_cast<int>(rank));
    process.device = all[rank].gpu.device;
    process.bus_id = all[rank].gpu.bus_id;
    for (const cuda::Route route : all[rank].to) process.can_map.push_back(!passes_host(route));
  }
  Inventory inventory = inventory_of_gpu_processes(probed);
  if (!inventory.is_shared()) inventory.nvlinks = nvlinks_of(all, inventory);
  return inventory;
}

}  // namespace espalier
