// SPDX-License-Identifier: Apache-2.0
#include "topologies/launch_costs.h"

#include <fmt/format.h>

#include <charconv>

#include "core/check.h"

namespace espalier {
namespace {

/// Versions are MAJOR * kMajor + MINOR.
constexpr int kMajor = 1000;

}  // namespace

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
  int major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, wrong] = std::from_chars(text.data(), end, major);
  if (wrong != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, wrong_too] = std::from_chars(dot + 1, end, minor);
  if (wrong_too != std::errc() || major < 1 || minor < 0 || major >= kMajor || minor >= kMajor) {
    return std::nullopt;
  }
  if (rest != end && *rest != '.' && *rest != '+' && *rest != '-') return std::nullopt;
  return major * kMajor + minor;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / kMajor, version % kMajor);
}

}  // namespace espalier
