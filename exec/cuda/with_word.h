// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace espalier::cuda {

/// Calls body with a value of the unsigned integer of that size and answers what it answers:
/// kernels that move elements need not know what these are.
template <class Body>
cudaError_t with_word(std::size_t element_bytes, Body&& body) {
  switch (element_bytes) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    case 8:
      return body(std::uint64_t{});
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace espalier::cuda
