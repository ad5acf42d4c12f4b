// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "algorithms/program_file.h"
#include "cli/exporting.h"
#include "cli/paging.h"
#include "cli/plan_text.h"
#include "cli/sweep.h"
#include "cli/verb.h"
#include "core/time_limit.h"
#include "core/words.h"
#include "ir/text.h"
#include "report/plan.h"
#include "scenarios/chooser.h"
#include "sim/simulator.h"

namespace espalier {

namespace {

/// The algorithms to plan with, of "all" those that plan; notes problems.
std::vector<std::string> read_planners(Arguments& arguments, const Sweep& sweep) {
  const Collective collective = sweep.question.collective;
  const std::vector<std::string> planners = planning_algorithms(collective);
  std::vector<std::string> chosen;
  for (const std::string& word : sweep.algorithms) {
    const std::string name = word.substr(0, word.find(':'));
    const Algorithm* algorithm = find_algorithm(name);
    const bool plans = algorithm != nullptr && algorithm->plan != nullptr;
    if (std::ranges::count(planners, name) > 0) {
      chosen.push_back(word);
    } else if (!sweep.all_algorithms && !plans &&
               (algorithm != nullptr || is_chooser(word) || is_program_file(word))) {
      arguments.problem_of("--algorithm",
                           fmt::format("{} plans no trees", quote(algorithm ? name : word)),
                           fmt::format("one of: {}", join(planners, ", ")));
    }
  }
  if (sweep.all_algorithms && chosen.empty()) {
    arguments.problem_of("--algorithm",
                         fmt::format("no algorithm plans trees for {}", to_string(collective)));
  }
  return chosen;
}

/// Plans are for any size; what is exported is simulated for this one, the default of sim.
constexpr std::int64_t kSimulatedBytes = std::int64_t{1} << 30;

/// Where the plan goes besides, or instead of, the text.
struct Outputs {
  std::string json, csv, dot, program, html;
  ExportTarget exported;
};

Outputs read_outputs(Arguments& arguments, std::size_t plans) {
  const Outputs outputs{arguments.output("--json"), arguments.output("--csv"),
                        arguments.output("--dot"),  arguments.output("--save"),
                        arguments.output("--html"), read_export(arguments)};
  for (const char* option : {"--dot", "--save", "--export"}) {
    if (plans > 1 && arguments.given(option)) {
      arguments.problem_of(option, "writes one plan, but there are several algorithms",
                           "name one with --algorithm");
    }
  }
  return outputs;
}

void write_files(const Console& console, const Outputs& outputs, const Planned& plan,
                 const Machine& machine) {
  if (!outputs.dot.empty()) write_output(console, outputs.dot, plan_dot(plan));
  if (!outputs.program.empty()) {
    write_output(console, outputs.program, print_program(plan.program));
  }
  if (!outputs.exported.path.empty()) {
    const Written written = export_for_machine(console, outputs.exported, plan.program, machine,
                                               writing_options(machine));
    // The plan's own study does not look for chunk sizes.
    Simulator simulator;
    Study study(simulator, &simulator);
    Query query = plan.query;
    query.size_bytes = kSimulatedBytes;
    say_times(console, outputs.exported, study, query, plan.program, written);
  }
}

int run_plan(Arguments& arguments, const Console& console) {
  const Sweep sweep = read_sweep(arguments);
  const std::vector<std::string> planners = read_planners(arguments, sweep);
  const Outputs outputs = read_outputs(arguments, planners.size());
  PlanView view;
  view.trees = static_cast<int>(arguments.integer("--show-trees", 0, 1'000'000));
  view.links = static_cast<int>(arguments.integer("--show-links", 0, 1'000'000));
  const TimeLimit limit(read_budget_s(arguments));
  arguments.finish();

  Simulator simulator;
  Study study(simulator, nullptr);
  DiagnosticList impossible;
  std::vector<Planned> plans;
  Progress progress(console, planners.size());
  for (std::size_t i = 0; i < planners.size(); ++i) {
    Query query = sweep.question;
    query.algorithm = planners[i];
    progress.step(query.algorithm);
    try {
      const TimeLimit share = TimeLimit::share_of_rest(planners.size() - i);
      Planned plan = plan_query(study, query);
      progress.erase();
      if (arguments.prints_text()) {
        if (!plans.empty()) console.out << '\n';
        print_plan(console, plan, view);
      }
      write_files(console, outputs, plan, study.machine(query));
      plans.push_back(std::move(plan));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      for (const Diagnostic& problem : error.diagnostics()) impossible.add(problem);
    }
  }
  if (!plans.empty()) {
    if (!outputs.json.empty()) write_output(console, outputs.json, plans_json(plans));
    if (!outputs.csv.empty()) write_output(console, outputs.csv, plans_csv(plans));
    if (!outputs.html.empty()) write_page(console, outputs.html, page_of(arguments, plans));
  }
  if (!sweep.all_algorithms || plans.empty()) impossible.throw_if_any(ErrorKind::unsupported);
  for (const Diagnostic& problem : impossible.all()) say(console, problem.message);
  return 0;
}

}  // namespace

const Verb& plan_verb() {
  static const Verb verb = {
      "plan",
      "plan the best trees for a machine, and prove how good they are",
      "Shows the trees that an algorithm packs into the links of a machine, the part of the "
      "message that each carries, the load on every link, the resulting rate, and the bound that "
      "no schedule can beat, with its certificate. Rates count bandwidth only; sim adds latency "
      "and start-up.",
      {},
      {{"--topology"},
       {"--collective", "allreduce"},
       {"--root", "0"},
       {"--algorithm", "optimal"},
       {"--gpus", "all"},
       {"--relay"},
       {"--profile", "kernel"},
       {"--links", "all"},
       {"--in-place"},
       {"--show-trees", "8"},
       {"--show-links", "16"},
       {"--dot"},
       {"--save"},
       {"--export"},
       {"--to"},
       {"--instances", "auto"},
       {"--budget"},
       {"--json"},
       {"--csv"},
       {"--html"}},
      {{"plan --topology dgx1-v100 --links fabric", "allreduce over the NVLinks of a DGX-1"},
       {"plan --topology dgx1-v100 --collective broadcast --root 2 --dot trees.dot",
        "draw the trees with: dot -Tsvg trees.dot"},
       {"plan --topology dgx-a100:nodes=2 --save best.esp",
        "the program; check it with verify best.esp --topology dgx-a100:nodes=2"},
       {"plan --topology dgx-a100 --export best.json", "the program as MSCCL++ runs it"}},
      run_plan};
  return verb;
}

}  // namespace espalier
