// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_buffers.h"

namespace espalier::cuda {

Gpus open_gpu_of_process(const Program& program, int process, int gpu) {
  const std::vector<int> homes = processes_of_places(program);
  std::vector<int> numbers;
  for (PlaceId place = 0; place < program.places(); ++place) {
    const bool is_on_gpu = homes[static_cast<std::size_t>(place)] == process &&
                           place_number(program, place).kind != PlaceKind::host;
    numbers.push_back(is_on_gpu ? gpu : DeviceSet::kHost);
  }
  return open_gpus(numbers);
}

GpuBuffers::GpuBuffers(const MessageKind& kind, const LanePrograms& lowered,
                       const MessagePlan& plan, const Gpus& gpus,
                       const std::vector<HostNode>& host_nodes, Access access)
    : kind_(kind),
      gpus_(gpus),
      places_(kind, lowered, gpus, host_nodes, access),
      scratch_(allocate_scratch(plan.scratch_bytes, access)) {}

DeviceBytes GpuBuffers::allocate_scratch(std::int64_t bytes, Access access) const {
  if (bytes == 0) return {};
  use_gpu(gpu().number);
  const double whole = with_access(access, static_cast<double>(bytes));
  return allocate(static_cast<std::size_t>(whole), gpu().number, "messages under way");
}

std::byte* GpuBuffers::at(const BufferOffset& position) const {
  if (position.place != kMessageScratch) return places_.at(position);
  return static_cast<std::byte*>(scratch_.get()) + position.bytes;
}

std::vector<std::byte*> GpuBuffers::blocks() const {
  std::vector<std::byte*> all;
  for (PlaceId place = 0; place < kind_.program.places(); ++place) {
    if (gpus_.set.device_of_place[static_cast<std::size_t>(place)] == DeviceSet::kHost) continue;
    for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
      if (std::byte* const block = places_.block(place, buffer)) all.push_back(block);
    }
  }
  if (scratch_) all.push_back(static_cast<std::byte*>(scratch_.get()));
  return all;
}

}  // namespace espalier::cuda
