// SPDX-License-Identifier: Apache-2.0
// Wrong files of profiles: everything the reader says about each, with its place.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/bad/expectations.h"
#include "topologies/load.h"
#include "topologies/profile_file.h"

namespace espalier {
namespace {

class BadProfile : public ::testing::TestWithParam<std::filesystem::path> {};

std::string diagnose(const std::string& text, const std::string& file) {
  try {
    parse_profile(text, file, load_topology("dgx-a100"));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
}

TEST_P(BadProfile, IsRefusedWithTheExactReasons) { check_bad_file(GetParam(), diagnose); }

INSTANTIATE_TEST_SUITE_P(Files, BadProfile,
                         ::testing::ValuesIn(bad_files(ESPALIER_BAD_DIR, "profiles", ".yaml")),
                         test_name_of);

}  // namespace
}  // namespace espalier
