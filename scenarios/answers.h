// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/study.h"
#include "scenarios/training_study.h"

namespace espalier {

/// An algorithm without a result: it does not apply here, or the verifier refused its program.
struct Skipped {
  std::string topology;  ///< empty without a machine
  std::string profile;
  int ranks = 0;
  std::optional<bool> in_place;  ///< nothing: it ran neither way, or it is training
  std::vector<int> gpus;
  std::vector<int> relays;
  LinkScope links = LinkScope::all;
  std::string collective;
  std::string algorithm;
  std::string model;        ///< of training
  bool is_refused = false;  ///< by the verifier: its program is wrong
  bool is_half = false;     ///< of an execution whose other half ran, in place or not: no failure
  std::string reason;
  std::string instead;  ///< what is possible, where that is known
  AskedBy asked_by;
  std::optional<GrantedTime> budget = {};  ///< no time was left to ask it
  std::vector<std::int64_t> sizes = {};    ///< with it: of which messages, in bytes
  bool operator==(const Skipped&) const = default;
};

/// The answers to some questions, in the order in which they were asked, without their programs
/// (which may be large).
struct Answers {
  std::vector<Outcome> outcomes;  ///< of what ran
  std::vector<Skipped> skipped;   ///< each once

  void add(Outcome outcome);
  void add(const Skipped& one);
  /// What did not run beside something that did: see Skipped::is_half.
  void add_half(const Outcome& outcome);
  /// Skipped for one reason in place and not.
  void add_neither(const Outcome& outcome);
  void add(Answers more);
  /// Notes who asked all this.
  void label(const AskedBy& asked_by);
  /// The fastest of those with the largest message; null when nothing ran.
  const Outcome* best() const;
  /// Algorithms whose programs the verifier refused, each once.
  std::vector<std::string> refused() const;
  /// No program was refused, and no result was wrong.
  bool all_right() const;
};

/// The same for iterations of training.
struct TrainingAnswers {
  std::vector<TrainingOutcome> outcomes;  ///< without programs and timelines
  std::vector<Skipped> skipped;           ///< each once

  void add(TrainingOutcome outcome);
  void label(const AskedBy& asked_by);
  /// The fastest on most GPUs; null when nothing ran.
  const TrainingOutcome* best() const;
};

}  // namespace espalier
