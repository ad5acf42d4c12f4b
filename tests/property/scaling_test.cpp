// SPDX-License-Identifier: Apache-2.0
// What must hold for every program on every machine, tried on random choices. The seed is printed;
// ESPALIER_SEED repeats a run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/chunk.h"
#include "ir/verify.h"
#include "planner/bounds.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {
namespace {

std::mt19937_64 seeded() {
  const char* given = std::getenv("ESPALIER_SEED");
  const unsigned long seed = given ? std::strtoul(given, nullptr, 10) : std::random_device{}();
  std::cout << "seed " << seed << "\n";
  return std::mt19937_64(seed);
}

template <typename T>
const T& pick(const std::vector<T>& from, std::mt19937_64& random) {
  return from[random() % from.size()];
}

/// A machine `k` times as fast in everything: bandwidths times k, latencies and start-ups over k.
Topology faster(Topology topology, double k) {
  for (Node& node : topology.nodes) {
    node.memory_gbps *= k;
    node.reduce_gbps *= k;
  }
  for (Link& link : topology.links) {
    link.gbps *= k;
    link.measured_gbps *= k;
    link.latency_s /= k;
  }
  for (auto& [name, profile] : topology.profiles) {
    profile.local_overhead_s /= k;
    profile.reduce_overhead_s /= k;
    profile.staging_overhead_s /= k;
    for (auto& [kind, link] : profile.links) link.overhead_s /= k;
  }
  return topology;
}

struct Answer {
  double time_s = 0;
  double algbw_gbps = 0;
  double bound_gbps = 0;
};

/// One random question; the same for every machine it is put to.
struct Question {
  std::string profile;
  const Algorithm* algorithm;
  Collective collective;
  std::vector<int> gpus;
  int root;
  std::int64_t bytes;
  std::int64_t split;

  std::string text() const {
    return fmt::format("{} {} {} root {} {} bytes split {} on GPUs {}", profile, algorithm->name,
                       to_string(collective), root, bytes, split, fmt::join(gpus, ","));
  }
};

Question random_question(const Topology& topology, std::mt19937_64& random) {
  Question question;
  question.profile = pick<std::string>({"ideal", "kernel", "copy_engine"}, random);
  question.algorithm = pick(all_algorithms(), random);
  question.collective = pick(question.algorithm->collectives, random);
  std::vector<int> gpus(topology.gpus().size());
  std::iota(gpus.begin(), gpus.end(), 0);
  std::shuffle(gpus.begin(), gpus.end(), random);
  gpus.resize(2 + random() % std::min<std::size_t>(gpus.size() - 1, 15));
  question.gpus = gpus;
  question.root = static_cast<int>(random() % gpus.size());
  question.bytes = static_cast<std::int64_t>(random() % (std::uint64_t{1} << (random() % 31)));
  question.split = 1 + static_cast<std::int64_t>(random() % 5);
  return question;
}

/// Nothing when the algorithm does not serve the question there.
std::optional<Answer> answer(const Question& question, const Topology& topology) {
  Router router(topology, topology.profile(question.profile));
  const Target target{&router, place_ranks(router, question.gpus)};
  const int root = info(question.collective).rooted ? question.root : 0;
  const AlgorithmChoice choice = parse_algorithm(question.algorithm->name);
  const BuildRequest request =
      request_for(question.collective, root, false, router, target.placement);
  if (unsupported(choice, request)) return {};
  const Program program = chunk(build(choice, request), {question.split, 1});
  EXPECT_TRUE(verify(program).ok());
  Simulator simulator;
  if (simulator.unsupported(program, target)) return {};
  RunOptions options;
  options.size_bytes = question.bytes;
  const RunReport report = simulator.run(program, target, options);
  const Bound bound = bandwidth_bound(question.collective, root, router, target.placement,
                                      {question.algorithm->uses_hosts});
  return Answer{report.time_s, report.algbw_gbps(), bound.algbw_gbps};
}

const std::vector<std::string>& machines() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"mist:nodes=2",
                                    "kesch:nodes=2",
                                    "dgx-a100:nodes=2",
                                    "torus:x=3,y=3,z=2,gbps=20,latency_us=1,forward=1",
                                    "ring:n=9,gbps=25,latency_us=2,forward=1,half=1",
                                    "star:n=7,gbps=10,forward=1",
                                    "switch:n=12,gbps=50"};
    for (const CatalogueEntry& entry : catalogue()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

/// What the simulator promises (docs/validation.md). Dates are rounded to 1e-12 of a run, some
/// hundred times one after the other, and rates to 1e-9 of a link by SimGrid's solver.
constexpr double kAccuracy = 1e-9;

TEST(Scaling, AFasterMachineIsFasterByThatFactor) {
  std::mt19937_64 random = seeded();
  int answered = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string& machine = pick(machines(), random);
    const Topology topology = load_topology(machine);
    const Question question = random_question(topology, random);
    SCOPED_TRACE(machine + ": " + question.text());
    const double k = std::uniform_real_distribution<double>(0.1, 10)(random);
    const std::optional<Answer> slow = answer(question, topology);
    const std::optional<Answer> fast = answer(question, faster(topology, k));
    ASSERT_EQ(slow.has_value(), fast.has_value());
    if (!slow) continue;
    ++answered;
    EXPECT_NEAR(slow->time_s, fast->time_s * k, kAccuracy * slow->time_s);
  }
  EXPECT_GT(answered, 30);
}

TEST(Scaling, NothingBeatsTheBound) {
  std::mt19937_64 random = seeded();
  int answered = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string& machine = pick(machines(), random);
    const Topology topology = load_topology(machine);
    const Question question = random_question(topology, random);
    SCOPED_TRACE(machine + ": " + question.text());
    const std::optional<Answer> run = answer(question, topology);
    if (!run) continue;
    ++answered;
    EXPECT_LE(run->algbw_gbps, run->bound_gbps * (1 + kAccuracy));
  }
  EXPECT_GT(answered, 60);
}

}  // namespace
}  // namespace espalier
