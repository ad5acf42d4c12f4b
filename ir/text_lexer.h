// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace espalier {

/// How the kinds of places (PlaceKind, in its order) are written, called, and counted in the
/// header.
struct PlaceName {
  char letter;
  std::string_view one, many;
};
inline constexpr std::array<PlaceName, 3> kPlaceNames = {
    {{'r', "rank", "ranks"}, {'h', "host memory", "hosts"}, {'g', "relay", "relays"}}};

/// Bytes that a name may hold without quotes. Private to this room, as is the rest of this header.
inline bool is_plain_name_byte(char c) {
  return c > ' ' && c < 0x7f && c != '"' && c != '#' && c != '\\';
}

/// Reads one line of the text form from left to right. Every reader skips the blanks before what it
/// reads and moves on only when it finds it. A comment counts as the end of the line.
class LineLexer {
 public:
  explicit LineLexer(std::string_view line) : line_(line) {}

  /// Where the next token is, from 1.
  int column() {
    skip_blanks();
    return static_cast<int>(at_) + 1;
  }
  bool at_end() {
    skip_blanks();
    return at_ == line_.size() || line_[at_] == '#';
  }
  bool take(char c) {
    skip_blanks();
    return take_next(c);
  }
  /// Without blanks before it.
  bool take_next(char c) {
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_digit() {
    skip_blanks();
    return at_ < line_.size() && line_[at_] >= '0' && line_[at_] <= '9';
  }
  /// Decimal digits. A number that does not fit counts as the largest one.
  bool take_number(std::uint64_t& number) {
    if (!at_digit()) return false;
    const char* end = line_.data() + line_.size();
    const auto [rest, status] = std::from_chars(line_.data() + at_, end, number);
    if (status != std::errc{}) number = std::numeric_limits<std::uint64_t>::max();
    at_ = static_cast<std::size_t>(rest - line_.data());
    return true;
  }
  /// A floating-point number in any of the usual forms; infinity when it is too large.
  bool take_real(double& number);
  /// A word of letters and underscores; empty when there is none.
  std::string_view take_word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < line_.size() && is_letter(line_[at_])) ++at_;
    return line_.substr(begin, at_ - begin);
  }
  /// A plain or quoted name. False when there is none or its quotes or escapes are wrong.
  bool take_name(std::string& name);
  /// What stands next, quoted for a message: up to a blank, or "the end of the line".
  std::string describe_next();

 private:
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  void skip_blanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  bool take_quoted(std::string& name);

  std::string_view line_;
  std::size_t at_ = 0;
};

}  // namespace espalier
