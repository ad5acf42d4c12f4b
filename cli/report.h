// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/sweep.h"
#include "scenarios/study.h"

namespace espalier {

/// Ten digits, so that the last bits of a sum never show; null for what is not a number.
Json rounded(double value);

/// The numbers of the GPUs that are ranks, in their order.
Json gpu_numbers(const Query& query, int ranks);

/// Of a report or plan: the bound and the fraction of it that was reached.
Json bound_json(const Bound& bound, double fraction);

/// Outcomes that ran as `espalier.report/1`, one element each.
Json reports_array(const std::vector<Outcome>& outcomes);

/// What `--json` writes (docs/reports.md): the outcomes, then the algorithms that were skipped as
/// `espalier.skipped/1`; an object when it is one, else an array. Numbers are rounded to ten
/// digits; everything but wall_s is the same for every run of a simulation. Ends with a line end.
std::string reports_json(const Answers& answers);

/// Rows as comma-separated values (RFC 4180), a header line first; cells are empty where a row has
/// no such column or null.
std::string csv_text(const std::vector<std::string>& columns, const std::vector<Json>& rows);

/// The columns of outcomes in a table, and one of its rows: figures as in JSON.
const std::vector<std::string>& report_columns();
Json report_row(const Outcome& outcome);

/// The columns that tell who asked, over which links, and why there is no answer; of all rows of a
/// study.
const std::vector<std::string>& study_columns();
/// What was skipped, as a row: without figures.
Json skipped_row(const Skipped& one);

/// Scenario and block, where one asked.
void add_asked_by(const AskedBy& asked_by, Json& json);

/// How busy links were, as in a report.
Json links_json(const SimulatedPart& simulated);

/// What was skipped, as `espalier.skipped/1`.
Json skipped_json(const Skipped& one);

}  // namespace espalier
