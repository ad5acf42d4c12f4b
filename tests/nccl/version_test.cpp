// SPDX-License-Identifier: Apache-2.0
#include "nccl/version.h"

#include <gtest/gtest.h>

#include "topologies/launch_costs.h"

namespace espalier {
namespace {

std::string nearest(const char* version) {
  return nccl_version_text(nearest_nccl(*library_version(version)));
}

TEST(NcclVersion, HasPatchesWhereTheyHaveRulesOfTheirOwn) {
  EXPECT_EQ(nearest("2.18"), "2.18");
  EXPECT_EQ(nearest("2.18.1"), "2.18");
  EXPECT_EQ(nearest("2.18.3"), "2.18.3");
  EXPECT_EQ(nearest("2.18.5"), "2.18");
  EXPECT_EQ(nearest("2.21.3"), "2.21");
  EXPECT_EQ(nearest("2.30.7"), "2.30");
  EXPECT_EQ(nearest("2.31.1"), "2.30");
  EXPECT_EQ(nearest("2.3.7"), "2.4");
  EXPECT_EQ(nearest("3.0.3"), "2.30");
  EXPECT_EQ(nearest("1.18.3"), "2.4");
}

TEST(NcclVersion, IsListedByNumber) {
  int last = 0;
  bool has_2_18_3 = false;
  for (const NcclVersion version : all_nccl_versions()) {
    EXPECT_GT(nccl_library_version(version), last);
    last = nccl_library_version(version);
    has_2_18_3 = has_2_18_3 || version.is_2_18_3();
  }
  EXPECT_TRUE(has_2_18_3);
  EXPECT_EQ(nccl_library_version(all_nccl_versions().front()), 200400);
  EXPECT_EQ(last, 203000);
}

}  // namespace
}  // namespace espalier
