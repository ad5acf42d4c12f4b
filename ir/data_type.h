// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier {

/// What messages consist of and how elements are combined. C++17: device compilers read this too.
enum class DataType : std::uint8_t { float32, float64, float16, bfloat16, int32, int64, uint8 };
enum class ReduceOp : std::uint8_t { sum, prod, min, max };

}  // namespace espalier
