// SPDX-License-Identifier: Apache-2.0
// Wrong tuning tables: everything the reader says about each, with its place.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "scenarios/tuning_table.h"
#include "tests/bad/expectations.h"

namespace espalier {
namespace {

class BadTuning : public ::testing::TestWithParam<std::filesystem::path> {};

std::string diagnose(const std::string& text, const std::string& file) {
  try {
    parse_tuning(text, file);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
}

TEST_P(BadTuning, IsRefusedWithTheExactReasons) { check_bad_file(GetParam(), diagnose); }

INSTANTIATE_TEST_SUITE_P(Files, BadTuning,
                         ::testing::ValuesIn(bad_files(ESPALIER_BAD_DIR, "tuning", ".yaml")),
                         test_name_of);

}  // namespace
}  // namespace espalier
