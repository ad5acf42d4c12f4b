// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "scenarios/study.h"

namespace espalier {

/// What the options of `sim` and `exec` ask: one question for each size and algorithm.
struct Sweep {
  Query question;  ///< size and algorithm still to be filled in
  std::vector<std::int64_t> sizes;
  std::vector<std::string> algorithms;
  bool all_algorithms = false;  ///< those that do not apply are then no error

  std::vector<Query> queries() const;  ///< by size, then by algorithm
};

/// Reads --topology, --gpus, --relay, --links, --profile, and --ranks where the verb takes it;
/// notes all problems. Returns how many ranks there are, 0 where a problem hides it.
int read_machine(Arguments& arguments, Query& question);

/// Reads --chunk and --engine, as far as the verb takes them; notes all problems.
void read_simulation(Arguments& arguments, Query& question);

/// The algorithms that --algorithm names, each once. A word that does not serve the collective is
/// noted as a problem.
struct AlgorithmWords {
  std::vector<std::string> names;
  bool all = false;  ///< "all" was among them: those that do not apply are then no error
};
AlgorithmWords read_algorithms(Arguments& arguments, Collective collective,
                               const std::function<void(const std::string& word)>& check);

/// Reads the options that describe a question, as far as the verb takes them; notes all problems.
Sweep read_sweep(Arguments& arguments);

/// An algorithm that was not run, and on which questions.
struct Skipped {
  std::string topology;  ///< empty without a machine
  std::string profile;
  std::vector<int> gpus;
  std::vector<int> relays;
  LinkScope links = LinkScope::all;
  std::string collective;
  std::string algorithm;
  std::string model;  ///< of training
  std::string reason;
  std::string instead;  ///< what is possible, where that is known
  AskedBy asked_by;
  bool operator==(const Skipped&) const = default;
};

Skipped skipped_of(const Query& query, std::string reason, std::string instead);

/// The answers of a sweep that ran, in the order asked, without their programs (which may be
/// large).
struct Answers {
  std::vector<Outcome> outcomes;
  std::vector<Skipped> skipped;     ///< each once
  std::vector<std::string> broken;  ///< algorithms whose program the verifier refused

  /// An algorithm that was not run, and one whose program the verifier refused.
  void skip(const Skipped& one);
  void refuse(const std::string& algorithm);
  void add(Outcome outcome);
  void add(Answers more);
  /// Notes who asked all this.
  void label(const AskedBy& asked_by);
  /// The fastest of those with the largest message; null when nothing ran.
  const Outcome* best() const;
};

/// "# Not here: ring: no route ...": below a table.
void print_skipped(const Console& console, const Answers& answers);

/// The exit code: 1 when a program was refused or a result was wrong, else 0.
int verdict(const Answers& answers);

/// The verdict, but throws Error{unsupported} when something was asked for by name that does not
/// apply, or when nothing applied at all.
int conclude(const Answers& answers, bool all_algorithms);

/// "all" or "fabric", as --links takes them.
std::string_view to_string(LinkScope links);
/// "0-3,6"
std::string format_ranges(const std::vector<int>& numbers);
/// "dgx1-v100, GPUs 0-3,6 (5 ranks), relays 4,5" or "4 ranks".
std::string describe_ranks(const Query& query, int ranks);
/// "1GiB", or "40000000 bytes" for what is no round number of binary units.
std::string describe_size(std::int64_t size_bytes);
/// "ring", or "auto (ring)" when the algorithm was chosen for the query.
std::string algorithm_label(const Outcome& outcome);
/// Columns that the label of a query's outcome may take. Throws what `Study::tuning_table` throws.
std::size_t widest_label(Study& study, const Query& query);
/// "ring 1GiB": the label of a step of a progress bar.
std::string progress_label(const Query& query);

}  // namespace espalier
