// SPDX-License-Identifier: Apache-2.0
// The table of docs/tuning.md is what its command makes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"
#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "scenarios/tuning_table.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

constexpr std::string_view kHeader = "| message | Mist | Cedar |\n|---|---|---|\n";

/// The words of the page's command for static tables, without the program's name.
std::vector<std::string> words_of_command(const std::string& page) {
  const std::size_t begin = page.find("espalier tune --topology mist");
  if (begin == std::string::npos) return {};
  std::string command = page.substr(begin, page.find("```", begin) - begin);
  std::ranges::replace_if(
      command, [](char c) { return c == '\\' || c == '\n'; }, ' ');
  std::vector<std::string> words;
  for (const std::string& word : split(command, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  words.erase(words.begin());
  return words;
}

/// What the command writes when it is asked for `machine`.
TuningTable tuned(std::vector<std::string> words, const std::string& machine) {
  const std::string file = temp_file("put_" + std::string(machine) + ".yaml");
  std::ranges::replace(words, std::string("mist"), machine);
  std::ranges::replace(words, std::string("put.yaml"), file);
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_app(words, out, err), 0) << err.str();
  return parse_tuning(read_file(file), file);
}

std::string in_words(const TuningRow& row) {
  if (row.algorithm == "direct") return "straight";
  static const std::regex two_paths("multipath:host_share=([0-9]+),streams=([0-9]+)");
  std::smatch match;
  if (!std::regex_match(row.algorithm, match, two_paths)) return row.algorithm;
  const std::string plural = match[2] == "1" ? "" : "s";
  return fmt::format("{} %, {} stream{}", match[1].str(), match[2].str(), plural);
}

TEST(TuningPage, ShowsTheTablesThatItsCommandMakes) {
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/tuning.md";
  const std::string page = read_file(path);
  const std::vector<std::string> words = words_of_command(page);
  ASSERT_FALSE(words.empty());
  const TuningTable mist = tuned(words, "mist");
  const TuningTable cedar = tuned(words, "cedar");
  std::set<std::int64_t> sizes;
  for (const TuningRow& row : mist.rows) sizes.insert(row.up_to_bytes);
  for (const TuningRow& row : cedar.rows) sizes.insert(row.up_to_bytes);
  std::string fresh(kHeader);
  for (const std::int64_t size : sizes) {
    fresh += fmt::format("| up to {} | {} | {} |\n", format_bytes(size),
                         in_words(mist.row_for(size)), in_words(cedar.row_for(size)));
  }
  const std::size_t begin = page.find(kHeader);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("\n\n", begin) + 1;
  const std::string updated = page.substr(0, begin) + fresh + page.substr(end);
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") write_file(path, updated);
  EXPECT_EQ(read_file(path), updated) << "ESPALIER_UPDATE=1 writes it";
}

}  // namespace
}  // namespace espalier
