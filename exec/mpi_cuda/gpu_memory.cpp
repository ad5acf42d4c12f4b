// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exec/cuda/calls.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/host_nodes.h"
#include "exec/cuda/memory.h"
#include "exec/cuda/numbering.h"
#include "exec/host/numa.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi_cuda/gpu_buffers.h"
#include "exec/mpi_cuda/gpu_of_process.h"
#include "exec/mpi_cuda/gpu_steps.h"
#include "exec/mpi_cuda/nccl_link.h"
#include "exec/mpi_cuda/placement_check.h"
#include "exec/mpi_cuda/routes.h"
#include "exec/mpi_cuda/shared_memory.h"

namespace espalier {
namespace {

using cuda::Access;
using cuda::Gpus;
using cuda::PlaceMemory;

/// Host memories are pinned memory, which other processes do not map.
bool may_map(const Program& program, const GpuChoice& choice) {
  return choice.transport == GpuTransport::automatic && program.hosts == 0;
}

Access access_of(const Program& program, const GpuChoice& choice) {
  return may_map(program, choice) ? Access::shared : Access::own;
}

/// NCCL's link, which takes long to make: kept from run to run.
class NcclRoute {
 public:
  /// All processes call it together. Throws what NcclLink::make throws.
  void connect(const Processes& processes, int gpu, const std::vector<cuda::GpuPlace>& places) {
    std::vector<std::string> bus_ids;
    for (const cuda::GpuPlace& place : places) bus_ids.push_back(place.bus_id);
    if (link_ != nullptr && bus_ids == bus_ids_) return;
    link_.reset();
    link_ = cuda::NcclLink::make(processes, gpu);
    bus_ids_ = std::move(bus_ids);
  }
  const std::shared_ptr<cuda::NcclLink>& link() const { return link_; }
  /// \pre it is connected
  cuda::SettledRoutes routes(std::size_t processes) const {
    const std::vector<cuda::Route> all(processes, cuda::Route::nccl);
    return {{all, all}, {"messages from GPU to GPU: " + link_->name()}};
  }

 private:
  std::shared_ptr<cuda::NcclLink> link_;
  std::vector<std::string> bus_ids_;  ///< by process
};

/// What a process has of a program in the memory of its GPU.
class GpuPart : public ProcessPart {
 public:
  GpuPart(const HostData& data, const Target& target, const LanePrograms& lowered,
          const MessagePlan& plan, int gpu, const Processes& processes, const GpuChoice& choice,
          NcclRoute& nccl, cuda::PlacementCheck& placement_check)
      : processes_(processes),
        target_(target),
        choice_(choice),
        nccl_(nccl),
        placement_check_(placement_check),
        kind_{data.program, data.layout, data.type, data.op},
        gpus_(cuda::open_gpu_of_process(data.program, processes.transport.process(), gpu)),
        host_nodes_(cuda::host_nodes(data.program, target, numa_nodes(allowed_processors()))),
        buffers_(kind_, lowered, plan, gpus_, host_nodes_, access_of(data.program, choice)),
        shared_(gpu, buffers_.blocks()),
        steps_(plan, kind_, buffers_, processes.transport),
        place_(cuda::place_of(processes, buffers_.gpu(), choice.nccl_host)) {}

  void fill() override { buffers_.places().fill(); }
  void fill_inputs() override { buffers_.places().fill_inputs(); }
  Damage check() override { return buffers_.places().check(cuda::Checked::everything); }
  StepCarrier& steps() override { return steps_; }

  std::vector<std::string> connect() override {
    const std::vector<cuda::GpuPlace> places = cuda::gather_places(processes_, place_);
    std::vector<std::string> checked;
    if (choice_.as_placed && target_.router != nullptr) {
      checked = placement_check_.check(processes_, target_, places, !choice_.devices.empty());
    }
    cuda::require_gpus_for(processes_, choice_, places);
    const bool by_nccl = choice_.transport == GpuTransport::nccl;
    if (by_nccl) nccl_.connect(processes_, buffers_.gpu().number, places);
    const cuda::SettledRoutes settled =
        by_nccl ? nccl_.routes(places.size())
                : cuda::settle_routes(processes_, choice_.transport,
                                      may_map(kind_.program, choice_), shared_);
    agree(processes_, refusal_of([&] { steps_.use(settled.routes, {shared_, nccl_.link()}); }), {});
    std::vector<std::string> texts;
    for (const cuda::GpuPlace& place : places) texts.push_back(place.text);
    std::vector<std::string> notes = describe_places(texts);
    notes.insert(notes.end(), settled.notes.begin(), settled.notes.end());
    notes.insert(notes.end(), checked.begin(), checked.end());
    return notes;
  }

