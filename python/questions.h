// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "python/bindings.h"
#include "python/values.h"
#include "scenarios/answers.h"
#include "scenarios/turns.h"

namespace espalier {

/// What questions of a study have in common, as keyword arguments say it.
struct QuestionArguments {
  const MachineArgument& machine;
  const std::string& collective;
  const GpusArgument& gpus;
  const GpusArgument& relays;
  std::int64_t root = 0;
  const std::string& profile;
  const std::string& links;
  bool in_place = false;
};

/// Size and algorithm still to be filled in. Throws Error{usage} for unknown words.
Query question_of(const QuestionArguments& arguments);

/// An algorithm by its name, or a program.
using AlgorithmArgument = std::variant<std::string, std::shared_ptr<KnownProgram>>;

/// The algorithms as words for questions of a session, each once; "all" are those that serve the
/// collective. Throws Error{usage} for a name that does not.
struct NamedAlgorithms {
  std::vector<std::string> words;
  bool all = false;  ///< "all" was among them
};
NamedAlgorithms words_of(const std::vector<AlgorithmArgument>& algorithms, const Query& question,
                         Session& session);

/// The program that an answer is about; null where it is about an algorithm of the catalogue.
std::shared_ptr<const KnownProgram> asked_program(const std::vector<AlgorithmArgument>& algorithms,
                                                  Session& session, const Outcome& outcome);

/// Calls programs what their authors do, where they were skipped.
void label_programs(const std::vector<AlgorithmArgument>& algorithms, Session& session,
                    const Query& question, std::vector<Skipped>& skipped);

/// Infinity where none is given.
double seconds_of(const std::optional<double>& budget);

/// The answers to questions of one table about one machine: by worker processes (`jobs` 0: one per
/// processor) or, where time is limited (see TimeLimit), in turn.
Answers ask_all(Session& session, const std::vector<Query>& queries, int jobs, LateQuestions late);
/// Throws Error{usage} where that is no number of worker processes.
void require_workers(int jobs);

/// Throws Error{unsupported} with all reasons where nothing ran, and Error{input} where the
/// verifier refused a program.
void require_answers(const Answers& answers);

}  // namespace espalier
