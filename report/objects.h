// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ir/verify.h"
#include "report/json.h"
#include "scenarios/judged.h"
#include "scenarios/planned.h"

// Results as objects of JSON, one by one. docs/reports.md describes the schemas.

namespace espalier {

/// What `sim`, `exec`, `train` and `run` write.
inline constexpr std::string_view kReportSchema = "espalier.report/2";

/// An outcome that ran: kind `report`.
Json report_json(const Outcome& outcome);
/// An iteration of training: kind `training`.
Json training_json(const TrainingOutcome& outcome);
/// What was skipped or refused: kind `skipped`.
Json skipped_json(const Skipped& one);
/// An expectation and how it came out: kind `expectation`.
Json judged_json(const Judged& judged);
/// A plan, as a result of `espalier.plan/2`.
Json plan_json(const Planned& planned);

/// What the verifier says of a program, as a result of `espalier.verify/1`. `readable`: false where
/// the problems say why the file is not a program.
Json verification_json(const std::string& program, const Verification& verification, bool readable);

/// Of a report or plan: the bound and the fraction of it that was reached.
Json bound_json(const Bound& bound, double fraction);

/// The time that was granted to searches, and whether it ran out.
Json budget_json(const GrantedTime& budget);

/// The numbers of the GPUs that are ranks, in their order.
Json gpu_numbers(const Query& query, int ranks);

}  // namespace espalier
