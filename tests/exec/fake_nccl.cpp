// SPDX-License-Identifier: Apache-2.0
// A library with the name and the calls of NCCL, as far as exec/cuda/nccl_library.cpp uses them.
// What it needs of the stand-in for CUDA is in the program that loads it.
#include "tests/exec/fake_nccl.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "exec/host/combine_kernels.h"
#include "ir/data.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/fake_kernels.h"

struct NcclCommunicator {
  int rank = 0;
  int ranks = 1;
  int device = 0;
};

namespace {

using espalier::DataType;
using espalier::FakeNccl;
using espalier::ReduceOp;
using Comm = NcclCommunicator*;
using Bytes = std::vector<std::byte>;

constexpr int kSuccess = 0;
constexpr int kUnhandledCudaError = 1;
constexpr int kInternalError = 3;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;

enum class Kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, send, receive };

struct Call {
  Kind kind = Kind::all_reduce;
  const std::byte* input = nullptr;
  std::byte* result = nullptr;
  std::size_t count = 0;  // elements
  int type = 0;
  int op = 0;
  int peer = 0;  // or root
  Comm comm = nullptr;
  cudaStream_t stream = nullptr;
};

FakeNccl behaviour;
std::vector<Call> group;
bool in_group = false;
int live = 0;

bool fails(std::string_view call) { return behaviour.fails == call; }

const std::map<int, DataType>& types() {
  static const std::map<int, DataType> all{{1, DataType::uint8},   {2, DataType::int32},
                                           {4, DataType::int64},   {6, DataType::float16},
                                           {7, DataType::float32}, {8, DataType::float64},
                                           {9, DataType::bfloat16}};
  return all;
}

std::size_t bytes_of(const Call& call) {
  return call.count * espalier::size_of(types().at(call.type));
}

int add(std::string_view name, const Call& call) {
  if (fails(name)) return kInternalError;
  if (!in_group || !types().contains(call.type) || call.op < 0 || call.op > 3)
    return kInvalidArgument;
  group.push_back(call);
  return kSuccess;
}

Bytes copy_of(const std::byte* begin, std::size_t bytes) { return {begin, begin + bytes}; }

void write(std::byte* to, const Bytes& bytes) { std::ranges::copy(bytes, to); }

/// All inputs combined, in the order of ranks.
Bytes combined(const Call& call, const std::vector<Bytes>& inputs) {
  static constexpr ReduceOp kOps[]{ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min};
  Bytes all = inputs.front();
  std::vector<const std::byte*> sources;
  for (const Bytes& input : inputs) sources.push_back(input.data());
  const DataType type = types().at(call.type);
  if (inputs.size() > 1) {
    espalier::combine(type, kOps[call.op], all.data(), sources,
                      static_cast<std::int64_t>(all.size() / espalier::size_of(type)));
  }
  return all;
}

/// What one collective writes, once all inputs are there. \pre one call of each rank, in order
void carry_out_collective(const std::vector<Call>& calls) {
  const Call& first = calls.front();
  const std::size_t ranks = calls.size();
  const std::size_t bytes = bytes_of(first);
  const bool has_blocks = first.kind == Kind::reduce_scatter;
  std::vector<Bytes> inputs(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const bool sends =
        first.kind != Kind::broadcast || static_cast<std::size_t>(first.peer) == rank;
    if (sends) inputs[rank] = copy_of(calls[rank].input, has_blocks ? ranks * bytes : bytes);
  }
  switch (first.kind) {
    case Kind::all_reduce:
      for (const Call& call : calls) write(call.result, combined(first, inputs));
      break;
    case Kind::reduce:
      write(calls[static_cast<std::size_t>(first.peer)].result, combined(first, inputs));
      break;
    case Kind::broadcast:
      for (const Call& call : calls) {
        write(call.result, inputs[static_cast<std::size_t>(first.peer)]);
      }
      break;
    case Kind::all_gather:
      for (const Call& call : calls) {
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          write(call.result + rank * bytes, inputs[rank]);
        }
      }
      break;
    default: {
      const Bytes all = combined(first, inputs);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        write(calls[rank].result, copy_of(all.data() + rank * bytes, bytes));
      }
    }
  }
}

