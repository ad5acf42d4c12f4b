// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/nccl_link.h"

#include <span>
#include <utility>

#include "exec/cuda/calls.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/packed.h"

namespace espalier::cuda {
namespace {

constexpr int kSuccess = 0;
constexpr int kUint8 = 1;

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
  agree(processes, refusal_of([&] {
          link.reset(new NcclLink(NcclLibrary::load()));
          if (rank == 0) link->require(link->library_->get_unique_id(&id), "ncclGetUniqueId");
        }),
        {});
  id = share(processes, id);
  const Refusal refusal = refusal_of([&] {
    // As long as it takes, nobody gets further: the watchdog sees to it that it ends.
    const Meeting meeting(processes.board);
    use_gpu(gpu);
    link->require(
        link->library_->comm_init_rank(&link->comm_, processes.transport.processes(), id, rank),
        "ncclCommInitRank");
  });
  agree(processes, refusal, {});
  return link;
}

NcclLink::~NcclLink() {
  if (comm_ == nullptr || devices_abandoned()) return;
  if (has_failed_) {
    library_->comm_abort(comm_);
  } else {
    library_->comm_destroy(comm_);
  }
}

void NcclLink::require(int status, const char* call) {
  has_failed_ = has_failed_ || status != kSuccess;
  library_->require(status, call, comm_);
}

void NcclLink::begin_group() { require(library_->group_start(), "ncclGroupStart"); }

void NcclLink::end_group() { require(library_->group_end(), "ncclGroupEnd"); }

void NcclLink::send(int to, const std::byte* bytes, std::size_t count, cudaStream_t stream) {
  require(library_->send(bytes, count, kUint8, to, comm_, stream), "ncclSend");
}

void NcclLink::receive(int from, std::byte* bytes, std::size_t count, cudaStream_t stream) {
  require(library_->receive(bytes, count, kUint8, from, comm_, stream), "ncclRecv");
}

void NcclLink::look() {
  int status = kSuccess;
  require(library_->comm_async_error(comm_, &status), "ncclCommGetAsyncError");
  require(status, "NCCL");
}

}  // namespace espalier::cuda
