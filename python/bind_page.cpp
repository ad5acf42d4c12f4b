// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "core/file.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/values.h"
#include "report/page/page.h"
#include "scenarios/asked_again.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

/// Asked once more, for its timeline.
PagedRun run_of(const Result& result) {
  PagedRun run;
  Study& study = result.session->study();
  run.outcome = result.session->ask_with_timeline(result.outcome, result.program, false);
  run.name = algorithm_label(run.outcome);
  run.machine = &study.machine(run.outcome.query);
  run.proof = proof_of_answer(study, run.outcome);
  return run;
}

void set_machine(const Machine& machine, Page& page) {
  if (page.topology != nullptr) return;
  page.topology = machine.topology.get();
  page.profile = machine.router->profile();
}

/// What a page is made of.
struct PageItems {
  std::vector<Result> shown;   ///< op by op, if simulated
  std::vector<Result> others;  ///< points of curves only
  std::vector<KnownPlan> plans;
  std::vector<KnownTraining> trained;  ///< the first is shown op by op
  std::vector<Result> measured;        ///< beside the others
  std::string title;
};

std::string title_of(const PageItems& items) {
  if (!items.title.empty()) return items.title;
  if (items.shown.empty() && !items.trained.empty()) {
    const TrainingOutcome& first = items.trained.front().outcome;
    return fmt::format("training {} on {}", first.query.model->name,
                       describe_ranks(first.query.exchange, first.ranks));
  }
  if (items.shown.empty()) {
    const Planned& first = *items.plans.front().planned;
    return fmt::format("plan of {} on {}", to_string(first.query.collective),
                       describe_ranks(first.query, first.machine->ranks()));
  }
  const Outcome& first = items.shown.front().outcome;
  return fmt::format("{} on {}", to_string(first.query.collective),
                     describe_ranks(first.query, first.ranks));
}

Page page_of(const PageItems& items) {
  Page page;
  page.verb = "python";
  page.version = ESPALIER_VERSION;
  page.command = "espalier.report";
  page.title = title_of(items);
  for (const Result& result : items.shown) {
    page.points.push_back({result.outcome, {}});
    if (!result.outcome.report.simulated) continue;
    page.runs.push_back(run_of(result));
    set_machine(*page.runs.back().machine, page);
  }
  for (const Result& result : items.others) page.points.push_back({result.outcome, {}});
  for (const KnownPlan& plan : items.plans) {
    page.plans.push_back(plan.planned.get());
    page.plan_proofs.push_back(proof_of_plan(*plan.planned));
    set_machine(*plan.planned->machine, page);
  }
  for (const Result& result : items.measured) page.measured.push_back({result.outcome, {}});
  if (!items.trained.empty()) {
    page.trained.push_back(asked_again(items.trained.front()));
    page.runs.push_back(
        iteration_run(items.trained.front().session->study(), page.trained.front()));
    set_machine(*page.runs.back().machine, page);
    for (std::size_t i = 1; i < items.trained.size(); ++i) {
      page.trained.push_back(items.trained[i].outcome);
    }
  }
  return page;
}

void write_page(const std::vector<Result>& shown, const std::vector<Result>& others,
                const std::vector<KnownPlan>& plans, const std::vector<KnownTraining>& trained,
                const std::vector<Result>& measured, const std::string& path,
                const std::string& title) {
  const PageItems items{shown, others, plans, trained, measured, title};
  if (shown.empty() && plans.empty() && trained.empty()) {
    throw Error(ErrorKind::usage, "there is nothing to report",
                "results, tables, comparisons, plans or training");
  }
  compute([&] { write_file(path, page_html(page_of(items))); },
          [&] {
            for (const Result& result : shown) result.session->forget();
            for (const KnownTraining& one : trained) one.session->forget();
          });
}

}  // namespace

void bind_page(py::module_& module) {
  module.def("_report", &write_page, py::arg("shown"), py::arg("others"), py::arg("plans"),
             py::arg("trained"), py::arg("measured"), py::arg("path"), py::arg("title"));
}

}  // namespace espalier
