// SPDX-License-Identifier: Apache-2.0
// Wrong models: everything the reader says about each, with its place.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/bad/expectations.h"
#include "training/model.h"

namespace espalier {
namespace {

class BadModel : public ::testing::TestWithParam<std::filesystem::path> {};

std::string diagnose(const std::string& text, const std::string& file) {
  try {
    parse_model(text, file);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
}

TEST_P(BadModel, IsRefusedWithTheExactReasons) { check_bad_file(GetParam(), diagnose); }

INSTANTIATE_TEST_SUITE_P(Files, BadModel,
                         ::testing::ValuesIn(bad_files(ESPALIER_BAD_DIR, "models", ".yaml")),
                         test_name_of);

}  // namespace
}  // namespace espalier
