// SPDX-License-Identifier: Apache-2.0
#include "core/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/words.h"

namespace espalier {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::size_t kMaxInts = std::size_t{1} << 20;
constexpr std::size_t kMaxDigits = 16;    // of a size's whole part; 2^50 has 16
constexpr std::size_t kMaxDecimals = 18;  // of a size's fraction; 10^18 fits 64 bits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Bytes of a unit's name in lower case; nothing when there is no such unit.
std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgtp";
  if (unit.empty() || unit == "b") return 1;
  const std::size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (rest.empty() || rest == "ib") return std::int64_t{1} << (10 * (power + 1));
  if (rest != "b") return std::nullopt;
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) bytes *= 1000;
  return bytes;
}

template <typename Integer>
std::optional<Integer> parse_whole(std::string_view text) {
  Integer value = 0;
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Three digits of a value in [0, 1024): "1.50", "15.0", "150".
std::string three_digits(double value) {
  // Rounding may add a digit: 9.996 is "10.0".
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

/// Appends the sizes of "a" or "a..b" to `sizes`.
void parse_byte_range(std::string_view part, std::vector<std::int64_t>& sizes) {
  const auto size = [&](std::string_view text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) {
      throw Error(ErrorKind::usage, quote(text) + " is not a size in bytes",
                  "write 1048576, 64KB, 1GiB, a list 1MiB,4MiB or a range 4KiB..1GiB; 1024TiB is "
                  "the limit");
    }
    return *bytes;
  };
  const std::size_t dots = part.find("..");
  if (dots == std::string_view::npos) {
    sizes.push_back(size(part));
    return;
  }
  const std::int64_t first = size(part.substr(0, dots));
  const std::int64_t last = size(part.substr(dots + 2));
  if (first <= 0 || first > last) {
    throw Error(ErrorKind::usage, "the range " + quote(part) + " is empty or begins at 0",
                "a range doubles from a first size above 0 up to the last: 4KiB..1GiB");
  }
  for (std::int64_t bytes = first; bytes <= last; bytes *= 2) sizes.push_back(bytes);
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  text = trim(text);
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  const std::string_view whole = text.substr(0, end);
  std::string_view decimals;
  if (end < text.size() && text[end] == '.') {
    const std::size_t begin = ++end;
    while (end < text.size() && is_digit(text[end])) ++end;
    decimals = text.substr(begin, end - begin);
    if (decimals.empty()) return std::nullopt;
  }
  std::string name(trim(text.substr(end)));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto unit = unit_bytes(name);
  if (!unit || whole.empty() || whole.size() > kMaxDigits || decimals.size() > kMaxDecimals) {
    return std::nullopt;
  }
  // Exact decimal arithmetic: at most 34 digits times 10^12 or 2^40 fit 128 bits only because the
  // whole part is checked against the limit first.
  const std::int64_t units = *parse_whole<std::int64_t>(whole);
  if (units > kMaxBytes / *unit) return std::nullopt;
  unsigned __int128 fraction = decimals.empty() ? 0 : *parse_whole<std::uint64_t>(decimals);
  unsigned __int128 scale = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
  fraction *= static_cast<unsigned __int128>(*unit);
  if (fraction % scale != 0) return std::nullopt;
  const std::int64_t bytes = units * *unit + static_cast<std::int64_t>(fraction / scale);
  if (bytes > kMaxBytes) return std::nullopt;
  return bytes;
}

std::vector<std::int64_t> parse_byte_list(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : split(text, ',')) parse_byte_range(part, sizes);
  return sizes;
}

std::optional<std::string> decimal_size(std::string_view list) {
  for (const std::string& part : split(list, ',')) {
    const std::size_t dots = part.find("..");
    for (const std::string_view size :
         {std::string_view(part).substr(0, dots),
          std::string_view(part).substr(dots == std::string::npos ? part.size() : dots + 2)}) {
      const std::string_view text = trim(size);
      // "64MB", not "64B", "64M" or "64MiB".
      const bool is_decimal =
          text.size() > 2 && (text.back() == 'B' || text.back() == 'b') &&
          std::string_view("kmgtpKMGTP").find(text[text.size() - 2]) != std::string_view::npos;
      if (is_decimal && parse_bytes(text)) return std::string(text);
    }
  }
  return std::nullopt;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::vector<int>> parse_int_list(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string& part : split(text, ',')) {
    const std::string_view range = trim(part);
    const std::size_t dash = range.find('-');
    const auto first = parse_whole<int>(trim(range.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : parse_whole<int>(trim(range.substr(dash + 1)));
    if (!first || !last || *first > *last) return std::nullopt;
    const std::size_t count =
        static_cast<std::size_t>(*last) - static_cast<std::size_t>(*first) + 1;
    if (count > kMaxInts - numbers.size()) return std::nullopt;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(*first + static_cast<int>(i));
  }
  return numbers;
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  const bool negative = bytes < 0;
  const std::uint64_t size =
      negative ? ~static_cast<std::uint64_t>(bytes) + 1 : static_cast<std::uint64_t>(bytes);
  const char* sign = negative ? "-" : "";
  for (std::size_t power = kUnits.size(); power-- > 0;) {
    const std::uint64_t unit = std::uint64_t{1} << (10 * power);
    if (size >= unit && size % unit == 0 && size / unit < 10000) {
      return fmt::format("{}{}{}", sign, size / unit, kUnits[power]);
    }
  }
  if (size == 0) return "0B";
  std::size_t power = kUnits.size() - 1;
  while (size >> (10 * power) == 0) --power;
  const double value = std::ldexp(static_cast<double>(size), -10 * static_cast<int>(power));
  return fmt::format("{}{}{}", sign, three_digits(value), kUnits[power]);
}

std::string describe_size(std::int64_t bytes) {
  std::string text = format_bytes(bytes);
  return parse_bytes(text) == bytes ? text : fmt::format("{} bytes", bytes);
}

std::string format_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  const double size = std::abs(seconds);
  const char* sign = seconds < 0 ? "-" : "";
  struct Unit {
    double per_second;
    const char* name;
  };
  constexpr std::array<Unit, 3> kUnits = {{{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}}};
  for (const Unit& unit : kUnits) {
    const double value = size * unit.per_second;
    if (value < 999.5) return fmt::format("{}{} {}", sign, three_digits(value), unit.name);
  }
  return fmt::format("{}{} s", sign, three_digits(size));
}

std::string format_gbps(double gbps) {
  constexpr double kMinShown = 0.005;
  if (gbps != 0 && std::abs(gbps) < kMinShown) return fmt::format("{:.3g}", gbps);
  return std::abs(gbps) < 1000 ? fmt::format("{:.2f}", gbps) : fmt::format("{:.0f}", gbps);
}

}  // namespace espalier