  /// Nobody frees what another still maps.
  void disconnect() override {
    shared_.unmap();
    agree(processes_, {}, {});
  }

 private:
  const Processes& processes_;
  const Target& target_;
  const GpuChoice& choice_;
  NcclRoute& nccl_;
  cuda::PlacementCheck& placement_check_;
  const cuda::MessageKind kind_;
  const Gpus gpus_;
  const std::vector<cuda::HostNode> host_nodes_;
  cuda::GpuBuffers buffers_;
  cuda::SharedMemory shared_;
  cuda::GpuSteps steps_;
  const cuda::GpuPlace place_;
};

class GpuMemory : public ProcessMemory {
 public:
  GpuMemory(const Processes& processes, GpuChoice choice)
      : processes_(processes), choice_(std::move(choice)) {}

  std::string name() const override {
    return fmt::format("cuda, transport {}", to_string(choice_.transport));
  }

  /// A GPU's kernels are launched for an op, and not for each piece of it.
  Scratch scratch() const override { return {}; }

  void add_needs(const HostData& data, const Target& target, const RunOptions&,
                 std::vector<MemoryNeed>& needs) override {
    const int gpu = gpu_of(target);
    const int mine = processes_.transport.process();
    const cuda::MessageKind kind{data.program, data.layout, data.type, data.op};
    const Access access = access_of(data.program, choice_);
    const auto allocated = [&](double bytes) {
      return cuda::with_access(access, PlaceMemory::allocated_bytes(bytes));
    };
    const auto sizes = buffer_sizes(data.program, data.layout, size_of(data.type));
    const std::vector<int> homes = processes_of_places(data.program);
    const Gpus gpus = cuda::open_gpu_of_process(data.program, mine, gpu);
    const std::vector<double> tables = PlaceMemory::table_bytes(kind, gpus);
    MemoryNeed on_gpu{.owner = fmt::format("GPU {}", gpu), .available = cuda::usable_bytes(gpu)};
    for (int i = 0; i < sharing_of(gpu); ++i) {
      for (PlaceId place = 0; place < data.program.places(); ++place) {
        const auto at = static_cast<std::size_t>(place);
        if (gpus.set.device_of_place[at] != DeviceSet::kHost) {
          on_gpu.add_buffers(sizes[at], allocated);
        }
      }
      on_gpu.add("tables", tables.front(), false);
      on_gpu.add("messages under way", static_cast<double>(scratch().bytes), false);
    }
    for (int i = 0; i < processes_.sharing; ++i) {
      for (std::size_t place = 0; place < sizes.size(); ++place) {
        const bool is_host = gpus.set.device_of_place[place] == DeviceSet::kHost;
        if (homes[place] == mine && is_host) {
          needs.front().add_buffers(sizes[place], [](double bytes) { return bytes; });
        }
      }
      needs.front().add("messages under way", static_cast<double>(cuda::Staging{}.bytes()), false);
    }
    needs.push_back(std::move(on_gpu));
  }

  std::unique_ptr<ProcessPart> prepare(const HostData& data, const Target& target,
                                       const LanePrograms& lowered,
                                       const MessagePlan& plan) override {
    return std::make_unique<GpuPart>(data, target, lowered, plan, gpu_of(target), processes_,
                                     choice_, nccl_, placement_check_);
  }

 private:
  int gpu_of(const Target& target) const {
    return cuda::gpu_of_process(processes_, choice_, target);
  }

  /// How many processes of this host have been given that GPU by name; otherwise each has its own.
  int sharing_of(int gpu) const {
    int sharing = 0;
    for (std::size_t rank = 0; rank < choice_.devices.size(); ++rank) {
      const bool is_here = processes_.board.is_here(static_cast<int>(rank));
      if (is_here && choice_.devices[rank] == gpu) ++sharing;
    }
    return std::max(1, sharing);
  }

  const Processes& processes_;
  const GpuChoice choice_;
  NcclRoute nccl_;
  cuda::PlacementCheck placement_check_;
};

}  // namespace

std::unique_ptr<ProcessMemory> make_gpu_memory(const Processes& processes, GpuChoice choice) {
  return std::make_unique<GpuMemory>(processes, std::move(choice));
}

}  // namespace espalier
