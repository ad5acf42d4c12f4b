// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "scenarios/answers.h"

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

/// What --nccl-version says, as `library_version` answers; 0 where it is not given.
int read_nccl_version(Arguments& arguments);

/// Reads --jobs: worker processes, 0 for one per processor.
int read_jobs(Arguments& arguments);

/// Reads --launch, --nccl-version, --chunk and --engine, as far as the verb takes them; notes all
/// problems. What a benchmark would launch is compared with NCCL, unless --no-nccl is given.
void read_simulation(Arguments& arguments, Query& question);

/// Has the reader told after 5 s that another engine would be faster than the one asked for.
void remind_of_engine(Progress& progress, const RunOptions& run);

/// What --budget grants searches, in seconds; infinity where it is not given.
double read_budget_s(Arguments& arguments);

/// The algorithms that --algorithm names, each once. A word that does not serve the collective is
/// noted as a problem.
struct AlgorithmWords {
  std::vector<std::string> names;
  bool all = false;  ///< "all" was among them: those that do not apply are then no error
};
AlgorithmWords read_algorithms(Arguments& arguments, Collective collective,
                               const std::function<void(const std::string& word)>& check);

/// Reads the options that describe a question, as far as the verb takes them; notes all problems.
/// Collective and root are those of `asked` where no option says them, or else those of a program
/// in a file.
Sweep read_sweep(Arguments& arguments, const std::optional<Contract>& asked = {});

/// Prints what does not apply here, unless `conclude` raises it as an error.
void print_not_here(const Console& console, const Answers& answers, bool all_algorithms);
void print_not_here(const Console& console, const TrainingAnswers& answers, bool all_algorithms);

/// The exit code: 1 when a program was refused or a result was wrong, else 0. Throws
/// Error{unsupported} when something was asked for by name that does not apply, or when nothing
/// applied at all.
int conclude(const Answers& answers, bool all_algorithms);
int conclude(const TrainingAnswers& answers, bool all_algorithms);

}  // namespace espalier
