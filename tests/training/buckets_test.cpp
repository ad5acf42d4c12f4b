// SPDX-License-Identifier: Apache-2.0
#include "training/buckets.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

/// Elements are given in forward order.
Model model_of(const std::vector<std::int64_t>& elements) {
  Model model;
  for (const std::int64_t count : elements) {
    model.tensors.push_back({"t" + std::to_string(model.tensors.size()), count, 1});
  }
  return model;
}

std::vector<std::int64_t> sizes(const std::vector<Bucket>& buckets) {
  std::vector<std::int64_t> all;
  for (const Bucket& bucket : buckets) all.push_back(bucket.elements);
  return all;
}

TEST(Buckets, FillABufferFromTheLastLayer) {
  const Model model = model_of({3, 9, 2, 4, 5});
  // 40 bytes are 10 elements: 5 + 4, then 2 (11 would be too many), then 9, then 3.
  const std::vector<Bucket> buckets = fuse(model, 40, 4);
  EXPECT_EQ(sizes(buckets), (std::vector<std::int64_t>{9, 2, 9, 3}));
  EXPECT_EQ(buckets[0].first, 0U);
  EXPECT_EQ(buckets[0].last, 2U);
  EXPECT_EQ(buckets[1].first, 2U);
  EXPECT_EQ(buckets[3].last, 5U);
  // Of half the size twice as many fit: 5 + 4 + 2 + 9, which is exactly 20; then 3.
  EXPECT_EQ(sizes(fuse(model, 40, 2)), (std::vector<std::int64_t>{20, 3}));
}

TEST(Buckets, AreSingleTensorsWithoutABuffer) {
  const Model model = model_of({3, 9, 2});
  EXPECT_EQ(sizes(fuse(model, 0, 4)), (std::vector<std::int64_t>{2, 9, 3}));
  EXPECT_EQ(sizes(fuse(model, 20, 4)), (std::vector<std::int64_t>{2, 9, 3}));
  EXPECT_EQ(sizes(fuse(model, 1 << 20, 4)), (std::vector<std::int64_t>{14}));
}

TEST(Buckets, ArePaddedToUnits) {
  const std::vector<Bucket> buckets = fuse(model_of({3, 9, 2}), 0, 4);
  const BucketLayout exact = lay_out(buckets, 14);
  EXPECT_EQ(exact.unit_elements, 1);
  EXPECT_EQ(exact.units, (std::vector<std::int64_t>{2, 9, 3}));
  EXPECT_EQ(exact.all_units, 14);
  // Two elements a unit take 1 + 5 + 2 = 8, four 1 + 3 + 1 = 5.
  const BucketLayout coarse = lay_out(buckets, 7);
  EXPECT_EQ(coarse.unit_elements, 4);
  EXPECT_EQ(coarse.units, (std::vector<std::int64_t>{1, 3, 1}));
  EXPECT_EQ(coarse.bucket_bytes(1, 4), 48);
}

}  // namespace
}  // namespace espalier
