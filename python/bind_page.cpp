// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/words.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/values.h"
#include "report/command_line.h"
#include "report/page/page.h"
#include "scenarios/asked_again.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

/// Asked once more, for its timeline.
PagedRun run_of(const Result& result) {
  PagedRun run;
  Study& study = result.session->study();
  run.outcome =
      result.session->ask_with_timeline(result.outcome, result.program, TimelineOps::one_group);
  run.name = algorithm_label(run.outcome);
  run.machine = &study.machine(run.outcome.query);
  run.proof = proof_of_answer(study, run.outcome);
  return run;
}

/// A machine that was probed has no name to ask for it by.
bool has_name(const Session& session) { return session.origin().yaml.empty(); }

/// The line that asks for the answer alone. Of a program written in Python, which no line asks for,
/// a shell's comment that says where it is written. Empty where there is neither.
std::string command_for(const Result& result) {
  const KnownProgram* const program = result.program.get();
  const bool is_in_file = program == nullptr || !program->text.empty();
  if (is_in_file) return has_name(*result.session) ? command_of(result.outcome) : "";
  const Location& where = program->definition;
  if (where.file.empty()) return {};
  return fmt::format("# {} is written in {}:{}", program->program().name, printable(where.file),
                     where.line);
}

PagedPoint point_of(const Result& result) {
  return {result.outcome, command_for(result),
          has_name(*result.session) ? nccl_command_of(result.outcome) : ""};
}

/// Each machine once, with each of its profiles.
std::vector<PagedMachine> paged_machines(const std::vector<const Machine*>& machines) {
  std::vector<PagedMachine> all;
  for (const Machine* machine : machines) {
    const Topology& topology = *machine->topology;
    const Profile& profile = machine->router->profile();
    auto known = std::ranges::find_if(
        all, [&](const PagedMachine& one) { return one.topology->name == topology.name; });
    if (known == all.end()) known = all.insert(all.end(), {&topology, {}});
    if (std::ranges::find(known->profiles, profile.name, &Profile::name) == known->profiles.end()) {
      known->profiles.push_back(profile);
    }
  }
  return all;
}

/// What a page is made of.
struct PageItems {
  std::vector<Result> shown;   ///< op by op, if simulated
  std::vector<Result> others;  ///< points of curves only
  std::vector<KnownPlan> plans;
  std::vector<KnownTraining> trained;  ///< the first is shown op by op
  std::vector<Result> measured;        ///< beside the others
  std::string title;
  Location caller;  ///< where the page was asked for
};

/// The files that the answers come from, each once, as far as they are there.
class Inputs {
 public:
  void add(const std::string& file, std::string text) {
    const auto is_known = [&](const auto& one) { return one.first == file; };
    if (std::ranges::none_of(all_, is_known)) all_.emplace_back(file, std::move(text));
  }
  void add_file(const std::string& file) {
    std::error_code ignored;  // no file is none of these, as what was typed in
    if (std::filesystem::is_regular_file(file, ignored)) add(file, read_file(file));
  }
  void add_query(const Query& query) {
    for (const auto& file : files_named({query.topology, query.profile, query.algorithm})) {
      add_file(file);
    }
  }
  void add_result(const Result& result) {
    add_query(result.outcome.query);
    if (!result.program) return;
    const KnownProgram& program = *result.program;
    if (!program.text.empty()) add(program.file->path, program.text);
    add_file(program.definition.file);
    for (const Location& place : program.places) add_file(place.file);
  }
  std::vector<std::pair<std::string, std::string>> take() { return std::move(all_); }

 private:
  std::vector<std::pair<std::string, std::string>> all_;  ///< name and text
};

std::vector<std::pair<std::string, std::string>> inputs_of(const PageItems& items) {
  Inputs inputs;
  inputs.add_file(items.caller.file);
  for (const auto* results : {&items.shown, &items.others, &items.measured}) {
    for (const Result& result : *results) inputs.add_result(result);
  }
  for (const KnownPlan& plan : items.plans) inputs.add_query(plan.planned->query);
  for (const KnownTraining& one : items.trained) {
    inputs.add_query(one.outcome.query.exchange);
    inputs.add_file(one.model_file);
  }
  return inputs.take();
}

/// Where Python asked for the page, and the lines that make its plans.
std::string command_for(const PageItems& items) {
  std::vector<std::string> lines;
  const Location& where = items.caller;
  lines.push_back(where.file.empty()
                      ? "espalier.report"
                      : fmt::format("espalier.report in {}:{}", printable(where.file), where.line));
  for (const KnownPlan& plan : items.plans) {
    if (has_name(*plan.session)) lines.push_back(command_of(*plan.planned));
  }
  return join(lines, "; ");
}

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
  page.command = command_for(items);
  page.title = title_of(items);
  page.inputs = inputs_of(items);
  std::vector<const Machine*> machines;
  for (const Result& result : items.shown) {
    page.points.push_back(point_of(result));
    if (!result.outcome.report.simulated) continue;
    page.runs.push_back(run_of(result));
    machines.push_back(page.runs.back().machine);
  }
  for (const Result& result : items.others) page.points.push_back(point_of(result));
  for (const KnownPlan& plan : items.plans) {
    page.plans.push_back(plan.planned.get());
    page.plan_proofs.push_back(proof_of_plan(*plan.planned));
    machines.push_back(plan.planned->machine);
  }
  for (const Result& result : items.measured) page.measured.push_back(point_of(result));
  if (!items.trained.empty()) {
    page.trained.push_back(asked_again(items.trained.front()));
    page.runs.push_back(
        iteration_run(items.trained.front().session->study(), page.trained.front()));
    machines.push_back(page.runs.back().machine);
    for (std::size_t i = 1; i < items.trained.size(); ++i) {
      page.trained.push_back(items.trained[i].outcome);
    }
  }
  page.machines = paged_machines(machines);
  return page;
}

void write_page(const std::vector<Result>& shown, const std::vector<Result>& others,
                const std::vector<KnownPlan>& plans, const std::vector<KnownTraining>& trained,
                const std::vector<Result>& measured, const std::string& path,
                const std::string& title) {
  const PageItems items{shown, others, plans, trained, measured, title, calling_line()};
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
