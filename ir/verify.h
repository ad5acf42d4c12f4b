// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/error.h"
#include "ir/program.h"

namespace espalier {

/// How results are compared with what they should be (R7).
enum class ResultComparison : std::uint8_t {
  automatic,  ///< exactly, unless that would take much longer than the other rules
  exact,      ///< exactly, or not at all
  random      ///< by sums of random weights, which take little memory however large the program is
};

struct VerifyOptions {
  /// Report at most this many violations of each rule; the last one says how many more there are.
  int max_per_rule = 8;
  ResultComparison comparison = ResultComparison::automatic;
  /// What random weights are made from. Unless given, every process draws its own from the
  /// operating system; whoever knows the seed can write a wrong program that passes a random
  /// comparison.
  std::optional<std::uint64_t> seed{};
  /// All units have the same number of elements, as runtimes demand that refuse other messages: an
  /// op may move units to another position within a block (R4).
  bool equal_units = false;
};

/// What stands behind a verdict on results.
enum class Proof : std::uint8_t {
  none,           ///< they were not compared: rules that come first are broken, or a limit is
  probabilistic,  ///< a wrong one passes with a probability of less than 2^-60 (R7)
  exact
};

struct Verification {
  std::vector<Diagnostic> problems;  ///< rule, sentence, line; empty: the program is right
  /// Every rank's result was combined in the same order, so all ranks agree to the last bit. When
  /// false the program is still right, but floating-point results may differ between ranks.
  bool order_consistent = true;
  /// Results are added up in a switch, in its order; ranks that get one op's result get the same.
  bool combines_in_switch = false;
  Proof proof = Proof::none;
  bool ok() const { return problems.empty(); }
};

/// Checks rules R1..R9 of docs/ir.md (all but R10, which needs a machine: `check_routes`). Never
/// throws on a bad program; Error{runtime} when a seed is needed and the operating system has no
/// randomness. A refusal is always certain and explained exactly, and the same whatever the seed. A
/// program that is too large to be verified has a problem of rule "limit", which says nothing about
/// whether it is right.
Verification verify(const Program& program, const VerifyOptions& options = {});

}  // namespace espalier
