// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/bound_proof.h"
#include "scenarios/answers.h"
#include "scenarios/judged.h"
#include "scenarios/planned.h"

namespace espalier {

/// A run to be shown op by op. \pre it kept its timeline and program
struct PagedRun {
  std::string name;  ///< "optimal", "measured"
  Outcome outcome;   ///< of training: the query, times and program of the iteration
  /// Where its places are; null without a machine, and for executions, which are not on it.
  const Machine* machine = nullptr;
  std::optional<BoundProof> proof;
  std::vector<std::string> op_names;  ///< by op; empty: ops are called what they do
};

/// An iteration of training, op by op. \pre it kept its timeline and program
PagedRun iteration_run(Study& study, const TrainingOutcome& trained);

/// An answer as a point of a curve.
struct PagedPoint {
  Outcome outcome;
  std::string command;            ///< the line that asks for it alone; empty: there is none
  std::string nccl_command = {};  ///< for what NCCL needs (Outcome::nccl)
  /// Drawn in place of the time of a call: what a benchmark would print, beside what one printed.
  std::optional<double> benchmark_s = {};
  /// Over a library whose own collective was measured on the same buffers.
  std::optional<double> measured_speedup = {};
};

/// A machine, and the profiles under which it was asked about.
struct PagedMachine {
  const Topology* topology = nullptr;
  std::vector<Profile> profiles;
};

/// What a page shows; a verb fills in what it has. See docs/reports.md#pages.
struct Page {
  std::string verb;     ///< "sim"
  std::string title;    ///< "allreduce on dgx1-v100"
  std::string command;  ///< the line that makes the page
  std::string version;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< files that were read: name, text
  std::vector<PagedPoint> points;    ///< curves of predictions, or of an execution
  std::vector<PagedPoint> measured;  ///< beside them
  /// What was simulated to be chosen among: sizes, times and what was left open.
  std::vector<PagedPoint> candidates;
  /// The verdict is about the first, where that is a simulation, or else about the first point;
  /// without either about training, or the fastest plan.
  std::vector<PagedRun> runs;
  std::vector<const Planned*> plans;
  std::vector<BoundProof> plan_proofs;  ///< of each plan
  std::vector<TrainingOutcome> trained;
  std::vector<Judged> judged;
  std::vector<Skipped> skipped;
  std::vector<PagedMachine> machines;  ///< that it is about
};

/// Pages are no larger.
inline constexpr std::size_t kMostPageBytes = 2'000'000;

/// How much of each run, plan and iteration a page shows.
struct PageDetail {
  int bins = 1000;             ///< of time
  std::size_t ops = 5000;      ///< the longest
  std::size_t links = 2000;    ///< the busiest
  std::size_t trees = 20'000;  ///< the first
  std::size_t buckets = 1000;  ///< the first
};

/// What a page shows, as JSON of schema `espalier.page/1`, without line ends. The same for the same
/// answers.
std::string page_json(const Page& page, const PageDetail& detail = {});

/// The page as one HTML file that needs nothing else: its data is compressed inside. It has as
/// little detail as is necessary to stay below kMostPageBytes; throws Error{unsupported} where so
/// much was asked that the least is more.
std::string page_html(const Page& page);

/// What draws curves: "uPlot 1.6.32", or that this build has none.
std::string_view curve_library();

}  // namespace espalier
