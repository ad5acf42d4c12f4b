// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"

namespace espalier {

/// Wrong input files carry what must be said about them: their first lines are "# expect: " and a
/// line of the message each, exactly as the user sees it. ESPALIER_UPDATE=1 writes what is said
/// now.
inline constexpr std::string_view kExpect = "# expect: ";

/// The files of tests/bad/<folder> that end so, sorted. \p root is tests/bad.
inline std::vector<std::filesystem::path> bad_files(const std::filesystem::path& root,
                                                    const std::string& folder,
                                                    const std::string& extension) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Names a test after its file.
inline std::string test_name_of(const ::testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// The text without its expectations, which are moved to `expected`.
inline std::string take_expectations(std::string_view text, std::string& expected) {
  while (text.starts_with(kExpect)) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!expected.empty()) expected += '\n';
    expected += text.substr(kExpect.size(), end - kExpect.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::string(text);
}

inline std::string with_expectations(const std::string& said, const std::string& body) {
  std::string text;
  for (std::size_t begin = 0; begin < said.size();) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    text += std::string(kExpect) + said.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text + body;
}

/// Checks one file. `diagnose(text, file name)` answers what is said about a text, or nothing when
/// it is accepted, which is a failure as well.
template <class Diagnose>
void check_bad_file(const std::filesystem::path& path, Diagnose&& diagnose) {
  const std::string text = read_file(path.string());
  const std::string name = path.filename().string();
  std::string expected;
  const std::string body = take_expectations(text, expected);
  std::string said = diagnose(text, name);
  EXPECT_FALSE(said.empty()) << name << " is accepted";
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update == nullptr || std::string_view(update) != "1") {
    EXPECT_EQ(said, expected) << "ESPALIER_UPDATE=1 accepts what is said now";
    return;
  }
  // The expectations are lines too: what is said names other lines once their number changes.
  said = diagnose(with_expectations(said, body), name);
  write_file(path.string(), with_expectations(said, body));
}

}  // namespace espalier
