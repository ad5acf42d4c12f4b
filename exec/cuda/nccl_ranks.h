// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/calls.h"
#include "exec/cuda/nccl_library.h"
#include "ir/data.h"

namespace espalier::cuda {

/// A collective on buffers that each rank has in its GPU's memory.
struct NcclMessage {
  Contract contract;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::size_t elements = 0;             ///< of a block where the collective has blocks, else of all
  std::vector<std::byte*> inputs = {};  ///< by rank; of who has none, null
  std::vector<std::byte*> results = {};  ///< by rank
};

/// Why NCCL has nothing that does what the contract asks: its send and receive calls may not share
/// buffers.
std::optional<std::string> nccl_lacks(const Contract& contract);

/// What NCCL does for it: "ncclAllReduce", "ncclSend and ncclRecv".
const char* nccl_call_name(Collective collective);

/// NCCL's communicators of some GPUs, a rank on each. Shared with calls that may never return.
class NcclRanks : public std::enable_shared_from_this<NcclRanks> {
 public:
  /// \p gpus as CUDA numbers them, each once. Throws Error{runtime} with what NCCL says, or that it
  /// has not come back within `patience_s`, after which the devices are abandoned.
  NcclRanks(std::shared_ptr<const NcclLibrary> library, std::vector<int> gpus, double patience_s);
  /// Gives them up, whatever they are doing, where a call has failed.
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  const NcclLibrary& library() const { return nccl_.library(); }
  const std::vector<int>& gpus() const { return gpus_; }

  /// Gives the collective to streams, by rank, as one group. Throws Error{runtime}.
  void call(const NcclMessage& message, const std::vector<Stream>& streams);
  /// Throws Error{runtime} when NCCL has found out that something it was given has failed.
  void look();

 private:
  void call_rank(const NcclMessage& message, int rank, cudaStream_t stream);
  void exchange(const NcclMessage& message, int rank, cudaStream_t stream);

  NcclCalls nccl_;
  std::vector<int> gpus_;
  std::vector<NcclComm> comms_;
};

}  // namespace espalier::cuda
