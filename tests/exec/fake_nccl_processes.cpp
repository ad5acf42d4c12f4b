// SPDX-License-Identifier: Apache-2.0
// A library with NCCL's name and those of its calls that send and receive between processes, which
// are threads here. As in NCCL, what a stream is given is done in its order; the parts of a group
// go on side by side, and neither end of a message goes on before the other has come.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/exec/fake_kernels.h"

struct NcclCommunicator {
  int id = 0;
  int rank = 0;
  int ranks = 1;
};

namespace {

using Comm = NcclCommunicator*;

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;

struct UniqueId {
  char bytes[128];
};

struct Part {
  bool is_send = false;
  std::byte* bytes = nullptr;
  std::size_t count = 0;
  bool is_over = false;
};
using SharedPart = std::shared_ptr<Part>;

/// Those of one direction that have come and not met, in the order in which they have.
struct Pair {
  std::deque<SharedPart> sends;
  std::deque<SharedPart> receives;
};

struct World {
  std::mutex mutex;  // guards everything below
  int ids = 0;
  std::map<int, int> come;                          // by id: ranks
  std::map<std::tuple<int, int, int>, Pair> pairs;  // by id, sender and receiver
};

World& world() {
  static World only;
  return only;
}

struct Call {
  SharedPart part;
  int sender = 0;
  int receiver = 0;
  Comm comm = nullptr;
  cudaStream_t stream = nullptr;
};

thread_local std::vector<Call> group;
thread_local bool in_group = false;

/// \pre the world is locked
void match(Pair& pair) {
  while (!pair.sends.empty() && !pair.receives.empty()) {
    Part& from = *pair.sends.front();
    Part& to = *pair.receives.front();
    if (from.count != to.count) std::abort();
    std::memcpy(to.bytes, from.bytes, from.count);
    from.is_over = to.is_over = true;
    pair.sends.pop_front();
    pair.receives.pop_front();
  }
}

void come(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    Pair& pair = world().pairs[{call.comm->id, call.sender, call.receiver}];
    (call.part->is_send ? pair.sends : pair.receives).push_back(call.part);
    match(pair);
  }
}

bool is_over(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    if (!call.part->is_over) return false;
  }
  return true;
}

int add(bool is_send, std::byte* bytes, std::size_t count, int type, int peer, Comm comm,
        cudaStream_t stream) {
  constexpr int kUint8 = 1;
  const bool is_right = in_group && type == kUint8 && peer >= 0 && peer < comm->ranks &&
                        peer != comm->rank && count > 0;
  if (!is_right) return kInvalidArgument;
  auto part = std::make_shared<Part>(Part{is_send, bytes, count});
  group.push_back(
      {std::move(part), is_send ? comm->rank : peer, is_send ? peer : comm->rank, comm, stream});
  return kSuccess;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}
const char* ncclGetErrorString(int) { return "invalid usage"; }
int ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(world().mutex);
  const int number = ++world().ids;
  std::memcpy(id->bytes, &number, sizeof number);
  return kSuccess;
}
/// Returns when all ranks have come.
int ncclCommInitRank(Comm* comm, int ranks, UniqueId id, int rank) {
  int number = 0;
  std::memcpy(&number, id.bytes, sizeof number);
  const auto have_come = [&](int more) {
    const std::lock_guard lock(world().mutex);
    return world().come[number] += more;
  };
  have_come(1);
  while (have_come(0) < ranks) std::this_thread::sleep_for(std::chrono::microseconds(100));
  *comm = new NcclCommunicator{number, rank, ranks};
  return kSuccess;
}
int ncclCommDestroy(Comm comm) {
  delete comm;
  return kSuccess;
}
int ncclCommAbort(Comm comm) { return ncclCommDestroy(comm); }
int ncclCommGetAsyncError(Comm, int* status) {
  *status = kSuccess;
  return kSuccess;
}

int ncclGroupStart() {
  in_group = true;
  group.clear();
  return kSuccess;
}
int ncclGroupEnd() {
  in_group = false;
  if (group.empty()) return kSuccess;
  for (const Call& call : group) {
    if (call.stream != group.front().stream) return kInvalidUsage;
  }
  const cudaStream_t stream = group.front().stream;
  espalier::fake_cuda::launch_until(stream, [calls = std::move(group), begun = false]() mutable {
    const std::lock_guard lock(world().mutex);
    if (!begun) come(calls);
    begun = true;
    return is_over(calls);
  });
  group.clear();
  return kSuccess;
}

int ncclSend(const void* bytes, std::size_t count, int type, int peer, Comm comm,
             cudaStream_t stream) {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(bytes));
  return add(true, from, count, type, peer, comm, stream);
}
int ncclRecv(void* bytes, std::size_t count, int type, int peer, Comm comm, cudaStream_t stream) {
  return add(false, static_cast<std::byte*>(bytes), count, type, peer, comm, stream);
}

/// Collectives, which nobody calls here.
int ncclCommInitAll(Comm*, int, const int*) { return kInvalidUsage; }
int ncclAllReduce() { return kInvalidUsage; }
int ncclReduce() { return kInvalidUsage; }
int ncclBroadcast() { return kInvalidUsage; }
int ncclAllGather() { return kInvalidUsage; }
int ncclReduceScatter() { return kInvalidUsage; }

}  // extern "C"
