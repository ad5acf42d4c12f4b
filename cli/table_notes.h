// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/console.h"
#include "scenarios/answers.h"

namespace espalier {

/// Where a table shows what was chosen: in the rows' labels ("optimal (fabric=1)", the defaults
/// left out), or the whole choice ("optimal:fabric=1,strips=0").
enum class ShownChoice { in_label, whole };

/// What stands below a table of outcomes so that its labels can be understood: what the parameters
/// mean whose values were chosen ("optimal (fabric=1)"), and what is to be known about programs,
/// each once. Nothing where there is nothing to explain.
void print_table_notes(const Console& console, const std::vector<Outcome>& outcomes,
                       ShownChoice shown = ShownChoice::in_label);
/// The notes of iterations of training, each once.
void print_table_notes(const Console& console, const std::vector<TrainingOutcome>& outcomes);

/// Which algorithms ran under another profile than the one in the table's head.
void print_profile_notes(const Console& console, const std::vector<Outcome>& outcomes,
                         const std::string& head_profile);

/// A stretch of neighbouring sizes of a table of which the same is to be said.
struct SizeStretch {
  std::string what;
  std::string sizes;  ///< "1KiB to 1MiB"
};
/// Stretches of the sizes of a table in ascending order. Of outcomes of one size the first counts,
/// and sizes of which `what` is empty are in none.
std::vector<SizeStretch> size_stretches(const std::vector<Outcome>& outcomes,
                                        const std::function<std::string(const Outcome&)>& what);

/// "1KiB to 1MiB, 4MiB": some of the sizes of a table, neighbours together.
std::string join_sizes(std::vector<std::int64_t> sizes, const std::set<std::int64_t>& all);

/// "# Not here: ring: no route ...". Refused programs are left to `Refusals`, sizes that were not
/// asked to `print_unasked`.
void print_skipped(const Console& console, const std::vector<Skipped>& skipped);
/// "# Not asked, as no time was left: 1KiB to 1MiB of ring, tree".
void print_unasked(const Console& console, const Answers& answers);

/// What the verifier says of the programs it refuses, to `err`. Kept while a table shows its rows
/// as they come: on a terminal the table stays whole.
class Refusals {
 public:
  /// The console must outlive it.
  explicit Refusals(const Console& console) : console_(console) {}
  ~Refusals() { print(); }
  Refusals(const Refusals&) = delete;
  Refusals& operator=(const Refusals&) = delete;

  /// A program is refused for every size: what is known is not added again.
  void add(const std::vector<Diagnostic>& problems);
  /// Prints what was added and forgets it, as does the end of its life.
  void print();

 private:
  const Console& console_;
  std::vector<std::string> problems_;
};

}  // namespace espalier
