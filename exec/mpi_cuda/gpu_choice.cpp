// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_choice.h"

#include "core/check.h"

namespace espalier {

std::string_view to_string(GpuTransport transport) {
  switch (transport) {
    case GpuTransport::automatic:
      return "auto";
    case GpuTransport::mpi:
      return "mpi";
    case GpuTransport::staged:
      return "staged";
    case GpuTransport::nccl:
      return "nccl";
  }
  CHECK(false);
}

const std::vector<GpuTransport>& all_gpu_transports() {
  static const std::vector<GpuTransport> all = {GpuTransport::automatic, GpuTransport::mpi,
                                                GpuTransport::staged, GpuTransport::nccl};
  return all;
}

}  // namespace espalier
