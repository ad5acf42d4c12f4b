// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/exporting.h"
#include "formats/format.h"
#include "scenarios/study.h"
#include "scenarios/tuner.h"

namespace espalier {

/// What is written for messages of one size.
struct WrittenChoice {
  Outcome outcome;        ///< of the program that is written, for this or another size
  std::string algorithm;  ///< as it was a candidate
  std::string text;       ///< for messages of any size
  TimesOfWritten times;
  std::string instead_of;  ///< the choice before it is written, where that is another one
};

/// Chooses among programs as another format holds them, which may take longer than they did: those
/// that were chosen for any size before they are written, and those that are good for the smallest
/// or the largest messages. Each is written once, and simulated for the sizes for which no other
/// simulation rules it out (SizeChooser).
class WrittenChoices {
 public:
  /// \pre `folder` has the format of another program; the study simulates
  WrittenChoices(const ExportTarget& folder, Study& study) : folder_(folder), study_(study) {}

  /// For each of the choices; nothing where the reader of the format would use nothing that can be
  /// written for messages of that size. Where that is so of all, or nothing can be written, all
  /// reasons are thrown as Error{unsupported}. `choices`: by size, ascending, those of `tuning`
  /// that ran.
  std::vector<std::optional<WrittenChoice>> choose(const Tuning& tuning,
                                                   const std::vector<Outcome>& choices);

  /// The program of an answer, for messages of these sizes.
  Written write(const Outcome& outcome, std::int64_t from_bytes, std::int64_t up_to_bytes);

 private:
  struct Candidate {
    Outcome outcome;
    std::string algorithm;
    std::string text;
    std::set<std::int64_t> made_for = {};  ///< ends for which its algorithm has this form
  };
  const Program& program_of(const Outcome& outcome);
  /// A word that the study knows it by; empty where it can't be written.
  std::string add(const Outcome& outcome, std::vector<Diagnostic>& why_not);
  void add_front(const std::vector<FrontPoint>& front, const Outcome& end);
  Prediction predict(const Query& query);
  WrittenChoice chosen(const Outcome& choice, const TuningChoice& made);

  const ExportTarget& folder_;
  Study& study_;
  std::vector<std::string> words_;                                    ///< of candidates, in order
  std::map<std::string, Candidate> candidates_;                       ///< by word
  std::map<std::pair<std::string, std::string>, std::string> known_;  ///< by program and protocol
  std::map<std::string, std::shared_ptr<const Program>> programs_;    ///< by what was chosen
  /// Algorithms that have a form for an end: others of their forms are no candidates there.
  std::set<std::pair<std::string, std::int64_t>> formed_;
  std::map<std::int64_t, double> fastest_s_;  ///< so far, by size
};

}  // namespace espalier
