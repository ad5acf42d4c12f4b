// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "exec/cuda/calls.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/host_nodes.h"
#include "exec/damage.h"
#include "exec/lanes/lowering.h"
#include "ir/data.h"

namespace espalier::cuda {

using DeviceBytes = Owned<void*, cudaFree>;
using PinnedBytes = Owned<void*, cudaFreeHost>;

/// Memory of the current GPU for `what`: "r0.in". Throws OutOfMemory when the GPU has not enough
/// left.
DeviceBytes allocate(std::size_t bytes, int gpu, const std::string& what);

/// Bytes of a GPU that a run may take: most of what is free.
double usable_bytes(int gpu);

/// What the buffers of a run hold.
struct MessageKind {
  const Program& program;
  ElementLayout layout;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
};

/// What a check looks at: the guards of all buffers, and with `everything` every element of every
/// rank's result and inputs of out-of-place runs, too.
enum class Checked { everything, guards };

/// Who reads and writes the memory of buffers: this process, or others, too, which map it. What
/// they map is whole blocks of kSharedBlock bytes, so that nothing else may be in these.
enum class Access { own, shared };
inline constexpr std::size_t kSharedBlock = std::size_t{2} << 20;
/// Bytes of an allocation of so many.
double with_access(Access access, double bytes);

/// The buffers of a run: each an allocation of its own on the GPU of its place, or in pinned memory
/// of this computer for host memories, between guards that reveal writes outside
/// of it. Filled and checked by the GPUs. Pinned memory is on the NUMA node that it stands for, as
/// far as this computer has it. `kind`, `gpus` and `host_nodes` must outlive it. Places that are in
/// other processes have no bytes in `lowered` and no GPU.
class PlaceMemory {
 public:
  PlaceMemory(const MessageKind& kind, const LanePrograms& lowered, const Gpus& gpus,
              const std::vector<HostNode>& host_nodes, Access access = Access::own);

  /// Host memories that are not where they should be, and why, a line each.
  std::vector<std::string> misplaced_hosts() const;

  std::byte* at(const BufferOffset& position) const;
  /// Where the allocation of a buffer begins, guards included; null for an empty buffer.
  std::byte* block(PlaceId place, Buffer buffer) const;

  /// Buffers as `initial_memory` of ir/interpret.h makes them: inputs filled, everything else
  /// unwritten. Returns when that is done.
  void fill();
  /// Inputs filled again, everything else left as it is. Returns when that is done.
  void fill_inputs();
  /// Compares results with what they must be, and inputs and guards with what they were.
  Damage check(Checked what);

  /// Bytes that the allocation of a buffer takes, guards included.
  static double allocated_bytes(double buffer_bytes);
  /// By device: bytes of what inputs and results are made of and compared with.
  static std::vector<double> table_bytes(const MessageKind& kind, const Gpus& gpus);

 private:
  struct Allocation {
    std::int64_t size = 0;  ///< of the buffer alone
    DeviceBytes on_gpu;
    PinnedBytes pinned;
    std::byte* begin = nullptr;  ///< of the buffer
  };
  /// What is counted at a time: wrong results, wrong inputs, and bytes of three buffers' guards.
  static constexpr std::size_t kCounters = 5;
  using Counts = std::array<unsigned long long, kCounters>;

  int device_of(PlaceId place) const {
    return gpus_.set.device_of_place[static_cast<std::size_t>(place)];
  }
  const Gpu& gpu_of(PlaceId place) const {
    return gpus_.all[static_cast<std::size_t>(device_of(place))];
  }
  const Allocation& allocation(PlaceId place, Buffer buffer) const {
    return places_[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
  }
  const HostNode& node_of(PlaceId place) const;
  PinnedBytes allocate_pinned(std::size_t bytes, PlaceId place, const std::string& what);
  Allocation make_allocation(PlaceId place, Buffer buffer, std::int64_t size);
  const std::byte* table(int device, int origin);
  void clear(PlaceId place);
  void fill_input_of(int rank);
  void start_check(int rank, unsigned long long* counters);
  void start_guard_check(PlaceId place, unsigned long long* counters);
  Counts host_guard_counts(PlaceId place) const;
  std::vector<Counts> count_all(Checked what);
  void synchronize();

  const MessageKind& kind_;
  const Gpus& gpus_;
  const std::vector<HostNode>& host_nodes_;  ///< by host memory
  const Access access_;
  std::set<PlaceId> kept_away_;  ///< host memories whose node the system did not let us go to
  std::vector<Stream> streams_;  ///< by device
  std::vector<std::array<Allocation, 3>> places_;
  std::map<std::pair<int, int>, DeviceBytes> tables_;  ///< by device and origin
  std::vector<DeviceBytes> counters_;                  ///< by device: Counts of every place
};

}  // namespace espalier::cuda
