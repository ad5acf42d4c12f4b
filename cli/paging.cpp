// SPDX-License-Identifier: Apache-2.0
#include "cli/paging.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/process.h"
#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "report/command_line.h"
#include "report/results.h"
#include "report/trace.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

void add_points(const std::vector<Outcome>& outcomes, std::vector<PagedPoint>& points) {
  for (const Outcome& outcome : outcomes) {
    points.push_back({outcome, command_of(outcome), nccl_command_of(outcome)});
  }
}

void set_machine(Page& page, const Machine& machine) {
  page.machines = {{machine.topology.get(), {machine.router->profile()}}};
}

PagedRun run_of(Study& study, Outcome outcome) {
  PagedRun run;
  run.name = algorithm_label(outcome);
  run.machine = &study.machine(outcome.query);
  run.proof = proof_of_answer(study, outcome);
  run.outcome = std::move(outcome);
  return run;
}

/// One more run of what was executed, for its timeline.
PagedRun executed_run(Study& study, const Outcome& outcome) {
  Query query = outcome.query;
  query.run.timeline = true;
  query.run.iterations = 1;
  PagedRun run;
  run.outcome = study.ask(query);
  run.name = algorithm_label(run.outcome) + ", measured";
  return run;
}

/// The half of a comparison that was predicted.
PagedRun simulated_run(Study& study, Outcome outcome) {
  PagedRun run = run_of(study, std::move(outcome));
  run.name += ", simulated";
  return run;
}

/// Of the best, and of its rival: where nothing else was asked, of what NCCL does.
void add_timelines(Study& study, const Outcome& best, const std::vector<Outcome>& outcomes,
                   Page& page) {
  set_machine(page, study.machine(best.query));
  page.runs.push_back(run_of(study, ask_with_timeline(study, best, TimelineOps::one_group)));
  if (const Outcome* rival = rival_of(best, outcomes)) {
    page.runs.push_back(run_of(study, ask_with_timeline(study, *rival, TimelineOps::one_group)));
  } else if (best.nccl && !algorithm_that_ran(best).starts_with("nccl:")) {
    Outcome nccl;
    nccl.query = *baseline_query(best.query);
    nccl.query.judge = true;  // so that what proves its bound is drawn as well
    page.runs.push_back(run_of(study, ask_with_timeline(study, nccl, TimelineOps::one_group)));
  }
}

std::string title_of(const Outcome& outcome) {
  return fmt::format("{} on {}", to_string(outcome.query.collective),
                     describe_ranks(outcome.query, outcome.ranks));
}

}  // namespace

Page begin_page(const Arguments& arguments, const std::string& title) {
  Page page;
  page.verb = arguments.verb().name;
  page.title = title;
  page.command = fmt::format("espalier {} {}", arguments.verb().name, arguments.command_line());
  page.version = ESPALIER_VERSION;
  for (const std::string& file : arguments.input_files()) {
    page.inputs.emplace_back(file, read_file(file));
  }
  return page;
}

Page page_of(const Arguments& arguments, Study& study, const Answers& answers) {
  const Outcome* const best = answers.best();
  Page page = begin_page(arguments, best == nullptr ? "nothing ran" : title_of(*best));
  page.skipped = answers.skipped;
  add_points(answers.outcomes, page.points);
  if (best == nullptr) return page;
  if (!best->report.simulated) {
    if (!best->query.topology.empty()) set_machine(page, study.machine(best->query));
    // The verdict is that of the best.
    const auto is_best = [&](const PagedPoint& point) {
      return point.outcome.query.size_bytes == best->query.size_bytes &&
             point.outcome.query.algorithm == best->query.algorithm;
    };
    std::stable_partition(page.points.begin(), page.points.end(), is_best);
    page.runs.push_back(executed_run(study, *best));
    return page;
  }
  add_timelines(study, *best, answers.outcomes, page);
  return page;
}

Page page_of(const Arguments& arguments, Study& study, const Answers& choices,
             const Tuning& tuning) {
  Page page = page_of(arguments, study, choices);
  if (choices.outcomes.empty()) return page;
  Outcome candidate;
  candidate.query = choices.outcomes.front().query;
  candidate.ranks = choices.outcomes.front().ranks;
  for (const CandidateTimes& one : tuning.candidates) {
    for (const TuningRow& time : one.times) {
      candidate.query.algorithm = one.algorithm;
      candidate.query.size_bytes = candidate.report.message_bytes = time.up_to_bytes;
      candidate.query.chunk_bytes = candidate.chunk_bytes = time.chunk_bytes;
      candidate.report.time_s = time.time_s;
      candidate.chosen = time.algorithm == one.algorithm ? "" : time.algorithm;
      page.candidates.push_back({candidate, command_of(candidate)});
    }
  }
  // The choices are one curve, whoever was chosen.
  for (PagedPoint& point : page.points) {
    Outcome& choice = point.outcome;
    choice.chosen = algorithm_that_ran(choice);
    choice.query.algorithm = "the choice";
  }
  return page;
}