/// Sends and receives of a group, matched in the order in which they were called.
void carry_out_exchange(const std::vector<Call>& calls) {
  std::map<std::pair<int, int>, std::vector<Bytes>> sent;  // by sender and receiver
  for (const Call& call : calls) {
    if (call.kind == Kind::send) {
      sent[{call.comm->rank, call.peer}].push_back(copy_of(call.input, bytes_of(call)));
    }
  }
  for (const Call& call : calls) {
    if (call.kind != Kind::receive) continue;
    std::vector<Bytes>& waiting = sent[{call.peer, call.comm->rank}];
    write(call.result, waiting.front());
    waiting.erase(waiting.begin());
  }
}

bool is_exchange(const Call& call) { return call.kind == Kind::send || call.kind == Kind::receive; }

/// As many bytes sent as received between any two ranks.
bool is_matched(const std::vector<Call>& calls) {
  std::map<std::pair<int, int>, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> all;
  for (const Call& call : calls) {
    if (call.kind == Kind::send) all[{call.comm->rank, call.peer}].first.push_back(call.count);
    if (call.kind == Kind::receive) all[{call.peer, call.comm->rank}].second.push_back(call.count);
  }
  return std::ranges::all_of(all,
                             [](const auto& one) { return one.second.first == one.second.second; });
}

/// One call of each rank, all alike.
bool is_alike(const std::vector<Call>& calls) {
  const Call& first = calls.front();
  bool alike = calls.size() == static_cast<std::size_t>(first.comm->ranks);
  for (std::size_t rank = 0; alike && rank < calls.size(); ++rank) {
    const Call& call = calls[rank];
    alike = call.comm->rank == static_cast<int>(rank) && call.kind == first.kind &&
            call.count == first.count && call.type == first.type && call.op == first.op &&
            call.peer == first.peer;
  }
  return alike;
}

void carry_out(const std::vector<Call>& calls) {
  is_exchange(calls.front()) ? carry_out_exchange(calls) : carry_out_collective(calls);
  if (!behaviour.is_wrong) return;
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    if (call->result == nullptr || bytes_of(*call) == 0) continue;
    call->result[bytes_of(*call) - 1] ^= std::byte{0x55};
    return;
  }
}

/// Every stream of the group comes to it, and goes on when it is done.
int give(const std::vector<Call>& calls) {
  std::map<cudaStream_t, int> devices;
  for (const Call& call : calls) devices[call.stream] = call.comm->device;
  const auto [origin, origin_device] = *devices.begin();
  const auto join = [](cudaStream_t from, int from_device, cudaStream_t to, int to_device) {
    cudaEvent_t event = nullptr;
    bool right = cudaSetDevice(from_device) == cudaSuccess &&
                 cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess &&
                 cudaEventRecord(event, from) == cudaSuccess &&
                 cudaSetDevice(to_device) == cudaSuccess &&
                 cudaStreamWaitEvent(to, event, 0) == cudaSuccess;
    right = event != nullptr && cudaEventDestroy(event) == cudaSuccess && right;
    return right;
  };
  bool right = true;
  for (const auto& [stream, device] : devices) {
    if (stream != origin) right = join(stream, device, origin, origin_device) && right;
  }
  if (behaviour.hangs_on_gpu) espalier::fake_cuda::stall();
  right = right && cudaSetDevice(origin_device) == cudaSuccess &&
          espalier::fake_cuda::launch(origin, {}, [calls] { carry_out(calls); }) == cudaSuccess;
  for (const auto& [stream, device] : devices) {
    if (stream != origin) right = join(origin, origin_device, stream, device) && right;
  }
  return right ? kSuccess : kUnhandledCudaError;
}

}  // namespace

