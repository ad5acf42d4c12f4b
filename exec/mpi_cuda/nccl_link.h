// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/cuda/nccl_library.h"
#include "exec/mpi/processes.h"

namespace espalier::cuda {

/// NCCL's communicator of all processes, a GPU each, all pairs of which are connected: NCCL would
/// connect a pair in the call that gives it the first group with a message between the two, and
/// wait there for the other end to give the same, which need not come before something else.
class NcclLink {
 public:
  /// All processes make one together; each waits for the others. \p gpu is the current one. Throws
  /// in all of them Error{unsupported} where one has no NCCL, Error{runtime} where it fails.
  static std::shared_ptr<NcclLink> make(const Processes& processes, int gpu);
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  /// "NCCL 2.28.9".
  std::string name() const { return nccl_.library().name(); }
  /// Between these, sends and receives that go on side by side: nobody else's have to be over for
  /// them. Throws Error{runtime}.
  void begin_group();
  void end_group();
  void send(int to, const std::byte* bytes, std::size_t count, cudaStream_t stream);
  void receive(int from, std::byte* bytes, std::size_t count, cudaStream_t stream);
  /// Throws Error{runtime} when NCCL has found out that something has failed.
  void look();

 private:
  explicit NcclLink(std::shared_ptr<const NcclLibrary> library) : nccl_(std::move(library)) {}
  void connect_all(int rank, int ranks, int gpu);

  NcclCalls nccl_;
  NcclComm comm_ = nullptr;
};

}  // namespace espalier::cuda
