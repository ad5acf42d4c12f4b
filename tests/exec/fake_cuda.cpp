// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "exec/host/numa.h"
#include "tests/exec/fake_kernels.h"

namespace espalier::fake_cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

/// One recording of an event outside of a capture.
struct Recording {
  bool done = false;
  Clock::time_point when;
};

struct Task {
  Work work;                         // may be nothing
  std::shared_ptr<Recording> after;  // a wait
  bool is_kernel = false;
  std::function<bool()> attempt = {};  // until it succeeds, the task is not over
};

struct Node {
  Work work;
  std::vector<std::size_t> after;
};

struct Capture {
  std::vector<Node> nodes;
  CUstream_st* origin = nullptr;
  std::set<CUstream_st*> joined;
  bool is_invalid = false;
  bool has_unmapped_copies = false;
};

struct Allocation {
  std::size_t size = 0;
  int device = -1;        // -1: pinned
  int file = -1;          // what others can map, or what was mapped of others; -1: neither
  bool is_other = false;  // mapped from another process
};

/// Where others find a block: what a cudaIpcMemHandle_t holds.
struct Offered {
  pid_t process = 0;
  int file = -1;
  std::size_t size = 0;
};
static_assert(sizeof(Offered) <= sizeof(cudaIpcMemHandle_t));

// Smaller allocations share a block with others, whose owner would not want them mapped.
constexpr std::size_t kBlock = std::size_t{2} << 20;

// No byte of a small number.
constexpr std::byte kDamage{0x77};

struct State {
  Behaviour behaviour;
  std::mt19937_64 random;
  int current = 0;
  cudaError_t latest = cudaSuccess;  // what cudaGetLastError answers
  cudaError_t broken = cudaSuccess;  // once a kernel has failed, all that anybody hears
  std::map<const std::byte*, Allocation> memory;
  std::vector<std::size_t> used;
  std::set<CUstream_st*> streams;
  std::int64_t objects = 0;
  std::int64_t launched = 0;
  std::int64_t carried_out = 0;
  Moved moved;
  std::vector<std::vector<int>> pinned_from;
  std::set<std::pair<int, int>> mapped;
  int graphs = 0;
  int live_graphs = 0;
  int gpu_that_says = -1;  // it has so many bytes left
  std::size_t says_bytes = 0;
  std::int64_t graph_launches = 0;
  bool is_damaging = false;  // a graph that goes wrong is being carried out
};

/// Of a thread that plays a process; null: it is one of those of this process.
thread_local std::unique_ptr<State> own_state;

State& state() {
  static State shared;
  return own_state ? *own_state : shared;
}

cudaError_t answer(cudaError_t status) {
  if (status == cudaSuccess) status = state().broken;
  if (status != cudaSuccess) state().latest = status;
  return status;
}

}  // namespace
}  // namespace espalier::fake_cuda

using namespace espalier::fake_cuda;

struct CUstream_st {
  int device = 0;
  std::deque<Task> tasks;
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> captured;  // nodes that what comes next in this stream is after
};
struct CUevent_st {
  int device = 0;
  bool timed = true;
  std::shared_ptr<Recording> latest;
  std::shared_ptr<Capture> capture;  // when the latest recording was captured
  std::vector<std::size_t> captured;
};
struct CUgraph_st {
  std::vector<Node> nodes;
  bool has_unmapped_copies = false;
};
struct CUgraphExec_st {
  std::vector<Node> nodes;
};

