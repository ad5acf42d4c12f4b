// SPDX-License-Identifier: Apache-2.0
// Stands in for exec/mpi_cuda/ where there is no CUDA toolkit.
#include "core/check.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/mpi_cuda/gpu_inventory.h"
#include "exec/mpi_cuda/gpu_memory.h"

namespace espalier {
namespace {

[[noreturn]] void say_missing() {
  throw Error(ErrorKind::unsupported, *cuda_unavailable(),
              "install the CUDA toolkit and build again");
}

class NoGpuMemory : public ProcessMemory {
 public:
  std::string name() const override { return "cuda"; }
  Scratch scratch() const override { return {}; }
  void add_needs(const HostData&, const Target&, const RunOptions&,
                 std::vector<MemoryNeed>&) override {
    say_missing();
  }
  std::unique_ptr<ProcessPart> prepare(const HostData&, const Target&, const LanePrograms&,
                                       const MessagePlan&) override {
    CHECK(false);  // nobody gets past what it needs
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<ProcessMemory> make_gpu_memory(const Processes&, GpuChoice) {
  return std::make_unique<NoGpuMemory>();
}

Inventory gpu_inventory(const Processes&, const GpuChoice&) { say_missing(); }

}  // namespace espalier
