// SPDX-License-Identifier: Apache-2.0
// Wrong programs in the text form: what the parser says, and for those it reads, the verifier.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/bad/expectations.h"

namespace espalier {
namespace {

class BadProgram : public ::testing::TestWithParam<std::filesystem::path> {};

std::string diagnose(const std::string& text, const std::string& file) {
  try {
    std::string said;
    for (Diagnostic problem : verify(parse_program(text, file)).problems) {
      problem.where.file = file;
      if (!said.empty()) said += '\n';
      said += render(problem);
    }
    return said;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_P(BadProgram, IsRefusedWithTheExactReason) { check_bad_file(GetParam(), diagnose); }

INSTANTIATE_TEST_SUITE_P(Files, BadProgram,
                         ::testing::ValuesIn(bad_files(ESPALIER_BAD_DIR, "ir", ".esp")),
                         test_name_of);

}  // namespace
}  // namespace espalier
