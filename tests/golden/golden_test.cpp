// SPDX-License-Identifier: Apache-2.0
// Command lines and exactly what they print. A file of this folder has
//
//   # what it shows
//   $ espalier sim --topology ring:n=4 ...
//   exit: 0
//   --- stdout
//   ...
//   --- stderr
//   ...
//
// Commands run in this folder. Values that are different every time are masked.
// ESPALIER_UPDATE=1 writes what comes out now.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"
#include "core/file.h"
#include "core/words.h"

namespace espalier {
namespace {

constexpr std::string_view kPrompt = "$ espalier";

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ESPALIER_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

/// Words between spaces; no test needs quotes.
std::vector<std::string> words_of_command(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line.substr(kPrompt.size()), ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string masked(const std::string& text) {
  static const std::regex changing("\"(wall_s|pid|start_time|end_time)\": (\"[^\"]*\"|[-+.e0-9]+)");
  return std::regex_replace(text, changing, "\"$1\": MASKED");
}

/// The comment and the command of a golden file: everything up to the end of the command's line.
std::string head_of(const std::string& text) {
  const std::size_t prompt = text.find(kPrompt);
  if (prompt == std::string::npos) return {};
  return text.substr(0, text.find('\n', prompt) + 1);
}

std::string run(const std::string& head) {
  const std::size_t prompt = head.find(kPrompt);
  const std::string line = head.substr(prompt, head.size() - prompt - 1);
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_app(words_of_command(line), out, err);
  std::string text = head + fmt::format("exit: {}\n", code);
  if (!out.str().empty()) text += "--- stdout\n" + masked(out.str());
  if (!err.str().empty()) text += "--- stderr\n" + err.str();
  return text;
}

class Golden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Golden, PrintsExactlyThis) {
  std::filesystem::current_path(ESPALIER_GOLDEN_DIR);
  const std::string expected = read_file(GetParam().string());
  const std::string head = head_of(expected);
  ASSERT_FALSE(head.empty()) << "no line begins with " << kPrompt;
  const std::string actual = run(head);
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") {
    write_file(GetParam().string(), actual);
  } else {
    EXPECT_EQ(actual, expected) << "ESPALIER_UPDATE=1 accepts what is printed now";
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(golden_files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace espalier
