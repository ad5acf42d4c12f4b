// SPDX-License-Identifier: Apache-2.0
#include "formats/op_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace espalier {
namespace {

/// Lanes are thread blocks there, of the same numbers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWords{
    {{"on lane ", "in thread block "}, {"another lane", "another thread block"}}};

/// Reads one thing after the other; what does not match leaves it where it is.
class Scanner {
 public:
  explicit Scanner(std::string_view rest) : rest_(rest) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  template <class Number>
  bool take_number(Number& number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<OpId> take_op(Scanner& text) {
  OpId op = 0;
  if (!text.take("op ") || !text.take_number(op)) return std::nullopt;
  return op;
}

/// "r0.out[1:3]", as `to_string` of a slice writes it.
std::optional<Slice> take_slice(Scanner& text) {
  Slice slice;
  if (!text.take("r") || !text.take_number(slice.place) || !text.take(".")) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, Buffer>, 3> kBuffers{
      {{"in[", Buffer::in}, {"out[", Buffer::out}, {"tmp[", Buffer::tmp}}};
  const auto* buffer =
      std::ranges::find_if(kBuffers, [&](const auto& one) { return text.take(one.first); });
  if (buffer == kBuffers.end() || !text.take_number(slice.begin)) return std::nullopt;
  slice.buffer = buffer->second;
  std::int64_t end = slice.begin + 1;
  if (text.take(":") && !text.take_number(end)) return std::nullopt;
  if (!text.take("]")) return std::nullopt;
  slice.length = end - slice.begin;
  return slice;
}

std::string named(std::string_view text, const ForeignNames& names) {
  std::string result;
  bool is_in_word = false;  // "stop 3" has no op
  while (!text.empty()) {
    if (!is_in_word) {
      Scanner op(text), slice(text);
      if (const auto found = take_op(op)) {
        result += names.op(*found);
        text = op.rest();
        continue;
      }
      if (const auto found = take_slice(slice)) {
        result += names.slice(*found);
        text = slice.rest();
        continue;
      }
    }
    is_in_word = std::isalnum(static_cast<unsigned char>(text.front())) != 0;
    result += text.front();
    text.remove_prefix(1);
  }
  for (const auto& [ours, theirs] : kWords) {
    for (std::size_t at = result.find(ours); at != std::string::npos; at = result.find(ours, at)) {
      result.replace(at, ours.size(), theirs);
      at += theirs.size();
    }
  }
  return result;
}

/// " (and 3 more)" at the end of the last problem of a rule, taken off; empty elsewhere.
std::string take_count(std::string& message) {
  const std::size_t at = message.rfind(" (and ");
  if (at == std::string::npos || !message.ends_with(" more)")) return {};
  std::string count = message.substr(at);
  message.resize(at);
  return count;
}

}  // namespace

void use_foreign_names(std::vector<Diagnostic>& problems, const ForeignNames& names) {
  std::vector<Diagnostic> kept;
  for (Diagnostic& problem : problems) {
    problem.message = named(problem.message, names);
    problem.suggestion = named(problem.suggestion, names);
    const std::string count = take_count(problem.message);
    const bool is_said = std::ranges::any_of(kept, [&](const Diagnostic& other) {
      return other.rule == problem.rule && other.message == problem.message &&
             other.where.line == problem.where.line;
    });
    if (!is_said) kept.push_back(std::move(problem));
    kept.back().message += count;
  }
  problems = std::move(kept);
}

std::string foreign_slice(std::string_view buffer, std::int64_t begin, std::int64_t end, int gpu) {
  return end == begin + 1 ? fmt::format("{}[{}] of gpu {}", buffer, begin, gpu)
                          : fmt::format("{}[{}:{}] of gpu {}", buffer, begin, end, gpu);
}

}  // namespace espalier
