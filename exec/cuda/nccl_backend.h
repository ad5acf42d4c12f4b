// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/cuda/cuda_backend.h"

namespace espalier {

/// The version of NCCL that is here, as `library_version` has it: 202809 of 2.28.9. Throws
/// Error{unsupported} where this espalier was built without CUDA, there is no NCCL, or one whose
/// calls may be others.
int require_nccl();

/// Runs NCCL's own collective in place of a program, for the same contract, on the same buffers of
/// the same GPUs: what programs are measured against. Has no timeline.
class NcclBackend : public Backend {
 public:
  /// \p gpus whose buffers are used; must outlive it. Throws what `require_nccl` throws.
  explicit NcclBackend(CudaBackend& gpus);
  ~NcclBackend() override;

  std::string name() const override { return "nccl"; }
  /// Ranks that share a GPU, and what NCCL has no collective for.
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  /// Throws what CudaBackend::run_nccl throws.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;

 private:
  struct Loaded;
  CudaBackend& gpus_;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace espalier