namespace espalier::fake_cuda {
namespace {

bool stalled() {
  return state().behaviour.stall_after >= 0 && state().carried_out >= state().behaviour.stall_after;
}

/// Carries out the first task of a stream if it can be.
bool advance(CUstream_st& stream) {
  if (stream.tasks.empty()) return false;
  Task& task = stream.tasks.front();
  if (task.after && !task.after->done) return false;
  if (task.is_kernel && stalled()) return false;
  if (task.attempt && !task.attempt()) return false;
  if (task.is_kernel) ++state().carried_out;
  const Task taken = std::move(task);
  stream.tasks.pop_front();
  if (taken.work) taken.work();
  return true;
}

/// Carries out up to `steps` tasks; returns whether there was one.
bool advance_any(int steps) {
  std::vector<CUstream_st*> order(state().streams.begin(), state().streams.end());
  bool any = false;
  for (int step = 0; step < steps; ++step) {
    std::ranges::shuffle(order, state().random);
    const bool moved =
        std::ranges::any_of(order, [](CUstream_st* stream) { return advance(*stream); });
    if (!moved) break;
    any = true;
  }
  return any;
}

/// Puts a task into a stream. When its queue is full, keeps the caller until there is room.
void queue_task(CUstream_st* stream, Task task) {
  while (stream->tasks.size() >= state().behaviour.queue_length) {
    if (!advance_any(1)) {
      std::fputs("a call to CUDA never returns: the stream's queue is full\n", stderr);
      std::_Exit(99);
    }
  }
  stream->tasks.push_back(std::move(task));
}

cudaError_t enqueue(CUstream_st* stream, Work work, bool is_kernel = false) {
  if (state().broken != cudaSuccess) return answer(state().broken);
  if (!stream->capture) {
    queue_task(stream, {std::move(work), nullptr, is_kernel});
    return cudaSuccess;
  }
  Capture& capture = *stream->capture;
  if (capture.is_invalid) return answer(cudaErrorStreamCaptureInvalidated);
  capture.nodes.push_back({std::move(work), stream->captured});
  stream->captured = {capture.nodes.size() - 1};
  return cudaSuccess;
}

/// In an order drawn by chance.
void run_nodes(const std::vector<Node>& nodes) {
  std::vector<std::vector<std::size_t>> before(nodes.size());
  std::vector<std::size_t> missing(nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].after.size();
    if (missing[i] == 0) ready.push_back(i);
    for (const std::size_t node : nodes[i].after) before[node].push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[state().random() % ready.size()], ready.back());
    const std::size_t chosen = ready.back();
    ready.pop_back();
    if (nodes[chosen].work) nodes[chosen].work();
    for (const std::size_t node : before[chosen]) {
      if (--missing[node] == 0) ready.push_back(node);
    }
  }
}

