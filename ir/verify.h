// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.h"
#include "ir/program.h"

namespace espalier {

struct VerifyOptions {
  /// Report at most this many violations of each rule; the last one says how many more there are.
  int max_per_rule = 8;
};

struct Verification {
  std::vector<Diagnostic> problems;  ///< rule, sentence, line; empty: the program is right
  /// Every rank's result was combined in the same order, so all ranks agree to the last bit. When
  /// false the program is still right, but floating-point results may differ between ranks.
  bool order_consistent = true;
  bool ok() const { return problems.empty(); }
};

/// Checks rules R1..R9 of docs/ir.md (all but R10, which needs a machine: `check_routes`). Never
/// throws on a bad program. Contributions are counted, and told apart by linear hashes (64 bits,
/// fixed seed), so a wrong result of n contributions is accepted with probability of at most about
/// n 2^-64 per unit; failures are explained exactly. A program that is too large to be verified has
/// a problem of rule "limit", which says nothing about whether it is right.
Verification verify(const Program& program, const VerifyOptions& options = {});

}  // namespace espalier
