// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "cli/console.h"
#include "scenarios/answers.h"
#include "scenarios/scenario_runner.h"
#include "scenarios/study_workers.h"
#include "scenarios/turns.h"

namespace espalier {

/// How many of the fastest a table of `sim` shows of each size where nobody named algorithms.
inline constexpr std::size_t kShownBest = 5;

/// Prints a table of simulations in the manner of nccl-tests: each size as soon as all of it is
/// known, fastest first, then the bounds with their certificates. Under `ideal`, which is theory,
/// nothing is said of benchmarks and errors.
class SimTable {
 public:
  /// Prints what stands above the table. The console and what was measured must outlive it.
  /// `most_rows`: of each size; what is below is counted only.
  SimTable(const Console& console, const TableHead& head, std::size_t most_rows = kAllRows);

  static constexpr std::size_t kAllRows = static_cast<std::size_t>(-1);

  /// The next answer, in the order of the questions.
  void add(const Outcome& outcome);
  /// The rows of the size that is being answered as they would stand by now, below the names of the
  /// columns.
  std::vector<std::string> pending() const;
  /// What stands below the table.
  void finish(const Answers& all);

 private:
  /// What a row shows, but not links and programs, which may be large.
  struct Row {
    double time_s = 0;
    double error = 0;  ///< relative, expected of the time
    std::string line;
    std::size_t outcome = 0;  ///< its number among those that ran
    std::string program;      ///< what ran, and how: the same for `optimal` and for what that chose
    bool is_chosen = false;   ///< by another algorithm, which left it open
  };

  struct Cells;
  std::string line(const Cells& cells) const;
  std::string column_names() const;
  std::vector<Row> best_rows() const;
  void print_rows();
  std::vector<Outcome> shown_of(const std::vector<Outcome>& outcomes) const;
  void print_left_out() const;

  const Console& console_;
  std::size_t most_rows_;
  std::size_t label_width_;
  bool has_benchmark_;               ///< columns of what a benchmark prints, and of errors
  bool has_nccl_;                    ///< a column of the speed-up over NCCL
  const MeasuredSeries* measured_;   ///< columns of what was measured; null: none
  std::string profile_;              ///< of the head
  std::vector<std::int64_t> sizes_;  ///< of the questions, in their order
  std::size_t answered_ = 0;
  std::vector<Row> rows_;  ///< of the size that is being answered
  std::size_t ran_ = 0;
  std::set<std::size_t> left_out_;  ///< numbers of those that ran but are not shown
  std::size_t most_left_out_ = 0;   ///< of one size
  bool has_open_left_out_ = false;  ///< one of them cannot be told from the fastest
  bool has_names_ = false;
  bool has_mark_ = false;  ///< a row is marked as the fastest of its size
  bool has_open_ = false;  ///< rows are marked that cannot be told from the fastest
};

/// Asks the questions of one table with a progress bar and, when `print`, prints it: workers or,
/// where time is limited, the study (answer_in_turns). Throws what `Study::machine` and
/// `Study::ask` throw. \pre the workers are copies of the study
Answers simulate_table(const Console& console, Study& study, StudyWorkers& workers,
                       const std::vector<Query>& queries, bool print,
                       LateQuestions late = LateQuestions::skipped,
                       std::size_t most_rows = SimTable::kAllRows);

/// The bounds of the outcomes, each once, with their certificates.
void print_bounds(const Console& console, const std::vector<Outcome>& outcomes);

/// The busiest links of a simulated run as bars, at most `maximum` of them.
void print_links(const Console& console, const Outcome& outcome, int maximum);

/// The critical path; the middle of a long one is left out.
void print_critical_path(const Console& console, const Outcome& outcome);

}  // namespace espalier
