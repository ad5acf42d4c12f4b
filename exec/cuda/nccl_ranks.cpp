// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/nccl_ranks.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"
#include "exec/cuda/patience.h"

namespace espalier::cuda {
namespace {

/// As ncclDataType_t has it.
int nccl_type(DataType type) {
  switch (type) {
    case DataType::uint8:
      return 1;
    case DataType::int32:
      return 2;
    case DataType::int64:
      return 4;
    case DataType::float16:
      return 6;
    case DataType::float32:
      return 7;
    case DataType::float64:
      return 8;
    case DataType::bfloat16:
      return 9;
  }
  CHECK(false);
}

/// As ncclRedOp_t has it.
int nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return 0;
    case ReduceOp::prod:
      return 1;
    case ReduceOp::max:
      return 2;
    case ReduceOp::min:
      return 3;
  }
  CHECK(false);
}

}  // namespace

std::optional<std::string> nccl_lacks(const Contract& contract) {
  const bool overwrites_what_it_sends =
      contract.collective == Collective::alltoall || contract.collective == Collective::sendrecv;
  if (!contract.in_place || !overwrites_what_it_sends || contract.ranks == 1) return std::nullopt;
  return fmt::format("NCCL has no {} in place", to_string(contract.collective));
}

const char* nccl_call_name(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "ncclAllReduce";
    case Collective::reduce:
      return "ncclReduce";
    case Collective::broadcast:
      return "ncclBroadcast";
    case Collective::allgather:
      return "ncclAllGather";
    case Collective::reducescatter:
      return "ncclReduceScatter";
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::sendrecv:
      break;
  }
  return "ncclSend and ncclRecv";
}

NcclRanks::NcclRanks(std::shared_ptr<const NcclLibrary> library, std::vector<int> gpus,
                     double patience_s)
    : nccl_(std::move(library)), gpus_(std::move(gpus)) {
  const auto comms = std::make_shared<std::vector<NcclComm>>(gpus_.size(), nullptr);
  call_within(patience_s, "ncclCommInitAll", [calls = nccl_, devices = gpus_, comms]() mutable {
    calls.require(
        calls->comm_init_all(comms->data(), static_cast<int>(devices.size()), devices.data()),
        "ncclCommInitAll");
  });
  comms_ = *comms;
}

NcclRanks::~NcclRanks() {
  for (const NcclComm comm : comms_) nccl_.end(comm);
}

void NcclRanks::call(const NcclMessage& message, const std::vector<Stream>& streams) {
  nccl_.require(nccl_->group_start(), "ncclGroupStart");
  for (int rank = 0; rank < message.contract.ranks; ++rank) {
    use_gpu(gpus_[static_cast<std::size_t>(rank)]);
    call_rank(message, rank, streams[static_cast<std::size_t>(rank)].get());
  }
  nccl_.require(nccl_->group_end(), "ncclGroupEnd", comms_.front());
}

void NcclRanks::call_rank(const NcclMessage& message, int rank, cudaStream_t stream) {
  const auto index = static_cast<std::size_t>(rank);
  const NcclComm comm = comms_[index];
  std::byte* const result = message.results[index];
  const std::byte* const input = message.inputs[index];
  const std::size_t count = message.elements;
  const int type = nccl_type(message.type);
  const int op = nccl_op(message.op);
  const int root = message.contract.root;
  const Collective collective = message.contract.collective;
  const auto done = [&](int status) { nccl_.require(status, nccl_call_name(collective), comm); };
  switch (collective) {
    case Collective::allreduce:
      return done(nccl_->all_reduce(input, result, count, type, op, comm, stream));
    case Collective::reduce:
      return done(nccl_->reduce(input, result, count, type, op, root, comm, stream));
    case Collective::broadcast:
      return done(nccl_->broadcast(input, result, count, type, root, comm, stream));
    case Collective::allgather:
      return done(nccl_->all_gather(input, result, count, type, comm, stream));
    case Collective::reducescatter:
      return done(nccl_->reduce_scatter(input, result, count, type, op, comm, stream));
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::sendrecv:
      return exchange(message, rank, stream);
  }
}

/// What is made of sends and receives, as nccl-tests makes it. In place, a root keeps its own
/// block.
void NcclRanks::exchange(const NcclMessage& message, int rank, cudaStream_t stream) {
  const Contract& contract = message.contract;
  const auto index = static_cast<std::size_t>(rank);
  const NcclComm comm = comms_[index];
  const int type = nccl_type(message.type);
  const std::size_t block_bytes = message.elements * size_of(message.type);
  const auto send = [&](int peer, int block) {
    const std::byte* const from =
        message.inputs[index] + static_cast<std::size_t>(block) * block_bytes;
    nccl_.require(nccl_->send(from, message.elements, type, peer, comm, stream), "ncclSend", comm);
  };
  const auto receive = [&](int peer, int block) {
    std::byte* const to = message.results[index] + static_cast<std::size_t>(block) * block_bytes;
    nccl_.require(nccl_->receive(to, message.elements, type, peer, comm, stream), "ncclRecv", comm);
  };
  const int ranks = contract.ranks;
  const bool is_root = rank == contract.root;
  const bool keeps_own = is_root && contract.in_place;
  switch (contract.collective) {
    case Collective::gather:
      if (!keeps_own) send(contract.root, 0);
      for (int peer = 0; is_root && peer < ranks; ++peer) {
        if (peer != rank || !keeps_own) receive(peer, peer);
      }
      return;
    case Collective::scatter:
      for (int peer = 0; is_root && peer < ranks; ++peer) {
        if (peer != rank || !keeps_own) send(peer, peer);
      }
      if (!keeps_own) receive(contract.root, 0);
      return;
    case Collective::alltoall:
      if (contract.in_place) return;  // of one rank
      for (int peer = 0; peer < ranks; ++peer) {
        send(peer, peer);
        receive(peer, peer);
      }
      return;
    default:
      if (contract.in_place) return;  // of one rank
      send((rank + 1) % ranks, 0);
      receive((rank + ranks - 1) % ranks, 0);
  }
}

void NcclRanks::look() {
  for (const NcclComm comm : comms_) nccl_.look(comm);
}

}  // namespace espalier::cuda
