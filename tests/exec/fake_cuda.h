// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace espalier::fake_cuda {

/// When a driver refuses a graph that holds copies between GPUs that have not mapped each other.
enum class GraphRefusal { never, captured_copies, instantiation };

/// Stands in for CUDA's runtime and the kernels, so that exec/cuda/ can be tested without a GPU:
/// memory is memory of this computer, streams are queues, and whenever somebody asks or waits, what
/// is in the queues is carried out in an order drawn by chance among those that CUDA allows. Strict
/// about what it is asked: streams and events of another device than the current one, kernels that
/// reach for memory that is not mapped, captures that are not joined and the like are errors, with
/// CUDA's names for them. What a process offers to others (cudaIpcGetMemHandle) they can map, in
/// this process or another one.
struct Behaviour {
  int gpus = 4;
  const char* model = "Fake GPU";
  std::vector<int> buses = {};  ///< PCI buses of the GPUs; empty: their numbers
  bool peers = true;            ///< GPUs can access each other's memory
  int max_peers = 8;            ///< that a GPU can be joined to
  int refused_peer = -1;        ///< nobody can map this GPU, nor it others, when it comes to it
  std::size_t memory_bytes = 1 << 28;  ///< of each GPU
  std::size_t pinned_bytes = 1 << 28;  ///< of an allocation
  int driver_version = 99000;          ///< 0: there is no driver
  std::int64_t stall_after = -1;       ///< so many kernels are carried out, then none any more
  std::size_t queue_length =
      1000;                       ///< commands per stream; giving it more takes until there is room
  std::int64_t fail_launch = -1;  ///< the launch of the kernel of this number fails
  int graph_memory = 1000;        ///< graphs that there is memory for at a time
  bool streams_have_memory = true;
  GraphRefusal graph_refusal = GraphRefusal::never;
  /// From this launch of a graph on, counted from 0, its kernels write a wrong byte each.
  std::int64_t damaged_launch = std::numeric_limits<std::int64_t>::max();
  bool maps_others = true;  ///< processes may map each other's memory
  std::uint64_t seed = 1;
};

/// From now on this thread plays a process with a runtime of its own, as new. `reset` comes next.
void begin_process();

/// Everything as new, but for what GPUs have mapped, which is the process's; GPUs have nothing
/// allocated. \pre whoever used it has freed what it had.
void reset(const Behaviour& behaviour);

/// Lets a GPU say that it has so many bytes left, whatever it has; -1: none says so any more.
void leave_memory(int gpu, std::size_t bytes);

/// From now on no kernel ends.
void stall();

/// What CUDA was asked to make and not yet to destroy: memory, streams, events, graphs.
std::int64_t live_objects();

/// Pairs of GPUs of which one has the other's memory mapped.
int mapped_pairs();

/// Bytes allocated on a GPU.
std::size_t used_bytes(int gpu);

/// What `action` returns when that GPU has so many bytes left.
template <class Action>
auto with_memory(int gpu, std::size_t bytes, Action&& action) {
  leave_memory(gpu, bytes);
  auto result = action();
  leave_memory(-1, 0);
  return result;
}

/// Blocks of other processes' memory that are mapped.
int mapped_blocks();

/// Kernels launched since the reset, those of graphs not counted.
std::int64_t kernels_launched();

/// What has come from or gone to the memory of another GPU or of this computer since the reset.
struct Moved {
  std::int64_t engine_bytes = 0;  ///< by cudaMemcpyAsync
  std::int64_t kernel_bytes = 0;  ///< operands of kernels that lie there
};
Moved moved();

/// The processors on which the thread might run that asked for pinned memory, by allocation since
/// the reset.
const std::vector<std::vector<int>>& pinned_from();

/// Graphs instantiated since the reset.
int graphs_made();

}  // namespace espalier::fake_cuda
