// SPDX-License-Identifier: Apache-2.0
// Stands in for exec/cuda/ where there is no CUDA toolkit.
#include <cstdlib>

#include "core/check.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_inventory.h"
#include "exec/cuda/nccl_backend.h"

namespace espalier {

namespace cuda {
class MachineCheck {};
}  // namespace cuda

struct CudaBackend::Sessions {};

std::optional<std::string> cuda_unavailable() { return "this espalier was built without CUDA"; }

bool cuda_abandoned() { return false; }

void end_process(int exit_code) { std::exit(exit_code); }

CudaBackend::CudaBackend(std::vector<int>, UnnamedDevices) {
  throw Error(ErrorKind::unsupported, *cuda_unavailable(),
              "install the CUDA toolkit and build again");
}
CudaBackend::~CudaBackend() = default;

std::optional<std::string> CudaBackend::unsupported(const Program&, const Target&) const {
  return cuda_unavailable();
}

RunReport CudaBackend::run(const Program&, const Target&, const RunOptions&) {
  CHECK(false);  // nobody can make one
}

void CudaBackend::require_room(const Program&, const Target&, const RunOptions&) {
  CHECK(false);  // nobody can make one
}

std::vector<int> CudaBackend::gpus_of_ranks(const Program&, const Target&) {
  CHECK(false);  // nobody can make one
}

RunReport CudaBackend::run_nccl(cuda::NcclRanks&, const Program&, const Target&,
                                const RunOptions&) {
  CHECK(false);  // nobody can make one
}

int require_nccl() { throw Error(ErrorKind::unsupported, *cuda_unavailable()); }

struct NcclBackend::Loaded {};

NcclBackend::NcclBackend(CudaBackend& gpus) : gpus_(gpus) { require_nccl(); }
NcclBackend::~NcclBackend() = default;

std::optional<std::string> NcclBackend::unsupported(const Program& program,
                                                    const Target& target) const {
  return gpus_.unsupported(program, target);
}

RunReport NcclBackend::run(const Program&, const Target&, const RunOptions&) {
  CHECK(false);  // nobody can make one
}

Inventory cuda_inventory(const std::vector<int>&) {
  throw Error(ErrorKind::unsupported, *cuda_unavailable());
}

int cuda_gpus() { throw Error(ErrorKind::unsupported, *cuda_unavailable()); }

}  // namespace espalier
