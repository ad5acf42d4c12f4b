// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "training/model.h"

namespace espalier {

/// Gradients that are exchanged together.
struct Bucket {
  std::size_t first = 0;  ///< tensors [first, last), in the order of the gradients: the last
  std::size_t last = 0;   ///< tensor of the model is 0
  std::int64_t elements = 0;
};

/// Fills one fusion buffer after the other, in the order in which the backward pass computes
/// gradients: a tensor that no longer fits begins the next bucket, and one larger than the buffer
/// is a bucket by itself. 0 bytes: every tensor is a bucket. (Sergeev and Del Balso, Horovod,
/// 2018, section 5, "Tensor Fusion".)
std::vector<Bucket> fuse(const Model& model, std::int64_t buffer_bytes, int bytes_per_element);

/// How a message holds buckets one after the other: in units of `unit_elements` each, every bucket
/// padded to whole units, because a program's units are equal.
struct BucketLayout {
  std::int64_t unit_elements = 1;   ///< a power of two
  std::vector<std::int64_t> units;  ///< by bucket
  std::int64_t all_units = 0;

  std::int64_t bucket_bytes(std::size_t bucket, int bytes_per_element) const {
    return units[bucket] * unit_elements * bytes_per_element;
  }
};

/// The finest layout with at most `max_units` units.
/// \pre `max_units` is larger than the number of buckets
BucketLayout lay_out(const std::vector<Bucket>& buckets, std::int64_t max_units);

}  // namespace espalier
