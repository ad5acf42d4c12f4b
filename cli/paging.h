// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "report/page/page.h"
#include "scenarios/asked_again.h"
#include "scenarios/scenario_runner.h"
#include "scenarios/tables.h"
#include "scenarios/tuner.h"

// What verbs put on the pages of --html.

namespace espalier {

/// A page without answers: what it is about and the line that makes it.
Page begin_page(const Arguments& arguments, const std::string& title);

/// Of `sim` and `exec`: the curves of all answers. Simulations also have their timelines:
/// that of the best answer, and beside it NCCL's where that was asked, or the next best.
Page page_of(const Arguments& arguments, Study& study, const Answers& answers);

/// Of `compare`: simulated beside measured, `runs` being both of one question.
Page page_of(const Arguments& arguments, const Comparisons& comparisons, const std::string& where,
             std::vector<PagedRun> runs);
/// Both halves of a comparison, asked again for their timelines.
std::vector<PagedRun> run_both(Study& predicting, Study& measuring, const Outcome& measured);
/// What is simulated beside a time of a log, which has no timeline of its own.
PagedRun run_beside_log(Study& study, const Comparison& row);

/// Of `tune`: the choices, and the candidates that were simulated for them.
Page page_of(const Arguments& arguments, Study& study, const Answers& choices,
             const Tuning& tuning);

/// Of `plan`. Keeps pointers to the plans.
Page page_of(const Arguments& arguments, const std::vector<Planned>& plans);

/// Of `train`; `again`: the best of the answers, with timeline and program.
Page page_of(const Arguments& arguments, Study& study, const TrainingAnswers& answers,
             const TrainingOutcome& again);

/// Of `run`: the curves of every block with what was measured beside them, what the studies expect,
/// and the timelines of the best answer on most ranks, which is asked again with `study`.
Page page_of(const Arguments& arguments, Study& study, const ScenarioResults& results);

/// Writes the page and says where it is.
void write_page(const Console& console, const std::string& path, const Page& page);

}  // namespace espalier
