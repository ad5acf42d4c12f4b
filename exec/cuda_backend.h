// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/backend.h"

namespace espalier {

/// Why programs can't run on GPUs here, in a sentence: this espalier was built without CUDA, there
/// is no driver, an old one, or no GPU. Nothing where they can.
std::optional<std::string> cuda_unavailable();

/// Runs programs on the GPUs of this computer: lanes as streams, dependencies as events, the whole
/// captured once in a CUDA graph and repeated. Host memories are pinned memory of this computer.
/// Under a profile whose reductions are separate from copies (copy_engine), copies are made by copy
/// engines; otherwise, and without a machine, by kernels.
///
/// Options: the program first runs op by op, watched; with `check` that run and one of the graph
/// start from fresh inputs, everything else overwritten by a pattern, and every element of the
/// results and guards around all buffers are compared on the GPUs. Then come `warmup` and
/// `iterations` runs of the graph, timed by the GPU from before the first op until after the last.
/// In place they work on what the run before left; out of place the results are compared once more
/// after them. `timeline` is that of one more run, of a graph with events in it.
///
/// Memory and graphs of the latest programs are kept for when they are asked for again.
class CudaBackend : public Backend {
 public:
  /// The GPU of each rank and then of each relay, as CUDA numbers them; several may share one, and
  /// what a program does not need of them is ignored. Empty: they take turns on all GPUs. Throws
  /// Error{unsupported} with `cuda_unavailable`, and Error{usage} naming the GPUs that there are
  /// not.
  explicit CudaBackend(std::vector<int> devices = {});
  ~CudaBackend() override;

  std::string name() const override { return "cuda"; }
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  /// Throws Error{usage} before anything is launched when the program has more ranks and relays
  /// than devices were given, or when a GPU has not the memory; Error{runtime} naming ops when the
  /// program gets stuck, or naming the call, the GPU and the op when CUDA reports a failure. After
  /// a run got stuck nothing can be run any more.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;

 private:
  struct Sessions;
  std::vector<int> devices_;
  std::unique_ptr<Sessions> sessions_;
};

}  // namespace espalier