extern "C" {

void espalier_set_fake_nccl(const FakeNccl& wanted) { behaviour = wanted; }
int espalier_live_fake_nccl() { return live; }

int ncclGetVersion(int* version) {
  *version = behaviour.version;
  return kSuccess;
}
const char* ncclGetErrorString(int status) {
  return status == kInternalError
             ? "internal error - please report this issue to the NCCL developers"
         : status == kUnhandledCudaError ? "unhandled cuda error"
                                         : "invalid usage";
}
const char* ncclGetLastError(Comm) { return behaviour.fails.empty() ? "" : "the fake was told to"; }

/// Communicators of several processes, which nobody makes here.
int ncclGetUniqueId(void*) { return kInvalidUsage; }
int ncclCommInitRank() { return kInvalidUsage; }

int ncclCommInitAll(Comm* comms, int count, const int* devices) {
  if (fails("ncclCommInitAll")) return kInternalError;
  for (int rank = 0; rank < count; ++rank) {
    for (int other = 0; other < rank; ++other) {
      if (devices[other] == devices[rank]) return kInvalidUsage;
    }
    comms[rank] = new NcclCommunicator{rank, count, devices[rank]};
    ++live;
  }
  return kSuccess;
}
int ncclCommDestroy(Comm comm) {
  delete comm;
  --live;
  return kSuccess;
}
int ncclCommAbort(Comm comm) { return ncclCommDestroy(comm); }
int ncclCommGetAsyncError(Comm, int* status) {
  *status = behaviour.fails_later ? kInternalError : kSuccess;
  return kSuccess;
}

int ncclGroupStart() {
  in_group = true;
  group.clear();
  return kSuccess;
}
int ncclGroupEnd() {
  in_group = false;
  if (fails("ncclGroupEnd")) return kInternalError;
  while (behaviour.hangs_in_call) std::this_thread::sleep_for(std::chrono::hours(1));
  if (group.empty()) return kSuccess;
  if (!(is_exchange(group.front()) ? is_matched(group) : is_alike(group))) return kInvalidArgument;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(group.front().stream, &status) != cudaSuccess)
    return kUnhandledCudaError;
  if (status == cudaStreamCaptureStatusActive && behaviour.refuses_capture) return kInvalidUsage;
  return give(group);
}

int ncclAllReduce(const void* input, void* result, std::size_t count, int type, int op, Comm comm,
                  cudaStream_t stream) {
  return add("ncclAllReduce", {Kind::all_reduce, static_cast<const std::byte*>(input),
                               static_cast<std::byte*>(result), count, type, op, 0, comm, stream});
}
int ncclReduce(const void* input, void* result, std::size_t count, int type, int op, int root,
               Comm comm, cudaStream_t stream) {
  return add("ncclReduce", {Kind::reduce, static_cast<const std::byte*>(input),
                            static_cast<std::byte*>(result), count, type, op, root, comm, stream});
}
int ncclBroadcast(const void* input, void* result, std::size_t count, int type, int root, Comm comm,
                  cudaStream_t stream) {
  return add("ncclBroadcast",
             {Kind::broadcast, static_cast<const std::byte*>(input),
              static_cast<std::byte*>(result), count, type, 0, root, comm, stream});
}
int ncclAllGather(const void* input, void* result, std::size_t count, int type, Comm comm,
                  cudaStream_t stream) {
  return add("ncclAllGather", {Kind::all_gather, static_cast<const std::byte*>(input),
                               static_cast<std::byte*>(result), count, type, 0, 0, comm, stream});
}
int ncclReduceScatter(const void* input, void* result, std::size_t count, int type, int op,
                      Comm comm, cudaStream_t stream) {
  return add("ncclReduceScatter",
             {Kind::reduce_scatter, static_cast<const std::byte*>(input),
              static_cast<std::byte*>(result), count, type, op, 0, comm, stream});
}
int ncclSend(const void* input, std::size_t count, int type, int peer, Comm comm,
             cudaStream_t stream) {
  return add("ncclSend", {Kind::send, static_cast<const std::byte*>(input), nullptr, count, type, 0,
                          peer, comm, stream});
}
int ncclRecv(void* result, std::size_t count, int type, int peer, Comm comm, cudaStream_t stream) {
  return add("ncclRecv", {Kind::receive, nullptr, static_cast<std::byte*>(result), count, type, 0,
                          peer, comm, stream});
}

}  // extern "C"
