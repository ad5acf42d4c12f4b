// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/judged.h"

namespace espalier {

/// An expectation and how it came out, in the words of a line or a cell.
struct JudgedText {
  std::string wanted;   ///< "1.5 within 2%, at least 1.2"
  std::string paper;    ///< the paper's figure, "-" where there is none
  std::string ours;     ///< "1.43", or why there is no figure
  std::string verdict;  ///< "reproduced", "holds", ... or "no figure"
  std::string expected_verdict;
};
JudgedText text_of(const Judged& judged);

/// The claims among them as a table in Markdown, in order of their names: claim, the paper's
/// figure, ours, verdict and why.
std::string claims_markdown(const std::vector<Judged>& judged);

}  // namespace espalier
