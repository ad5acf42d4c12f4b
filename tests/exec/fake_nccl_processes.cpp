// SPDX-License-Identifier: Apache-2.0
// A library with NCCL's name and those of its calls that send and receive between processes, which
// are threads here. As in NCCL, what a stream is given is done in its order; the parts of a group
// go on side by side, and neither end of a message goes on before the other has come. The first
// group with a process is given when that has given its first one with this process, which has to
// have the same messages: NCCL connects the two there.
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
constexpr int kSystemError = 2;
constexpr int kInternalError = 3;
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

/// Of one process from another.
struct Wanted {
  bool sends = false;
  bool receives = false;
  bool operator==(const Wanted&) const = default;
};

struct World {
  std::mutex mutex;  // guards everything below
  int ids = 0;
  std::map<int, int> come;                          // by id: ranks
  std::map<std::tuple<int, int, int>, Pair> pairs;  // by id, sender and receiver
  // By id, process and other process: what the first has in its first group with the second.
  std::map<std::tuple<int, int, int>, Wanted> wanted;
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

/// What a process has not said before to others of its group.
std::map<int, Wanted> new_peers(const std::vector<Call>& calls) {
  const NcclCommunicator& comm = *calls.front().comm;
  const std::lock_guard lock(world().mutex);
  std::map<int, Wanted> peers;
  for (const Call& call : calls) {
    const int peer = call.part->is_send ? call.receiver : call.sender;
    if (world().wanted.contains({comm.id, comm.rank, peer})) continue;
    (call.part->is_send ? peers[peer].sends : peers[peer].receives) = true;
  }
  for (const auto& [peer, wanted] : peers) world().wanted[{comm.id, comm.rank, peer}] = wanted;
  return peers;
}

/// Waits for the other ends, as long as a test has time for.
int connect(const std::vector<Call>& calls) {
  const NcclCommunicator& comm = *calls.front().comm;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const auto& [peer, wanted] : new_peers(calls)) {
    for (;;) {
      if (std::chrono::steady_clock::now() > deadline) return kSystemError;
      {
        const std::lock_guard lock(world().mutex);
        const auto other = world().wanted.find({comm.id, peer, comm.rank});
        if (other != world().wanted.end()) {
          const Wanted mirrored{wanted.receives, wanted.sends};
          if (other->second != mirrored) return kInternalError;
          break;
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return kSuccess;
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
  if (const int status = connect(group); status != kSuccess) return status;
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