std::vector<PagedRun> run_both(Study& predicting, Study& measuring, const Outcome& measured) {
  Query query = measured.query;
  query.judge = true;
  query.run.timeline = true;
  query.run.iterations = 1;
  query.may_fold = false;
  query.all_rounds = true;
  std::vector<PagedRun> runs = {simulated_run(predicting, predicting.ask(query))};
  runs.push_back(executed_run(measuring, measured));
  return runs;
}

PagedRun run_beside_log(Study& study, const Comparison& row) {
  return simulated_run(study, ask_with_timeline(study, row.predicted, TimelineOps::one_group));
}

Page page_of(const Arguments& arguments, const Comparisons& comparisons, const std::string& where,
             std::vector<PagedRun> runs) {
  Page page = begin_page(arguments, "simulated beside measured on " + where);
  // A machine that was probed just now has no name to ask for it by: it is probed again. A log is
  // not run again.
  const bool has_name = arguments.given("--topology");
  const bool is_log = arguments.given("--measured");
  for (const Comparison& row : comparisons.rows) {
    // A computer that was probed has to be probed again.
    const std::string both =
        has_name
            ? ""
            : compare_command_of(row.measured,
                                 arguments.given("--devices") ? arguments.text("--devices") : "");
    page.points.push_back({row.predicted, has_name ? command_of(row.predicted) : both,
                           has_name ? nccl_command_of(row.predicted) : "", row.predicted_s()});
    const std::string again = has_name ? command_of(row.measured) : both;
    page.measured.push_back({row.measured, is_log ? "" : again});
    if (row.library) {
      page.measured.back().measured_speedup = row.measured_speedup();
      page.measured.push_back({*row.library, ""});
      page.measured.back().outcome.query.algorithm = row.library->backend;
    }
  }
  page.skipped = comparisons.measured.skipped;
  page.runs = std::move(runs);
  if (!page.runs.empty()) set_machine(page, *page.runs.front().machine);
  return page;
}

Page page_of(const Arguments& arguments, const std::vector<Planned>& plans) {
  const Planned& first = plans.front();
  Page page =
      begin_page(arguments, fmt::format("plan of {} on {}", to_string(first.query.collective),
                                        describe_ranks(first.query, first.machine->ranks())));
  set_machine(page, *first.machine);
  for (const Planned& plan : plans) {
    page.plans.push_back(&plan);
    page.plan_proofs.push_back(proof_of_plan(plan));
  }
  return page;
}

Page page_of(const Arguments& arguments, Study& study, const TrainingAnswers& answers,
             const TrainingOutcome& again) {
  const Query& exchange = again.query.exchange;
  Page page = begin_page(arguments, fmt::format("training {} on {}", again.query.model->name,
                                                describe_ranks(exchange, again.ranks)));
  page.skipped = answers.skipped;
  page.trained.push_back(again);
  for (const TrainingOutcome& one : answers.outcomes) {
    if (&one != answers.best()) page.trained.push_back(one);
  }
  page.runs.push_back(iteration_run(study, again));
  set_machine(page, *page.runs.back().machine);
  return page;
}

Page page_of(const Arguments& arguments, Study& study, const ScenarioResults& results) {
  Page page = begin_page(arguments, join(arguments.positionals(), ", "));
  page.judged = results.judged;
  page.skipped = results.answers.skipped;
  page.trained = results.trained;
  add_points(results.answers.outcomes, page.points);
  for (PagedPoint& point : page.points) {
    const ValidatedTime* const known = measured_of(results, point.outcome);
    if (known == nullptr) continue;
    point.benchmark_s = known->predicted_s;
    Outcome measured = point.outcome;
    measured.report.simulated.reset();
    measured.report.executed.emplace().median_time_s = known->measured_s;
    page.measured.push_back({std::move(measured), {}});
  }
  // Of the questions on most ranks, the first.
  const auto is_shown = [](const Outcome& one) {
    return one.report.simulated && !one.query.topology.empty();
  };
  const Outcome* largest = nullptr;
  for (const Outcome& one : results.answers.outcomes) {
    if (is_shown(one) && (largest == nullptr || one.ranks > largest->ranks)) largest = &one;
  }
  Answers simulated;
  for (const Outcome& one : results.answers.outcomes) {
    const bool is_asked_there = largest != nullptr && one.asked_by == largest->asked_by &&
                                one.query.topology == largest->query.topology &&
                                one.query.gpus == largest->query.gpus;
    if (is_shown(one) && is_asked_there) simulated.add(one);
  }
  if (const Outcome* found = simulated.best()) {
    Outcome best = *found;
    // Of a verdict it is a part, also where the study did not ask.
    if (!best.nccl) best.nccl = study.baseline(best.query);
    add_timelines(study, best, simulated.outcomes, page);
  }
  return page;
}

void write_page(const Console& console, const std::string& path, const Page& page) {
  const std::string html = page_html(page);
  write_output(console, path, html);
  if (path == "-") return;
  say(console, fmt::format("wrote {} ({}, open it in a browser)", printable(path),
                           format_bytes(static_cast<std::int64_t>(html.size()))));
}

}  // namespace espalier
