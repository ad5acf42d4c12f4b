// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "scenarios/planned.h"
#include "scenarios/training_study.h"

// Questions and answers as they go from process to process and into journals: every figure to the
// last bit, unlike those of reports.

namespace espalier {

/// Keys in the order they were added.
using Json = nlohmann::ordered_json;

/// What became of a question: the outcome without programs and timelines, or what was thrown.
Json record_of(const Outcome& outcome);
Json record_of(const TrainingOutcome& outcome);
Json record_of(const Prediction& prediction);
Json record_of(const std::optional<Baseline>& baseline);
Json record_of(const Error& error);
Json record_of(const TuningTable& table);
/// What was searched for and proved.
Json record_of(const Planned& planned);
/// A question to a simulator: nothing of how programs are executed.
Json record_of(const Query& query);

/// Text that is no record, or one that says what cannot be.
class NoRecord : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Read a record back; the query of an outcome is kept. Throw the Error that the record holds, if
/// it holds one, and NoRecord or nlohmann::json::exception if the text is not a record.
void read_record(const Json& record, Outcome& outcome);
void read_record(const Json& record, TrainingOutcome& outcome);
void read_record(const Json& record, Prediction& prediction);
void read_record(const Json& record, std::optional<Baseline>& baseline);
void read_record(const Json& record, Query& query);
void read_record(const Json& record, TuningTable& table);
/// The rest follows from the query: `complete_plan`.
void read_record(const Json& record, Planned& planned);

/// A record or key as one line, whatever bytes names have.
std::string one_line(const Json& json);

/// 64-bit FNV-1a, in hexadecimal digits.
std::string fingerprint(std::string_view text);

/// Makes keys of questions: all that an answer depends on, which is the question, what the files
/// say that it names, and this program.
class QuestionKeys {
 public:
  /// Keys are of the machines and tables that `study` knows, and so of those that it answers for.
  explicit QuestionKeys(Study& study);

  /// Throw what loading the machine throws. A table that can't be read makes a key of its own; the
  /// question then has no answer.
  Json of(const Query& query);
  Json of(const TrainingQuery& query);

 private:
  Json key(const Json& question, const Query& query,
           const std::vector<ExchangeCollective>& collectives);

  Study& study_;
  std::string program_;
  std::map<std::string, std::string> machines_;  ///< fingerprints, by name
  std::map<const Model*, std::string> models_;
};

}  // namespace espalier
