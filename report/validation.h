// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario_runner.h"

namespace espalier {

/// Simulated times beside measured ones as tables in Markdown: for every series the median and the
/// largest deviation by size, with the limit that the project sets itself for the median, then
/// every point.
std::string validation_markdown(const std::vector<ValidatedTime>& times);

}  // namespace espalier
