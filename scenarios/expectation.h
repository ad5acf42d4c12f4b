// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "scenarios/study.h"

namespace espalier {

/// What of an answer is compared. `link_share`: what crosses a direction of a link, in messages;
/// `used_links`: how many directions of links carry anything.
enum class Measure { time_s, algbw_gbps, busbw_gbps, bound_gbps, fraction, link_share, used_links };

/// How our figure stands to the one expected. `direction`: it lies in the range given and differs
/// from the paper's by more than the tolerance.
enum class Verdict { reproduced, direction, unexplained };

std::string_view to_string(Measure measure);
std::string_view to_string(Verdict verdict);  ///< "reproduced", "direction only", ...
const std::vector<Measure>& all_measures();

/// One figure among the answers of a block.
struct Figure {
  std::size_t table = 0;  ///< of the block
  std::size_t query = 0;  ///< of the table
  std::string link;       ///< of `link_share`, as reports name it
};

/// What a study expects of its answers: a figure, or the ratio of two.
struct ExpectedResult {
  std::string title;
  std::string claim;  ///< of a paper, such as "S000-c", or empty
  std::string note;   ///< why it comes out so
  Measure measure = Measure::algbw_gbps;
  Figure of;
  std::optional<Figure> over;      ///< the ratio of `of` to this is meant
  std::optional<double> paper;     ///< the paper's figure
  double tolerance = 0;            ///< relative; of `paper`
  std::optional<double> at_least;  ///< the range that shows the direction
  std::optional<double> at_most;
  Verdict verdict = Verdict::reproduced;  ///< the one expected
  Location where;
};

/// How an expectation came out.
struct Judgement {
  std::optional<double> ours;  ///< nothing: there is no such figure
  std::string missing;         ///< then why
  Verdict verdict = Verdict::unexplained;

  bool as_expected(const ExpectedResult& expectation) const {
    return ours && verdict == expectation.verdict;
  }
};

/// Compares. `answers` holds an outcome for each query of each table of the block; null where none
/// ran.
Judgement judge(const ExpectedResult& expectation,
                const std::vector<std::vector<const Outcome*>>& answers);

}  // namespace espalier
