// SPDX-License-Identifier: Apache-2.0
#include "topologies/launch_costs.h"

#include <fmt/format.h>

#include <charconv>
#include <climits>
#include <utility>

#include "core/check.h"
#include "topologies/library_version.h"

namespace espalier {
namespace {

/// Versions are MAJOR * kMajor + MINOR * kMinor + PATCH.
constexpr int kMajor = 100'000;
constexpr int kMinor = 100;

/// The number that the text begins with, and what follows it; nothing where it begins otherwise.
std::optional<std::pair<int, std::string_view>> leading_number(std::string_view text) {
  int number = 0;
  const auto [rest, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || number < 0) return std::nullopt;
  return std::pair(number, text.substr(static_cast<std::size_t>(rest - text.data())));
}

}  // namespace

std::string_view to_string(LaunchMode mode) {
  switch (mode) {
    case LaunchMode::single:
      return "single";
    case LaunchMode::per_gpu:
      return "per_gpu";
    case LaunchMode::graph:
      return "graph";
  }
  CHECK(false);
}

const std::vector<LaunchMode>& all_launch_modes() {
  static const std::vector<LaunchMode> all = {LaunchMode::single, LaunchMode::per_gpu,
                                              LaunchMode::graph};
  return all;
}

const LaunchCost& LaunchCosts::single_of(int version) const {
  CHECK(!single.empty());
  if (version == 0) return single.back();
  const LaunchCost* found = &single.front();
  for (const LaunchCost& cost : single) {
    if (cost.since <= version) found = &cost;
  }
  return *found;
}

std::optional<int> library_version(std::string_view text) {
  const auto major = leading_number(text);
  if (!major || !major->second.starts_with('.')) return std::nullopt;
  const auto minor = leading_number(major->second.substr(1));
  const bool is_known = minor && major->first >= 1 && major->first < INT_MAX / kMajor &&
                        minor->first < kMajor / kMinor;
  if (!is_known) return std::nullopt;
  const std::string_view rest = minor->second;
  if (!rest.empty() && rest[0] != '.' && rest[0] != '+' && rest[0] != '-') return std::nullopt;
  const auto patch = rest.starts_with('.') ? leading_number(rest.substr(1)) : std::nullopt;
  const bool has_patch = patch && patch->first < kMinor;
  return library_version(major->first, minor->first, has_patch ? patch->first : 0);
}

int library_version(int major, int minor, int patch) {
  CHECK(major < INT_MAX / kMajor && minor < kMajor / kMinor && patch < kMinor);
  return major * kMajor + minor * kMinor + patch;
}

int minor_of(int version) { return version % kMajor / kMinor; }

int patch_of(int version) { return version % kMinor; }

std::string version_text(int version) {
  std::string text = fmt::format("{}.{}", version / kMajor, minor_of(version));
  return patch_of(version) == 0 ? text : fmt::format("{}.{}", text, patch_of(version));
}

}  // namespace espalier
