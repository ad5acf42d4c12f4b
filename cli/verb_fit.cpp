// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "cli/fit_table.h"
#include "cli/sweep.h"
#include "cli/verb.h"
#include "core/words.h"
#include "formats/machine.h"
#include "nccl/version.h"
#include "report/fit.h"
#include "report/ratio_plot.h"
#include "run/launch.h"
#include "scenarios/chooser.h"
#include "scenarios/describe.h"
#include "scenarios/fit_logs.h"
#include "scenarios/fitted_file.h"
#include "sim/simulator.h"
#include "topologies/launch_costs.h"
#include "topologies/profile_file.h"

namespace espalier {

namespace {

FitLogsRequest read_request(Arguments& arguments) {
  FitLogsRequest request;
  request.files = arguments.positionals();
  read_machine(arguments, request.question);
  if (arguments.given("--collective")) {
    std::vector<std::pair<std::string, Collective>> collectives;
    for (const CollectiveInfo& one : all_collectives()) collectives.emplace_back(one.name, one.id);
    request.collective = arguments.choice("--collective", collectives);
  }
  request.in_place = arguments.flag("--in-place");
  request.has_launch = arguments.given("--launch");
  request.question.launch = arguments.choice_among("--launch", all_launch_modes());
  request.question.library_version = read_nccl_version(arguments);
  const std::vector<std::string> algorithms = arguments.algorithms();
  if (algorithms.size() == 1 && algorithms.front() != "all") {
    request.question.algorithm = algorithms.front();
  } else {
    arguments.problem_of("--algorithm", "one is needed: that which was measured",
                         "nccl is what NCCL chooses by itself");
  }
  return request;
}

/// Shows each pass as a bar of its own: how many there will be depends on what they find.
class FitProgress {
 public:
  FitProgress(const Console& console, std::size_t times) : console_(console), times_(times) {}

  void step(int pass, const Query& query) {
    // A pass asks every time once, and then once more for every constant that it may depend on.
    if (pass != pass_ || !progress_) progress_.emplace(console_, times_);
    pass_ = pass;
    progress_->step(fmt::format("pass {}: simulated {}", pass, progress_label(query)));
  }

 private:
  const Console& console_;
  const std::size_t times_;
  std::optional<Progress> progress_;
  int pass_ = 0;
};

/// Simulated / measured by size, a series for each table.
RatioPlot plot_of(const ProfileFit& fit, const FitRequest& request, const FitLogs& logs) {
  RatioPlot plot;
  plot.title = fmt::format("Profile {} fitted to {} measured on {}", printable(request.profile),
                           counted(fit.times.size(), "time"), request.machine.name);
  plot.size_label = "size of the message (logarithmic)";
  plot.ratio_label = "simulated / measured time (logarithmic)";
  for (const FitTable& table : logs.tables) {
    RatioSeries& series = plot.series.emplace_back();
    series.label = fmt::format("{}: {}", to_string(table.collective), table.title);
    for (std::size_t i = table.first; i < table.first + table.count; ++i) {
      const FittedTime& time = fit.times[i];
      series.points.emplace_back(time.measured.query.size_bytes, 1 + time.error_after());
    }
  }
  return plot;
}

int run_fit(Arguments& arguments, const Console& console) {
  const FitLogsRequest request = read_request(arguments);
  const std::string output = arguments.output("--output");
  const std::string plot = arguments.output("--plot");
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const double budget_s = read_budget_s(arguments);
  arguments.finish();

  FitRequest asked{open_machine(request.question.topology), request.question.profile, {}};
  DiagnosticList problems;
  const FitLogs logs = read_fit_logs(notes_to(console), request, asked.machine, problems);
  check_algorithm(logs, request.question.algorithm, problems);
  problems.throw_if_any();

  asked.times = logs.times;
  asked.budget_s = budget_s;
  Simulator simulator;
  std::optional<FitProgress> progress(std::in_place, console, asked.times.size());
  const ProfileFit fit = fit_profile(
      asked, simulator, [&](int pass, const Query& query) { progress->step(pass, query); });
  progress.reset();

  const bool prints = arguments.prints_text();
  if (prints) print_fit(console, fit, asked, logs);
  require_met(fit, logs);
  if (!output.empty()) require_changed(fit);
  const std::string file = print_fitted_profile(fit, asked, sources_of(fit, logs));
  if (!plot.empty()) write_output(console, plot, ratio_plot_svg(plot_of(fit, asked, logs)));
  if (!json.empty()) write_output(console, json, fit_json(fit, asked));
  if (!csv.empty()) write_output(console, csv, fit_csv(fit));
  if (!output.empty()) write_output(console, output, file);
  if (!prints) return 0;
  if (output.empty()) {
    console.out << "# --output FILE writes the profile\n";
  } else {
    console.out << fmt::format("# wrote {}: --profile {} uses it\n", output,
                               names_profile_file(output) ? output : "./" + output);
  }
  return 0;
}

}  // namespace

const Verb& fit_verb() {
  static const Verb verb = {
      "fit",
      "fit the constants of a profile to measured times",
      "Reads what nccl-tests or rccl-tests printed, simulates the same messages on the machine "
      "that "
      "is named, and changes the constants of the profile until the simulated times are as close "
      "to "
      "the measured ones as they can be: how fast links are, what a call and an op cost, how fast "
      "a "
      "block is, how long a launch holds up the host. Only constants that these times determine "
      "are changed; the output names the "
      "others. "
      "Logs of several collectives determine more than one log. --output writes a profile, which "
      "every --profile accepts by the name of its file, --profile of another fit too. "
      "docs/fitting.md explains how it is done.",
      {"LOG",
       "output of nccl-tests or rccl-tests, text or JSON; allgather=LOG where it does not name its "
       "test",
       WordKind::file, 1, 100},
      {{"--topology"},
       {"--gpus", "all"},
       {"--links", "all"},
       {"--collective"},
       {"--in-place"},
       {"--algorithm", "nccl"},
       {"--profile", "nccl"},
       {"--launch", "per_gpu"},
       {"--nccl-version"},
       {"--budget"},
       {"--output"},
       {"--plot"},
       {"--json"},
       {"--csv"}},
      {{"fit allreduce.log allgather.log --topology dgx-a100 --output fitted.yaml",
        "what these logs say of NCCL on this machine"},
       {"fit allgather=a.log broadcast=b.log --topology dgx-a100",
        "logs that do not say which collective they are about"},
       {"fit h100.log --topology dgx-h100 --gpus 0-3 --launch single --nccl-version 2.21",
        "a log that says neither that one process drove all GPUs nor which NCCL that was"},
       {"fit later.log --topology dgx-a100 --profile ./fitted.yaml --output fitted.yaml --plot "
        "fit.svg",
        "begins where another fit has ended, and draws how well times are met"}},
      run_fit};
  return verb;
}

}  // namespace espalier
