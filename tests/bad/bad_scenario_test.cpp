// SPDX-License-Identifier: Apache-2.0
// Wrong scenarios: everything the reader says about each, with its place.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "scenarios/scenario.h"
#include "tests/bad/expectations.h"

namespace espalier {
namespace {

class BadScenario : public ::testing::TestWithParam<std::filesystem::path> {};

std::string diagnose(const std::string& text, const std::string& file) {
  try {
    parse_scenario(text, file);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
}

TEST_P(BadScenario, IsRefusedWithTheExactReasons) { check_bad_file(GetParam(), diagnose); }

INSTANTIATE_TEST_SUITE_P(Files, BadScenario,
                         ::testing::ValuesIn(bad_files(ESPALIER_BAD_DIR, "scenarios", ".yaml")),
                         test_name_of);

}  // namespace
}  // namespace espalier
