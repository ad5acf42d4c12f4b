// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "core/error.h"
#include "ir/collective.h"
#include "scenarios/tuning_table.h"

// Instead of an algorithm, a query can name a chooser: "auto", which tunes on the
// fly, "auto:knomial:k=4|chain", which chooses among these only, or "tuned:FILE",
// a table made earlier. The choice depends on the size of the message.

namespace espalier {

struct Query;
class Study;

inline constexpr std::string_view kAuto = "auto";

bool is_chooser(std::string_view algorithm);
/// "auto", or "auto:" followed by the candidates.
bool is_auto(std::string_view algorithm);

/// The candidates of the tuner: the algorithms named, or all of them. \pre is_auto
std::vector<std::string> auto_candidates(std::string_view algorithm, Collective collective);

/// The file of "tuned:FILE"; nothing for anything else.
std::optional<std::string> tuning_file(std::string_view algorithm);

/// The algorithms and choosers of a word in which commas may stand between them, as between an
/// algorithm's parameters: "ring,knomial:k=4,auto" are three. A comma separates two where no
/// parameters have begun, and before the name of an algorithm or of a chooser. There is one only in
/// "tuned:FILE": files may have commas in their names.
std::vector<std::string> split_algorithms(std::string_view text);

/// How gradients are exchanged: "ring", "knomial+chain", "owners:direct+chain".
struct ExchangeWords {
  bool by_owners = false;
  std::vector<std::string> algorithms;  ///< of the stages: algorithms or choosers
};
/// Splits the words, which need not make sense. The
/// where that is all, and so may a program file: one with a slash goes on to ".esp".
ExchangeWords exchange_words(const std::string& spec);
std::string to_string(const ExchangeWords& words);

/// "tuned:FILE", and the name of a program file, with a relative path counted from `folder`, also
/// as part of exchange words and of "auto:A|B"; anything else as it is.
std::string in_folder(const std::string& algorithm, const std::string& folder);

/// The way back for an algorithm that is no chooser: a program file by its path from `folder`.
std::string as_seen_from(const std::string& folder, const std::string& algorithm);

/// Reads the table of `file` for a collective. Throws Error{input} with what is wrong with it, and
/// Error{usage} when it is a table for another collective.
TuningTable read_tuning(const std::string& file, Collective collective);

/// What is wrong with taking an algorithm for a collective: it does not serve that one.
std::optional<Diagnostic> not_served(const AlgorithmChoice& choice, Collective collective);

/// Throws Error{usage} when `spec` is not an algorithm that serves the collective, and what
/// `parse_algorithm` throws. A chooser is none.
void check_concrete_algorithm(const std::string& spec, Collective collective);

/// The same, but accepts choosers too; throws what `read_tuning` throws.
void check_algorithm(const std::string& spec, Collective collective);

/// The programs in files that may answer a query: the one it names, or those that its chooser may
/// choose. Throws what `Study::choice` and `Study::tuning_table` throw.
std::vector<std::shared_ptr<const ProgramFile>> program_files(Study& study, const Query& query);

}  // namespace espalier
