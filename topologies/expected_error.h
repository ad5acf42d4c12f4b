// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// How far simulated times were from measured ones: a row of a profile's `errors`.
struct ComparedError {
  std::vector<std::string> models;  ///< beginnings of models of GPUs; "other": any
  bool in_switch = false;           ///< of programs that have ops in switches; else of all others
  bool in_fabric = true;   ///< of programs of one host that use the GPU fabric only; else of all
  double above_bytes = 0;  ///< of messages larger than this,
  double up_to_bytes = std::numeric_limits<double>::infinity();  ///< and no larger than this
  double relative = 0;   ///< the median of |simulated / measured - 1|
  std::string compared;  ///< with what
  bool operator==(const ComparedError&) const = default;
};

/// By how much a simulated time is expected to be off.
struct ExpectedError {
  double relative = 0;       ///< 0.07: by 7 %
  std::string from;          ///< what it is known from
  bool is_estimate = false;  ///< nothing was compared
};

/// What is expected where nothing was compared: estimate, about three times the largest median
/// deviation of what was (10 %).
inline constexpr double kUncomparedError = 0.3;

/// What a simulated time is of.
struct Compared {
  std::string_view model;  ///< of its GPUs
  bool in_switch = false;  ///< the program has ops in switches
  bool in_fabric = true;   ///< it is of one host and uses its GPU fabric only
  double bytes = 0;        ///< of the message
};

/// The error of the first row that fits, or the estimate.
ExpectedError expected_error(const std::vector<ComparedError>& errors, const Compared& what);
/// An estimate, and why it is one.
ExpectedError estimated_error(std::string why, double relative = kUncomparedError);

}  // namespace espalier
