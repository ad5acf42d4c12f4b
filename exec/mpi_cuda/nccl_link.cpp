// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/nccl_link.h"

#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "exec/cuda/calls.h"
#include "exec/cuda/memory.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/packed.h"
#include "exec/mpi_cuda/gpu_queue.h"

namespace espalier::cuda {
namespace {

constexpr int kUint8 = 1;
constexpr auto kPause = std::chrono::microseconds(100);

/// That of rank 0, which has made it.
NcclUniqueId share(const Processes& processes, const NcclUniqueId& mine) {
  const Meeting meeting(processes.board);
  const auto all = gather_from_all(processes.transport, std::as_bytes(std::span(&mine, 1)));
  NcclUniqueId id{};
  Unpacking(all.front()).get(id);
  return id;
}

}  // namespace

std::shared_ptr<NcclLink> NcclLink::make(const Processes& processes, int gpu) {
  std::shared_ptr<NcclLink> link;
  NcclUniqueId id{};
  const int rank = processes.transport.process();
  const int ranks = processes.transport.processes();
  agree(processes, refusal_of([&] {
          link.reset(new NcclLink(NcclLibrary::load()));
          if (rank == 0) link->nccl_.require(link->nccl_->get_unique_id(&id), "ncclGetUniqueId");
        }),
        {});
  id = share(processes, id);
  const Refusal refusal = refusal_of([&] {
    // As long as it takes, nobody gets further: the watchdog sees to it that it ends.
    const Meeting meeting(processes.board);
    use_gpu(gpu);
    link->nccl_.require(link->nccl_->comm_init_rank(&link->comm_, ranks, id, rank),
                        "ncclCommInitRank");
    link->connect_all(rank, ranks, gpu);
  });
  agree(processes, refusal, {});
  return link;
}

NcclLink::~NcclLink() { nccl_.end(comm_); }

/// A byte from everybody to everybody, in one group.
void NcclLink::connect_all(int rank, int ranks, int gpu) {
  if (ranks == 1) return;
  const auto bytes = static_cast<std::size_t>(ranks);
  const DeviceBytes memory = allocate(2 * bytes, gpu, "the first bytes of NCCL");
  auto* const out = static_cast<std::byte*>(memory.get());
  auto* const in = out + bytes;
  GpuQueue queue(gpu);
  begin_group();
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    send(peer, out + peer, 1, queue.stream());
    receive(peer, in + peer, 1, queue.stream());
  }
  end_group();
  queue.call([] {});
  try {
    while (!queue.is_idle()) {
      std::this_thread::sleep_for(kPause);
      look();
      queue.advance();
    }
  } catch (...) {
    abandon_devices();  // freeing would wait for the others
    throw;
  }
}

void NcclLink::begin_group() { nccl_.require(nccl_->group_start(), "ncclGroupStart"); }

void NcclLink::end_group() { nccl_.require(nccl_->group_end(), "ncclGroupEnd"); }

void NcclLink::send(int to, const std::byte* bytes, std::size_t count, cudaStream_t stream) {
  nccl_.require(nccl_->send(bytes, count, kUint8, to, comm_, stream), "ncclSend");
}

void NcclLink::receive(int from, std::byte* bytes, std::size_t count, cudaStream_t stream) {
  nccl_.require(nccl_->receive(bytes, count, kUint8, from, comm_, stream), "ncclRecv");
}

void NcclLink::look() { nccl_.look(comm_); }

}  // namespace espalier::cuda
