// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/launch.cuh"

namespace espalier::cuda {

cudaError_t launch_fold(DataType type, ReduceOp op, std::byte* dst, const SourceList& sources,
                        Extent extent, cudaStream_t stream) {
  switch (type) {
    case DataType::int32:
      return launch_fold_with<Native<std::int32_t>>(op, dst, sources, extent, stream);
    case DataType::int64:
      return launch_fold_with<Native<std::int64_t>>(op, dst, sources, extent, stream);
    case DataType::uint8:
      return launch_fold_with<Native<std::uint8_t>>(op, dst, sources, extent, stream);
    default:
      return launch_fold_of_floats(type, op, dst, sources, extent, stream);
  }
}

}  // namespace espalier::cuda
