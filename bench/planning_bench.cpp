// SPDX-License-Identifier: Apache-2.0
// How long `optimal` plans, routes included, beside how long it may. Each case is the worst of its
// questions, each question the median of several runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "core/error.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr Collective kTreeCollectives[] = {Collective::broadcast, Collective::reduce,
                                           Collective::allreduce, Collective::allgather,
                                           Collective::reducescatter};

struct Case {
  std::string name;
  std::vector<std::string> machines;
  double target_s;
  LinkScope links = LinkScope::all;
  bool subsets = false;  ///< of 2 to 8 GPUs that the GPU fabric connects
  std::string algorithm = "optimal";
  std::vector<Collective> collectives = {std::begin(kTreeCollectives), std::end(kTreeCollectives)};
  int runs = 5;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Routes and plans anew each time. Negative when the fabric does not connect the GPUs.
double planning_s(const Topology& topology, const Case& asked, Collective collective,
                  const std::vector<int>& gpus) {
  const AlgorithmChoice choice = parse_algorithm(asked.algorithm);
  std::vector<double> seconds;
  for (int run = 0; run < asked.runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const Router router(topology, topology.profile("ideal"), asked.links);
    const Placement placement = place_ranks(router, gpus);
    if (unreachable_pair(router, placement)) return -1;
    plan(choice, request_for(collective, 0, false, router, placement));
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(std::move(seconds));
}

std::vector<std::vector<int>> gpu_sets(const Case& asked) {
  if (!asked.subsets) return {{}};
  std::vector<std::vector<int>> sets;
  for (unsigned mask = 1; mask < 256; ++mask) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu) {
      if ((mask >> gpu & 1U) != 0) gpus.push_back(gpu);
    }
    if (gpus.size() >= 2) sets.push_back(std::move(gpus));
  }
  return sets;
}

/// Whether the target is met.
bool measure(const Case& asked) {
  double worst_s = 0;
  std::string worst;
  int questions = 0;
  for (const std::string& machine : asked.machines) {
    const Topology topology = load_topology(machine);
    for (const std::vector<int>& gpus : gpu_sets(asked)) {
      for (const Collective collective : asked.collectives) {
        const double seconds = planning_s(topology, asked, collective, gpus);
        questions += seconds < 0 ? 0 : 1;
        if (seconds <= worst_s) continue;
        worst_s = seconds;
        worst = fmt::format("{} {}{}", machine, to_string(collective),
                            gpus.empty() ? "" : fmt::format(" on {}", fmt::join(gpus, ",")));
      }
    }
  }
  const bool met = worst_s <= asked.target_s;
  fmt::print("{:<34} {:>9} {:>12.2f} {:>11.0f}  {:<6}  {}\n", asked.name, questions, worst_s * 1e3,
             asked.target_s * 1e3, met ? "" : "MISSED", worst);
  std::fflush(stdout);
  return met;
}

int run() {
  fmt::print("{:<34} {:>9} {:>12} {:>11}  {:<6}  {}\n", "# plans of", "questions", "worst (ms)",
             "target (ms)", "", "worst question");
  const Case cases[] = {
      {.name = "DGX-1, NVLink, connected subsets",
       .machines = {"dgx1-p100", "dgx1-v100"},
       .target_s = 0.01,
       .links = LinkScope::fabric,
       .subsets = true},
      {.name = "DGX A100 x 2", .machines = {"dgx-a100:nodes=2"}, .target_s = 0.1},
      {.name = "DGX A100 x 4, MI250 x 2",
       .machines = {"dgx-a100:nodes=4", "mi250:nodes=2"},
       .target_s = 1,
       .runs = 3},
      {.name = "DGX A100 x 16, one tree per root",
       .machines = {"dgx-a100:nodes=16"},
       .target_s = 2,
       .algorithm = "optimal:k=1",
       .collectives = {Collective::allgather},
       .runs = 1},
  };
  bool met = true;
  for (const Case& one : cases) met = measure(one) && met;
  return met ? 0 : 1;
}

}  // namespace
}  // namespace espalier

int main() {
  try {
    return espalier::run();
  } catch (const espalier::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return espalier::exit_code(error.kind());
  }
}
