// SPDX-License-Identifier: Apache-2.0
// Wrong files of other programs: everything their readers say about each, with its place. What must
// be said stands in a file of the same name that ends with ".expected"; `as` in the name before the
// extension ("p2p_row.as-dgx1-v100.txt") names the machine that fills in.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "formats/format.h"
#include "formats/measured_tables.h"
#include "tests/bad/expectations.h"
#include "topologies/load.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

/// What is said about a file as the user sees it, or nothing when it is accepted.
std::string diagnose(const std::string& text, const std::string& file) {
  const Format* format = recognise(text);
  if (format == nullptr) return "no known format";
  const std::size_t as = file.find(".as-");
  std::string said;
  try {
    if (format->read_machine != nullptr) {
      const std::string filling =
          as == std::string::npos ? "" : file.substr(as + 4, file.rfind('.') - as - 4);
      const Topology machine = filling.empty() ? Topology() : load_topology(filling);
      format->read_machine({text, file, filling.empty() ? nullptr : &machine});
    } else if (format->read_program != nullptr) {
      const ForeignProgram foreign = format->read_program({text, file});
      for (Diagnostic problem : foreign.verification.problems) {
        problem.where.file = file;
        said += (said.empty() ? "" : "\n") + render(problem);
      }
    } else {
      format->read_tables({text, file});
    }
  } catch (const Error& error) {
    said = error.what();
  }
  return said;
}

std::vector<fs::path> files() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(fs::path(ESPALIER_BAD_DIR) / "formats")) {
    if (entry.path().extension() != ".expected") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class BadFormat : public ::testing::TestWithParam<fs::path> {};

TEST_P(BadFormat, IsRefusedWithTheExactReasons) {
  const std::string name = GetParam().filename().string();
  const std::string said = diagnose(read_file(GetParam().string()), name) + "\n";
  EXPECT_NE(said, "\n") << name << " is accepted";
  const fs::path expected = GetParam().string() + ".expected";
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") write_file(expected.string(), said);
  EXPECT_EQ(said, fs::exists(expected) ? read_file(expected.string()) : "")
      << "ESPALIER_UPDATE=1 accepts what is said now";
}

INSTANTIATE_TEST_SUITE_P(Files, BadFormat, ::testing::ValuesIn(files()), test_name_of);

}  // namespace
}  // namespace espalier
