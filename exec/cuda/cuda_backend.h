// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/backend.h"

namespace espalier {

namespace cuda {
class MachineCheck;
class NcclRanks;
}  // namespace cuda

/// Why programs cannot run on GPUs here, in a sentence: this espalier was built
/// without CUDA, there is no driver or too old a one, or no GPU. Nothing if they can.
std::optional<std::string> cuda_unavailable();

/// Whether a run on GPUs did not end. Nothing can run on them any more then,
/// and CUDA might block a process that exits normally until that run ends.
bool cuda_abandoned();

/// Ends the process with this exit code: normally, or without the clean-up that would never end.
[[noreturn]] void end_process(int exit_code);

/// Where to put ranks and relays whose GPU is not named: in turn on all GPUs, or as in the target's
/// placement, where the machine is this computer: on the GPU with that number in its host.
enum class UnnamedDevices { in_turn, as_placed };

/// Runs programs on the GPUs of this computer: lanes as streams, dependencies as events, the whole
/// captured once in a CUDA graph and repeated. Host memories are pinned memory of this computer.
/// Copy engines do what the target's profile says (CopyEngineUse); without a machine, nothing.
///
/// Options: the program first runs op by op, watched; with `check` that run and one of the graph
/// start from fresh inputs, everything else overwritten by a pattern, and every element of the
/// results and guards around all buffers are compared on the GPUs. Then come `warmup` and
/// `iterations` runs of the graph, timed by the GPU from before the first op until after the last.
/// With `check`, out of place everything is compared once more after them. In place each works on
/// what the run before left, so only guards are; then the same graph runs once more from fresh
/// inputs, and everything is compared. `timeline` is that of one more run, of a graph with events
/// in it.
///
/// Memory and graphs of the latest programs are kept in case these are run again.
class CudaBackend : public Backend {
 public:
  /// The GPU of each rank and then of each relay, as CUDA numbers them; several may share one, and
  /// GPUs that a program does not need are ignored. Empty: see UnnamedDevices. Throws
  /// Error{unsupported} with `cuda_unavailable`, and Error{usage} with the numbers of GPUs that do
  /// not exist.
  explicit CudaBackend(std::vector<int> devices = {},
                       UnnamedDevices unnamed = UnnamedDevices::in_turn);
  ~CudaBackend() override;

  std::string name() const override { return "cuda"; }
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  /// Before anything is launched, throws Error{usage} when the program has more ranks and relays
  /// than devices were given, is placed on GPUs that this computer does not have or whose models or
  /// NVLinks are others than the machine's (with the devices that would be right), and OutOfMemory
  /// when a GPU or this computer has too little memory for all that can be counted (buffers,
  /// guards, copies, tables). During the run, throws OutOfMemory when memory that can't be counted
  /// (graphs) is missing, and Error{runtime}: with the ops when the program gets stuck, with the
  /// call, the GPU and the op when CUDA reports a failure. After a program got stuck, nothing can
  /// be run.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;
  void require_room(const Program& program, const Target& target,
                    const RunOptions& options) override;

  /// The GPU of each rank of the program, as CUDA numbers them. Throws as `run` does before
  /// anything is launched.
  std::vector<int> gpus_of_ranks(const Program& program, const Target& target);
  /// NCCL's own collective for the program's contract, on the buffers that `run` uses: checked and
  /// timed like the program, of which nothing runs. Throws what `run` throws, and Error{runtime}
  /// with what NCCL says. \pre the ranks are on `gpus_of_ranks`
  RunReport run_nccl(cuda::NcclRanks& nccl, const Program& program, const Target& target,
                     const RunOptions& options);

 private:
  struct Sessions;
  struct PlacedGpus {
    std::vector<int> by_place;       ///< as CUDA numbers them; DeviceSet::kHost for host memories
    std::vector<std::string> notes;  ///< what is to be said about them
  };
  template <class Work>
  RunReport run_session(const Program& program, const Target& target, const RunOptions& options,
                        const Work& work);
  PlacedGpus gpus_of_places(const Program& program, const Target& target);

  std::vector<int> devices_;
  UnnamedDevices unnamed_;
  std::unique_ptr<cuda::MachineCheck> machine_check_;
  std::unique_ptr<Sessions> sessions_;
};

}  // namespace espalier
