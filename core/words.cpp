// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace espalier {

namespace {

constexpr std::size_t kMaxQuoted = 60;
constexpr std::size_t kMaxListed = 40;
/// More likely words than this are not likely, and are listed as the others.
constexpr std::size_t kMaxLikely = 8;
/// Shorter words are part of many others by chance.
constexpr std::size_t kMinContained = 3;
/// Longer words are no typing errors of ours, and comparing them takes quadratic time.
constexpr std::size_t kMaxCompared = 100;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Only the letters and digits, in lower case.
std::string bare(std::string_view text) {
  std::string result = lower(text);
  std::erase_if(result, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); });
  return result;
}

/// What `word` means where it is a synonym, or else its part before the first separator or digit
/// is; `those` picks candidates by their bare form.
template <class Those>
std::vector<std::string> by_synonym(std::string_view word, const Synonyms& synonyms,
                                    const Those& those) {
  for (const std::size_t end :
       {word.size(), word.find_first_of("-_."), word.find_first_of("-_.0123456789")}) {
    std::vector<std::string> meant;
    const std::string part = bare(word.substr(0, end));
    const std::string rest = bare(word).substr(part.size());
    for (const Synonym& synonym : synonyms) {
      if (bare(synonym.word) != part) continue;
      const std::string means = bare(synonym.means);
      auto found = those([&](const std::string& one) { return one == means + rest; });
      if (found.empty()) {
        found = those([&](const std::string& one) { return one.starts_with(means); });
      }
      for (std::string& one : found) {
        if (std::ranges::count(meant, one) == 0) meant.push_back(std::move(one));
      }
    }
    if (!meant.empty()) return meant;
  }
  return {};
}

/// Optimal string alignment distance: insertions, deletions, changes and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += separator;
    text += words[i];
  }
  return text;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string counted(std::size_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", singular);
  return plural.empty() ? fmt::format("{} {}s", count, singular)
                        : fmt::format("{} {}", count, plural);
}

std::string format_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last == i + 1) last = i;
    if (!text.empty()) text += ',';
    text +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

std::string quote(std::string_view text) {
  const char* more = text.size() > kMaxQuoted ? "..." : "";
  return fmt::format("'{}{}'", printable(text.substr(0, kMaxQuoted)), more);
}

std::string dot_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kMaxCompared) return {};
  const std::string wanted = lower(word);
  // A third of the letters may be wrong, and never all of them.
  const std::size_t allowed = std::min((wanted.size() + 2) / 3, wanted.size() - 1);
  std::size_t best_distance = allowed + 1;
  std::string best;
  std::string begins_with;
  for (const std::string& candidate : candidates) {
    const std::string other = lower(candidate);
    if (begins_with.empty() && wanted.size() >= 3 && other.starts_with(wanted)) {
      begins_with = candidate;
    }
    const std::size_t longer = std::max(wanted.size(), other.size());
    const std::size_t shorter = std::min(wanted.size(), other.size());
    if (longer - shorter >= best_distance) continue;
    const std::size_t distance = edit_distance(wanted, other);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best.empty() ? begins_with : best;
}

std::vector<std::string> likely_meant(std::string_view word,
                                      const std::vector<std::string>& candidates,
                                      const Synonyms& synonyms) {
  const std::string wanted = bare(word);
  if (wanted.empty() || word.size() > kMaxCompared) return {};
  const auto those = [&](auto&& is_meant) {
    std::vector<std::string> found;
    std::ranges::copy_if(candidates, std::back_inserter(found),
                         [&](const std::string& one) { return is_meant(bare(one)); });
    return found;
  };
  if (auto same = those([&](const std::string& one) { return one == wanted; }); !same.empty()) {
    return same;
  }
  if (auto meant = by_synonym(word, synonyms, those); !meant.empty()) return meant;
  const auto contains = [](const std::string& whole, const std::string& part) {
    return whole.find(part) != std::string::npos;
  };
  const auto close = those([&](const std::string& one) {
    return (one.size() == wanted.size() + 1 && contains(one, wanted)) ||
           (one.size() + 1 == wanted.size() && contains(wanted, one));
  });
  if (close.size() == 1) return close;
  if (wanted.size() >= kMinContained) {
    auto longer = those([&](const std::string& one) { return contains(one, wanted); });
    if (!longer.empty()) return longer;
  }
  const std::string near = nearest(word, candidates);
  return near.empty() ? std::vector<std::string>{} : std::vector{near};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         const Synonyms& synonyms) {
  const std::vector<std::string> likely = likely_meant(word, candidates, synonyms);
  if (!likely.empty() && likely.size() <= kMaxLikely) {
    const std::string last = "'" + likely.back() + "'?";
    if (likely.size() == 1) return "did you mean " + last;
    return "did you mean '" + join({likely.begin(), likely.end() - 1}, "', '") + "' or " + last;
  }
  if (candidates.empty()) return {};
  if (candidates.size() <= kMaxListed) return "one of: " + join(candidates, ", ");
  return "one of: " + join({candidates.begin(), candidates.begin() + kMaxListed}, ", ") + ", ...";
}

}  // namespace espalier
