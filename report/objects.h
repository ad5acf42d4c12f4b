// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/verify.h"
#include "report/json.h"
#include "scenarios/judged.h"
#include "scenarios/planned.h"

// Answers as objects of JSON, one by one. docs/reports.md describes the schemas.

namespace espalier {

/// An outcome that ran, as `espalier.report/1`.
Json report_json(const Outcome& outcome);
/// An iteration of training, as `espalier.training/1`.
Json training_json(const TrainingOutcome& outcome);
/// What was skipped or refused, as `espalier.skipped/1`.
Json skipped_json(const Skipped& one);
/// An expectation and how it came out, as `espalier.expectation/1`.
Json judged_json(const Judged& judged);
/// A plan, as `espalier.plan/1`.
Json plan_json(const Planned& planned);

/// What the verifier says of a program, as an object of `verify --json`. `readable`: false where
/// the problems say why the file is not a program.
Json verification_json(const std::string& program, const Verification& verification, bool readable);

/// Of a report or plan: the bound and the fraction of it that was reached.
Json bound_json(const Bound& bound, double fraction);

/// The time that was granted to searches, and whether it ran out.
Json budget_json(const GrantedTime& budget);

/// The numbers of the GPUs that are ranks, in their order.
Json gpu_numbers(const Query& query, int ranks);

}  // namespace espalier
