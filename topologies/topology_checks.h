// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// Machines larger than this are refused before memory is asked for.
inline constexpr std::size_t kMaxNodes = std::size_t{1} << 18;
inline constexpr std::size_t kMaxLinks = std::size_t{1} << 21;

/// The values a figure may have. Limits are far beyond any machine and keep products of them
/// finite.
struct Range {
  double low;
  double high;
  const char* wish;  ///< "must be ..." in messages
  bool contains(double value) const { return value >= low && value <= high; }
};

inline constexpr Range kGbps = {1e-6, 1e6, "positive (in GB/s, 1e-6 to 1e6)"};
/// GB/s of all links together: sums of capacities in bytes/s, times the ranks that cuts are
/// searched for, fit 64 bits.
inline constexpr double kMaxTotalGbps = 1e8;
inline constexpr Range kMicroseconds = {0, 1e9, "0 or more (in us, at most 1e9)"};
inline constexpr Range kSeconds = {0, 1e4, "0 or more (in s, at most 1e4)"};
inline constexpr Range kEfficiency = {1e-6, 1, "above 0 and at most 1"};
inline constexpr Range kWire = {1, 100, "1 or more (bytes on links for every byte of data)"};
inline constexpr Range kSharpness = {1, 1000, "1 or more (an exponent, at most 1000), or none"};
inline constexpr std::string_view kNoSharpness = "none";
inline constexpr Range kKibibytes = {0, 1e9, "0 or more (in KiB, at most 1e9)"};
inline constexpr Range kMebibytes = {1e-3, 1e9, "positive (in MiB, 1e-3 to 1e9)"};
inline constexpr Range kPercent = {0, 1000, "0 or more (in %, at most 1000)"};
inline constexpr Range kCount = {1, 1e6, "1 or more (at most 1e6)"};
inline constexpr Range kYesOrNo = {0, 1, "0 or 1"};
inline constexpr Range kLimit = {0, 1e6, "0 or more (at most 1e6)"};
inline constexpr Range kSpeed = {1e-6, 1e6, "positive (1e-6 to 1e6; 1 is as fast as the model)"};
inline constexpr Range kNuma = {-1, 1e6, "0 or more (at most 1e6)"};

inline constexpr double kMebibyte = 1 << 20;

/// "WHAT is VALUE, but must be WISH", or an empty string when `value` is in `range`.
std::string outside(const Range& range, const std::string& what, double value);

/// Where a part of a machine was written, for machines that come from a file.
enum class Part { machine, node, link };
using Locate = std::function<Location(Part part, std::size_t index)>;

/// `check_topology` with places.
std::vector<Diagnostic> check_topology(const Topology& topology, const Locate& locate);

/// The same for a machine whose profiles are those of one that has passed: most of what is checked
/// is in them.
std::vector<Diagnostic> check_without_profiles(const Topology& topology);

}  // namespace espalier
