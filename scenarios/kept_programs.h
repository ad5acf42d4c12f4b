// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/program.h"
#include "ir/verify.h"
#include "run/ways.h"

namespace espalier {

/// All that a program is built from, if its algorithm is Algorithm::of_ranks_alone or has a recipe.
struct Recipe {
  std::string algorithm;  ///< with its parameters
  Contract contract;      ///< its units are 0: the algorithm decides on them
  Fold fold;
  std::string of_machine;  ///< Algorithm::recipe; empty: nothing
  bool operator==(const Recipe&) const = default;
};

/// A program, and what is known of it whatever it is asked about.
struct KeptProgram {
  std::shared_ptr<const Program> program;
  std::vector<Recipe> recipes = {};          ///< that it is known to be of
  std::optional<Verification> verdict = {};  ///< of one from a file, known from the beginning
  std::shared_ptr<const Ways> ways = {};     ///< once they were asked for, unless they are many
  std::shared_ptr<std::any> found = {};      ///< RunOptions::found, while it is among the latest
};

/// Questions about one machine after another are mostly answered by the same few programs. Kept are
/// the latest, of a quarter of a million ops together at most, whatever else a study forgets.
class KeptPrograms {
 public:
  /// The earlier one that is the same, or else this one, which is kept. \pre it was
  /// built: problems of one from a file name its lines, which others need not share
  std::shared_ptr<KeptProgram> shared(std::shared_ptr<const Program> program);

  /// The program of a choice, which is built when it is first asked for. Null where it is neither
  /// Algorithm::of_ranks_alone nor has a recipe.
  std::shared_ptr<const Program> built(const AlgorithmChoice& choice, const BuildRequest& request);

  /// Of a program and its first `groups` groups, found once where the program is kept.
  std::shared_ptr<const Ways> ways(const Program& program, int groups);

  std::size_t programs() const { return known_.size(); }

 private:
  std::deque<std::shared_ptr<KeptProgram>> known_;  ///< the latest comes last
  std::size_t ops_ = 0;                             ///< of them all
};

/// What `verify` says of it, which is noted.
const Verification& verdict_on(KeptProgram& known);

}  // namespace espalier
