// SPDX-License-Identifier: Apache-2.0
#include "backends.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/words.h"
#include "exec/caches.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_inventory.h"
#include "exec/cuda/nccl_backend.h"
#include "exec/free_memory.h"
#include "exec/host/host_backend.h"
#include "exec/mpi/mpi_start.h"
#include "probe/survey.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

std::unique_ptr<Backend> make_simulator(const DeviceChoice&) {
  return std::make_unique<Simulator>();
}

std::unique_ptr<Backend> make_host(const DeviceChoice&) { return std::make_unique<HostBackend>(); }

std::unique_ptr<Backend> make_cuda(const DeviceChoice& choice) {
  return std::make_unique<CudaBackend>(
      choice.devices, choice.as_placed ? UnnamedDevices::as_placed : UnnamedDevices::in_turn);
}

std::unique_ptr<Backend> make_nccl(Backend& programs) {
  return std::make_unique<NcclBackend>(dynamic_cast<CudaBackend&>(programs));
}

std::optional<GpuChoice> gpus_of(const DeviceChoice& choice) {
  if (!choice.gpu_memory) return std::nullopt;
  return GpuChoice{choice.devices, choice.as_placed, *choice.gpu_memory};
}

std::unique_ptr<Backend> make_mpi(const DeviceChoice& choice) {
  return make_mpi_backend(gpus_of(choice));
}

Inventory inventory_of_gpus(const DeviceChoice& choice, int ranks) {
  Inventory inventory = cuda_inventory(choice.devices);
  if (ranks > 0) inventory.sharing = ranks;
  return inventory;
}

Inventory inventory_of_threads(const DeviceChoice&, int ranks) {
  Inventory inventory = host_inventory(ranks);
  inventory.cache_bytes = last_caches_bytes();
  inventory.devices.front().free_bytes = as_bytes(free_memory_bytes());
  return inventory;
}

/// Of the processes that there are: as many as were started.
Inventory inventory_by_mpi(const DeviceChoice& choice, int) {
  return mpi_inventory(gpus_of(choice));
}

}  // namespace

const std::vector<BackendEntry>& all_backends() {
  static const std::vector<BackendEntry> all = {
      {.name = "sim",
       .meaning = "predicts times on a machine you may not own (espalier sim)",
       .executes = false,
       .make = make_simulator},
      {.name = "host",
       .meaning = "threads and memory of this computer (espalier exec)",
       .runs_on = "threads of this computer",
       .make = make_host,
       .inventory = inventory_of_threads},
      {.name = "cuda",
       .meaning = "NVIDIA GPUs of this computer (espalier exec --backend cuda)",
       .runs_on = "GPUs of this computer",
       .has_devices = true,
       .make = make_cuda,
       .count_devices = cuda_gpus,
       .inventory = inventory_of_gpus,
       .library = "nccl",
       .require_library = require_nccl,
       .make_library = make_nccl},
      {.name = "mpi",
       .meaning = "a process for each rank (mpirun -n 8 espalier exec --backend mpi; or torchrun)",
       .runs_on = "processes",
       .may_use_gpus = true,
       .make = make_mpi,
       .inventory = inventory_by_mpi,
       .connect = connect_mpi,
       .processes = mpi_processes,
       .tells = mpi_tells},
  };
  return all;
}

std::string_view measured_in_place_of_gpus(const BackendEntry& entry, const DeviceChoice& choice) {
  return entry.has_devices || choice.gpu_memory ? std::string_view() : entry.runs_on;
}

std::vector<const BackendEntry*> executing_backends() {
  std::vector<const BackendEntry*> executing;
  for (const BackendEntry& entry : all_backends()) {
    if (entry.executes) executing.push_back(&entry);
  }
  return executing;
}

const BackendEntry& find_backend(std::string_view name) {
  std::vector<std::string> names;
  for (const BackendEntry& entry : all_backends()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  throw Error(ErrorKind::usage, "unknown backend " + quote(name), did_you_mean(name, names));
}

ScenarioBackends scenario_backends() {
  const auto make_executor = [](const std::string& name) {
    const BackendEntry& entry = find_backend(name);
    if (!entry.executes) {
      throw Error(
          ErrorKind::usage,
          fmt::format("back end {} predicts, and 'execute' needs real data", quote(name)),
          fmt::format("a back end that executes, such as {}", executing_backends().front()->name));
    }
    if (entry.processes != nullptr) {
      throw Error(
          ErrorKind::usage,
          fmt::format("scenarios run in one process, and back end {} in several", quote(name)),
          "espalier exec takes it");
    }
    return entry.make({});
  };
  return {[] { return make_simulator({}); }, make_executor};
}

}  // namespace espalier
