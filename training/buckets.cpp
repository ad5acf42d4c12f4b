// SPDX-License-Identifier: Apache-2.0
#include "training/buckets.h"

#include "core/check.h"

namespace espalier {

std::vector<Bucket> fuse(const Model& model, std::int64_t buffer_bytes, int bytes_per_element) {
  const std::int64_t max_elements = buffer_bytes / bytes_per_element;
  std::vector<Bucket> buckets;
  std::size_t next = 0;
  for (auto tensor = model.tensors.rbegin(); tensor != model.tensors.rend(); ++tensor, ++next) {
    if (buckets.empty() || buckets.back().elements + tensor->elements > max_elements) {
      buckets.push_back({next, next, 0});
    }
    buckets.back().last = next + 1;
    buckets.back().elements += tensor->elements;
  }
  return buckets;
}

BucketLayout lay_out(const std::vector<Bucket>& buckets, std::int64_t max_units) {
  CHECK(max_units > static_cast<std::int64_t>(buckets.size()));
  BucketLayout layout;
  while (true) {
    layout.units.clear();
    layout.all_units = 0;
    for (const Bucket& bucket : buckets) {
      layout.units.push_back((bucket.elements - 1) / layout.unit_elements + 1);
      layout.all_units += layout.units.back();
    }
    if (layout.all_units <= max_units) return layout;
    layout.unit_elements *= 2;
  }
}

}  // namespace espalier