/// Memory that another process can map, too.
void* map_file(int file, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

cudaError_t allocate(void** memory, std::size_t bytes, int device) {
  auto& now = state();
  if (device < 0) {
    if (bytes > now.behaviour.pinned_bytes) return answer(cudaErrorMemoryAllocation);
  } else {
    std::size_t& used = now.used[static_cast<std::size_t>(device)];
    if (used + bytes > now.behaviour.memory_bytes) return answer(cudaErrorMemoryAllocation);
    used += bytes;
  }
  Allocation made{bytes, device};
  if (device >= 0 && bytes > 0 && bytes % kBlock == 0) {
    made.file = memfd_create("block", 0);
    if (made.file < 0 || ftruncate(made.file, static_cast<off_t>(bytes)) != 0) std::abort();
    *memory = map_file(made.file, bytes);
  } else {
    *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  now.memory[static_cast<std::byte*>(*memory)] = made;
  ++now.objects;
  return cudaSuccess;
}

cudaError_t release(void* memory, bool pinned) {
  auto& now = state();
  const auto found = now.memory.find(static_cast<std::byte*>(memory));
  if (found == now.memory.end()) return answer(cudaErrorInvalidValue);
  const Allocation freed = found->second;
  if ((freed.device < 0) != pinned || freed.is_other) return answer(cudaErrorInvalidValue);
  // Who maps it holds a lock.
  if (freed.file >= 0 && flock(freed.file, LOCK_EX | LOCK_NB) != 0) {
    return answer(cudaErrorInvalidValue);
  }
  if (!pinned) now.used[static_cast<std::size_t>(freed.device)] -= freed.size;
  now.memory.erase(found);
  --now.objects;
  if (freed.file < 0) {
    std::free(memory);
  } else {
    munmap(memory, freed.size);
    close(freed.file);
  }
  return cudaSuccess;
}

/// The allocation that holds these bytes, or nothing.
const Allocation* holder(const std::byte* begin, std::int64_t bytes) {
  auto after = state().memory.upper_bound(begin);
  if (after == state().memory.begin()) return nullptr;
  const auto& [base, allocation] = *--after;
  const bool inside = begin + bytes <= base + static_cast<std::ptrdiff_t>(allocation.size);
  return inside ? &allocation : nullptr;
}

/// The device whose memory holds a byte, -1 for memory of this computer.
int device_of(const void* memory) {
  const Allocation* const owner = holder(static_cast<const std::byte*>(memory), 1);
  return owner == nullptr ? -1 : owner->device;
}

bool is_unmapped_copy(const void* to, const void* from) {
  const int a = device_of(to);
  const int b = device_of(from);
  if (a < 0 || b < 0 || a == b) return false;
  const auto& mapped = state().mapped;
  return !state().behaviour.peers || (!mapped.contains({a, b}) && !mapped.contains({b, a}));
}

}  // namespace

void begin_process() { own_state = std::make_unique<State>(); }

void reset(const Behaviour& behaviour) {
  auto& now = state();
  State fresh;
  fresh.mapped = std::move(now.mapped);
  now = std::move(fresh);
  now.behaviour = behaviour;
  now.random.seed(behaviour.seed);
  now.used.assign(static_cast<std::size_t>(behaviour.gpus), 0);
}

void leave_memory(int gpu, std::size_t bytes) {
  state().gpu_that_says = gpu;
  state().says_bytes = bytes;
}

void stall() { state().behaviour.stall_after = 0; }
std::size_t used_bytes(int gpu) { return state().used[static_cast<std::size_t>(gpu)]; }
std::int64_t live_objects() { return state().objects; }
int mapped_pairs() { return static_cast<int>(state().mapped.size()); }
int mapped_blocks() {
  return static_cast<int>(
      std::ranges::count_if(state().memory, [](const auto& one) { return one.second.is_other; }));
}
std::int64_t kernels_launched() { return state().launched; }
Moved moved() { return state().moved; }
const std::vector<std::vector<int>>& pinned_from() { return state().pinned_from; }
int graphs_made() { return state().graphs; }

void launch_until(CUstream_st* stream, std::function<bool()> attempt) {
  queue_task(stream, {{}, nullptr, true, std::move(attempt)});
}

cudaError_t launch(CUstream_st* stream, std::vector<Touched> touched, Work work) {
  auto& now = state();
  if (now.launched++ == now.behaviour.fail_launch) return answer(cudaErrorLaunchOutOfResources);
  if (stream->device != now.current) return answer(cudaErrorInvalidResourceHandle);
  const int device = stream->device;
  enqueue(
      stream,
      [touched = std::move(touched), work = std::move(work), device] {
        for (const Touched& range : touched) {
          const Allocation* const owner = holder(range.begin, range.bytes);
          const bool reaches =
              owner != nullptr &&
              (owner->device < 0 || owner->device == device ||
               (state().behaviour.peers && state().mapped.count({device, owner->device}) > 0));
          if (!reaches) state().broken = cudaErrorIllegalAddress;
          if (reaches && owner->device != device) state().moved.kernel_bytes += range.bytes;
        }
        if (state().broken == cudaSuccess) work();
        if (state().is_damaging && !touched.empty() && touched.front().bytes > 0) {
          *const_cast<std::byte*>(touched.front().begin) = kDamage;
        }
      },
      true);
  return cudaGetLastError();  // as launches have it: also of whatever failed before
}

}  // namespace espalier::fake_cuda

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorIllegalAddress             ? "cudaErrorIllegalAddress"
         : error == cudaErrorMemoryAllocation         ? "cudaErrorMemoryAllocation"
         : error == cudaErrorLaunchOutOfResources     ? "cudaErrorLaunchOutOfResources"
         : error == cudaErrorStreamCaptureUnsupported ? "cudaErrorStreamCaptureUnsupported"
         : error == cudaErrorNotSupported             ? "cudaErrorNotSupported"
                                                      : "another error";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() { return std::exchange(state().latest, cudaSuccess); }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().behaviour.driver_version;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  if (state().behaviour.driver_version < CUDART_VERSION) {
    return answer(cudaErrorInsufficientDriver);
  }
  *count = state().behaviour.gpus;
  return *count == 0 ? answer(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, state().behaviour.model);
  properties->multiProcessorCount = 2;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const auto& buses = state().behaviour.buses;
  const int bus = buses.empty() ? device : buses[static_cast<std::size_t>(device)];
  std::snprintf(text, static_cast<std::size_t>(length), "FFFF:%02X:00.0", bus);
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= state().behaviour.gpus) return answer(cudaErrorInvalidDevice);
  state().current = device;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = state().behaviour.memory_bytes;
  *free = *total - state().used[static_cast<std::size_t>(state().current)];
  if (state().current == state().gpu_that_says) *free = state().says_bytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = state().behaviour.peers ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (state().current == state().behaviour.refused_peer || peer == state().behaviour.refused_peer) {
    return answer(cudaErrorPeerAccessUnsupported);
  }
  for (const auto& [gpu, other] :
       {std::pair(state().current, peer), std::pair(peer, state().current)}) {
    std::set<int> others{other};
    for (const auto& [from, to] : state().mapped) {
      if (from == gpu) others.insert(to);
      if (to == gpu) others.insert(from);
    }
    if (static_cast<int>(others.size()) > state().behaviour.max_peers) {
      return answer(cudaErrorTooManyPeers);
    }
  }
  const bool is_new = state().mapped.emplace(state().current, peer).second;
  return is_new ? cudaSuccess : answer(cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  const bool was = state().mapped.erase({state().current, peer}) > 0;
  return was ? cudaSuccess : answer(cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes, state().current);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  state().pinned_from.push_back(espalier::allowed_processors());
  return allocate(memory, bytes, -1);
}
cudaError_t cudaFree(void* memory) { return release(memory, false); }
cudaError_t cudaFreeHost(void* memory) { return release(memory, true); }

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  const auto found = state().memory.find(static_cast<std::byte*>(memory));
  if (found == state().memory.end() || found->second.file < 0) return answer(cudaErrorInvalidValue);
  const Offered offered{getpid(), found->second.file, found->second.size};
  std::memcpy(handle, &offered, sizeof offered);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned) {
  if (!state().behaviour.maps_others) return answer(cudaErrorNotSupported);
  Offered offered;
  std::memcpy(static_cast<void*>(&offered), &handle, sizeof offered);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(offered.process),
                offered.file);
  const int file = open(path, O_RDWR);
  if (file < 0) return answer(cudaErrorInvalidResourceHandle);
  *memory = map_file(file, offered.size);
  if (*memory == nullptr || flock(file, LOCK_SH) != 0) std::abort();
  state().memory[static_cast<std::byte*>(*memory)] = {offered.size, state().current, file, true};
  ++state().objects;
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* memory) {
  const auto found = state().memory.find(static_cast<std::byte*>(memory));
  if (found == state().memory.end() || !found->second.is_other) {
    return answer(cudaErrorInvalidValue);
  }
  munmap(memory, found->second.size);
  close(found->second.file);
  state().memory.erase(found);
  --state().objects;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return answer(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (stream->capture && is_unmapped_copy(to, from)) {
    stream->capture->has_unmapped_copies = true;
    if (state().behaviour.graph_refusal == GraphRefusal::captured_copies) {
      stream->capture->is_invalid = true;
      return answer(cudaErrorStreamCaptureUnsupported);
    }
  }
  const bool is_elsewhere = device_of(to) != stream->device || device_of(from) != stream->device;
  return enqueue(stream, [=] {
    std::memcpy(to, from, bytes);
    if (is_elsewhere) state().moved.engine_bytes += static_cast<std::int64_t>(bytes);
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(memory, value, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (!state().behaviour.streams_have_memory) return answer(cudaErrorMemoryAllocation);
  *stream = new CUstream_st;
  (*stream)->device = state().current;
  state().streams.insert(*stream);
  ++state().objects;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  state().streams.erase(stream);
  --state().objects;
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  while (!stream->tasks.empty() && advance_any(1)) {
  }
  if (!stream->tasks.empty() && state().broken == cudaSuccess) std::abort();  // would hang
  return answer(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() {
  while (advance_any(1)) {
  }
  return answer(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) {
      return answer(cudaErrorStreamCaptureMerge);
    }
    stream->capture = event->capture;
    stream->capture->joined.insert(stream);
    for (const std::size_t node : event->captured) {
      if (std::ranges::count(stream->captured, node) == 0) stream->captured.push_back(node);
    }
    return cudaSuccess;
  }
  if (stream->capture) return answer(cudaErrorStreamCaptureIsolation);
  if (event->latest) queue_task(stream, {{}, event->latest, false});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->device = state().current;
  (*event)->timed = flags != cudaEventDisableTiming;
  ++state().objects;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  --state().objects;
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != stream->device) return answer(cudaErrorInvalidResourceHandle);
  event->capture = stream->capture;
  event->captured = stream->captured;
  if (stream->capture) return cudaSuccess;
  event->latest = std::make_shared<Recording>();
  return enqueue(stream, [recording = event->latest] {
    recording->done = true;
    recording->when = Clock::now();
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal) return cudaEventRecord(event, stream);
  if (event->device != stream->device) return answer(cudaErrorInvalidResourceHandle);
  if (!stream->capture) return answer(cudaErrorIllegalState);
  event->capture.reset();
  return enqueue(stream, [event] {
    event->latest = std::make_shared<Recording>(Recording{true, Clock::now()});
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->capture) return answer(cudaErrorCapturedEvent);
  advance_any(3);
  if (state().broken != cudaSuccess) return answer(state().broken);
  return !event->latest || event->latest->done ? cudaSuccess : answer(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* elapsed_ms, cudaEvent_t start, cudaEvent_t end) {
  if (!start->timed || !end->timed || start->device != end->device) {
    return answer(cudaErrorInvalidResourceHandle);
  }
  if (!start->latest || !end->latest) return answer(cudaErrorInvalidResourceHandle);
  if (!start->latest->done || !end->latest->done) return answer(cudaErrorNotReady);
  *elapsed_ms =
      std::chrono::duration<float, std::milli>(end->latest->when - start->latest->when).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capture) return answer(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->joined.insert(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return answer(cudaErrorIllegalState);
  // Every node must come before what the origin has come to.
  std::vector<bool> reached(capture->nodes.size(), false);
  std::vector<std::size_t> left = stream->captured;
  while (!left.empty()) {
    const std::size_t node = left.back();
    left.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    const auto& after = capture->nodes[node].after;
    left.insert(left.end(), after.begin(), after.end());
  }
  for (CUstream_st* joined : capture->joined) {
    joined->capture.reset();
    joined->captured.clear();
  }
  *graph = nullptr;
  if (capture->is_invalid) return answer(cudaErrorStreamCaptureInvalidated);
  if (std::ranges::count(reached, false) > 0) return answer(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{capture->nodes, capture->has_unmapped_copies};
  ++state().objects;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  --state().objects;
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long) {
  if (graph->has_unmapped_copies &&
      state().behaviour.graph_refusal == GraphRefusal::instantiation) {
    return answer(cudaErrorNotSupported);
  }
  if (state().live_graphs == state().behaviour.graph_memory) {
    return answer(cudaErrorMemoryAllocation);
  }
  *exec = new CUgraphExec_st{graph->nodes};
  ++state().live_graphs;
  ++state().objects;
  ++state().graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  --state().live_graphs;
  --state().objects;
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return answer(cudaSuccess); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return enqueue(
      stream,
      [exec, is_damaged = state().graph_launches++ >= state().behaviour.damaged_launch] {
        state().is_damaging = is_damaged;
        run_nodes(exec->nodes);
        state().is_damaging = false;
      },
      true);
}

}  // extern "C"
