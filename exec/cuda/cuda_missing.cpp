// SPDX-License-Identifier: Apache-2.0
// Stands in for exec/cuda/ where there is no CUDA toolkit.
#include <cstdlib>

#include "core/check.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_inventory.h"

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

Inventory cuda_inventory(const std::vector<int>&) {
  throw Error(ErrorKind::unsupported, *cuda_unavailable());
}

int cuda_gpus() { throw Error(ErrorKind::unsupported, *cuda_unavailable()); }

}  // namespace espalier
