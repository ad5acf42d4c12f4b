// SPDX-License-Identifier: Apache-2.0
// Wrong machines: everything the loader says about each, with its place.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/bad/expectations.h"
#include "topologies/load.h"

namespace espalier {
namespace {

class BadTopology : public ::testing::TestWithParam<std::filesystem::path> {};

std::string diagnose(const std::string& text, const std::string& file) {
  try {
    parse_topology(text, file);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
}

TEST_P(BadTopology, IsRefusedWithTheExactReasons) { check_bad_file(GetParam(), diagnose); }

INSTANTIATE_TEST_SUITE_P(Files, BadTopology,
                         ::testing::ValuesIn(bad_files(ESPALIER_BAD_DIR, "topologies", ".yaml")),
                         test_name_of);

}  // namespace
}  // namespace espalier
