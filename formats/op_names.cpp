// SPDX-License-Identifier: Apache-2.0
#include "formats/op_names.h"

#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace espalier {
namespace {

constexpr std::string_view kWord = "op ";
/// Lanes are thread blocks there, of the same numbers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWords{
    {{"on lane ", "in thread block "}, {"another lane", "another thread block"}}};

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string named(std::string_view text, const std::function<std::string(OpId)>& name) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = text.find(kWord); at != std::string_view::npos;
       at = text.find(kWord, at + 1)) {
    if (at > 0 && is_letter(text[at - 1])) continue;  // "stop 3"
    const char* digits = text.data() + at + kWord.size();
    OpId op = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), op);
    if (error != std::errc() || end == digits) continue;
    result += text.substr(done, at - done);
    result += name(op);
    done = static_cast<std::size_t>(end - text.data());
  }
  result += text.substr(done);
  for (const auto& [ours, theirs] : kWords) {
    for (std::size_t at = result.find(ours); at != std::string::npos; at = result.find(ours, at)) {
      result.replace(at, ours.size(), theirs);
      at += theirs.size();
    }
  }
  return result;
}

}  // namespace

void name_ops(std::vector<Diagnostic>& problems, const std::function<std::string(OpId)>& name) {
  for (Diagnostic& problem : problems) {
    problem.message = named(problem.message, name);
    problem.suggestion = named(problem.suggestion, name);
  }
}

}  // namespace espalier
