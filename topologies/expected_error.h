// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/launch_costs.h"

namespace espalier {

/// Messages of similar size, whose deviations are summed up together: of more than so many bytes,
/// and of no more than so many.
struct SizeBand {
  std::int64_t above_bytes = 0;
  std::int64_t up_to_bytes = 0;
  std::string_view title;  ///< "up to 32 KiB", which is also its name in `errors` of a profile
};
/// Small messages, whose launch counts; up to 1 MiB and up to 16 MiB, where protocols change; and
/// the rest, where bandwidth decides. In ascending order.
const std::vector<SizeBand>& size_bands();

bool is_in(const SizeBand& band, std::int64_t bytes);

/// A time that was simulated and measured.
struct Deviation {
  std::int64_t bytes = 0;  ///< of the message
  double relative = 0;     ///< simulated / measured - 1
};
/// The deviations of a band.
struct BandDeviations {
  const SizeBand* band = nullptr;
  std::size_t times = 0;
  double median = 0;   ///< of the deviations' sizes: 0.1 is 10 %
  double largest = 0;  ///< same
};
/// Of the bands that have times.
std::vector<BandDeviations> by_band(const std::vector<Deviation>& deviations);

/// Of fewer ranks nothing says that others behave as they do: two have one peer each, and one moves
/// nothing.
inline constexpr int kLeastComparedRanks = 3;
/// Nor does it of more than the box of 8 GPUs that nearly all public measurements are of.
inline constexpr int kMostComparedRanks = 8;

/// How far simulated times were from measured ones: a row of a profile's `errors`, or what it says
/// of one band.
struct ComparedError {
  std::vector<std::string> models;            ///< beginnings of models of GPUs; "other": any
  std::vector<std::string> collectives = {};  ///< by name; empty: any
  std::vector<std::string> algorithms = {};   ///< as `Compared::algorithm`; empty: any
  /// What of a library's choice may have been forced, by parameter; of others, nothing was.
  std::vector<std::string> forced = {};
  std::vector<LaunchMode> launches = {};  ///< how calls were launched; empty: any way
  int min_ranks = kLeastComparedRanks;
  int max_ranks = kMostComparedRanks;
  bool in_switch = false;  ///< of programs that have ops in switches; else of all others
  bool in_fabric = true;   ///< of programs that use the GPU fabric only; else of all
  double above_bytes = 0;  ///< of messages larger than this,
  double up_to_bytes = std::numeric_limits<double>::infinity();  ///< and no larger than this
  double relative = 0;   ///< the median of |simulated / measured - 1|
  std::string compared;  ///< with what
  bool operator==(const ComparedError&) const = default;
};

/// What a row says of a band: of its sizes, those that are the row's. None, where `above_bytes` is
/// `up_to_bytes` or more.
ComparedError restricted_to(ComparedError row, const SizeBand& band);

/// By how much a simulated time is expected to be off.
struct ExpectedError {
  double relative = 0;       ///< 0.07: by 7 %
  std::string from;          ///< what it is known from
  bool is_estimate = false;  ///< nothing was compared
};

/// What is expected where nothing was compared: estimate, half as much again as the largest median
/// that a profile states of what was (19 %).
inline constexpr double kUncomparedError = 0.3;

/// What a simulated time is of.
struct Compared {
  std::string_view model;            ///< of its GPUs
  std::string_view collective = {};  ///< its name
  /// "ring"; of a library, which algorithm it chose: "nccl:algo=ring".
  std::string algorithm = {};
  /// The parameters of a library that have other values than it would have chosen.
  std::vector<std::string> forced = {};
  LaunchMode launch = LaunchMode::per_gpu;
  int ranks = kLeastComparedRanks;
  bool in_switch = false;  ///< the program has ops in switches
  bool in_fabric = true;   ///< it uses the GPU fabric only
  double bytes = 0;        ///< of the message
};

/// The error of the first row that fits, or the estimate.
ExpectedError expected_error(const std::vector<ComparedError>& errors, const Compared& what);
/// An estimate, and why it is one.
ExpectedError estimated_error(std::string why, double relative = kUncomparedError);

}  // namespace espalier
