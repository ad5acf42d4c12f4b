// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/launch.cuh"

namespace espalier::cuda {

cudaError_t launch_fold_of_floats(DataType type, ReduceOp op, std::byte* dst,
                                  const SourceList& sources, Extent extent, cudaStream_t stream) {
  switch (type) {
    case DataType::float32:
      return launch_fold_with<Native<float>>(op, dst, sources, extent, stream);
    case DataType::float64:
      return launch_fold_with<Native<double>>(op, dst, sources, extent, stream);
    case DataType::float16:
      return launch_fold_with<Half>(op, dst, sources, extent, stream);
    case DataType::bfloat16:
      return launch_fold_with<Bfloat16>(op, dst, sources, extent, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace espalier::cuda
