// SPDX-License-Identifier: Apache-2.0
// What must hold for every program on every machine, tried on random choices. The seed is printed;
// ESPALIER_SEED tries another.
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
#include "planner/time_bound.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

std::mt19937_64 seeded() {
  const char* given = std::getenv("ESPALIER_SEED");
  const unsigned long seed = given ? std::strtoul(given, nullptr, 10) : 1;
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
  for (auto& [name, profile] : topology.profiles.edit()) {
    profile.call_overhead_s /= k;
    profile.local_overhead_s /= k;
    profile.reduce_overhead_s /= k;
    profile.staging_overhead_s /= k;
    profile.message_s /= k;
    for (auto& [cpu, more_s] : profile.message_more_s) more_s /= k;
    for (auto& [kind, link] : profile.links) link.overhead_s /= k;
    for (auto& [model, costs] : profile.in_switch) {
      costs.call_s /= k;
      costs.slice_s /= k;
      for (SwitchOps::Slices& cut : costs.slices) cut.fill_s /= k;
    }
    for (Protocol& protocol : profile.protocols) {
      protocol.call_s /= k;
      protocol.min_op_s /= k;
      for (auto& [link_class, hop_s] : protocol.hop_s) hop_s /= k;
      for (auto& [link_class, hold_s] : protocol.hold_s) hold_s /= k;
      for (auto& [model, more_s] : protocol.hop_more_s) more_s /= k;
      for (auto* rates : {&protocol.block_gbps, &protocol.gpu_gbps, &protocol.copy_gbps,
                          &protocol.checked_gbps}) {
        for (auto& [model, gbps] : *rates) gbps *= k;
      }
    }
  }
  return topology;
}

/// One random question; the same for every machine it is put to.
struct Question {
  std::string profile;
  const Algorithm* algorithm;
  Collective collective;
  std::vector<int> gpus;
  int root;
  std::int64_t bytes;
  std::int64_t split;
  SimEngine engine;

  std::string text() const {
    return fmt::format("{} {} {} root {} {} bytes split {} on GPUs {}, engine {}", profile,
                       algorithm->name, to_string(collective), root, bytes, split,
                       fmt::join(gpus, ","), to_string(engine));
  }
};

Question random_question(const Topology& topology, std::mt19937_64& random) {
  Question question;
  question.profile = pick<std::string>(
      {"ideal", "kernel", "kernel:ll", "nccl", "copy_engine", "cuda_graph"}, random);
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
  question.engine = pick<SimEngine>({SimEngine::simgrid, SimEngine::classes}, random);
  return question;
}

/// Generic machines have one protocol.
Profile profile_of(const Question& question, const Topology& topology) {
  const ProfileWord word = profile_word(question.profile);
  const bool has = topology.profiles.at(word.runtime).protocols.size() > 1;
  return topology.profile(has ? question.profile : word.runtime);
}

/// A machine ready for a question.
struct Setting {
  Setting(const Question& question, const Topology& topology)
      : router(topology, profile_of(question, topology)),
        target{&router, place_ranks(router, question.gpus)} {}
  Router router;
  Target target;
};

int root_of(const Question& question) {
  return info(question.collective).rooted ? question.root : 0;
}

/// Nothing when the algorithm does not serve the question there.
std::optional<Program> program_for(const Question& question, const Setting& setting) {
  const AlgorithmChoice choice = parse_algorithm(question.algorithm->name);
  const BuildRequest request = request_for(question.collective, root_of(question), false,
                                           setting.router, setting.target.placement);
  if (unsupported(choice, request)) return {};
  Program program = chunk(build(choice, request), {question.split, 1});
  EXPECT_TRUE(verify(program).ok());
  if (Simulator().unsupported(program, setting.target)) return {};
  return program;
}

constexpr std::size_t kMaxSimGridOps = 2000;

/// Nothing where FIFOs fill up: that is said instead (docs/topologies.md).
std::optional<RunReport> simulated(const Program& program, const Question& question,
                                   const Setting& setting) {
  RunOptions options;
  options.size_bytes = question.bytes;
  // SimGrid takes minutes for the largest.
  options.engine = program.ops.size() > kMaxSimGridOps ? SimEngine::classes : question.engine;
  try {
    return Simulator().run(program, setting.target, options);
  } catch (const Error& error) {
    EXPECT_GT(setting.router.profile().fifo_steps, 0) << error.what();
    return std::nullopt;
  }
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

/// What the simulator promises (docs/validation.md).
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
    const Topology fast_topology = faster(topology, k);
    const Setting slow(question, topology);
    const Setting fast(question, fast_topology);
    // The same program for both: an algorithm that plans for the machine may choose between equally
    // good plans.
    const std::optional<Program> program = program_for(question, slow);
    if (!program) continue;
    const auto slow_report = simulated(*program, question, slow);
    const auto fast_report = simulated(*program, question, fast);
    ASSERT_EQ(slow_report.has_value(), fast_report.has_value());
    if (!slow_report) continue;
    ++answered;
    const double slow_s = slow_report->time_s;
    EXPECT_NEAR(slow_s, fast_report->time_s * k, kAccuracy * slow_s);
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
    const Setting setting(question, topology);
    const std::optional<Program> program = program_for(question, setting);
    if (!program) continue;
    const std::optional<RunReport> found = simulated(*program, question, setting);
    if (!found) continue;
    const RunReport& report = *found;
    ++answered;
    const Bound bound = bandwidth_bound(question.collective, root_of(question), setting.router,
                                        setting.target.placement, {question.algorithm->uses_hosts});
    EXPECT_LE(report.algbw_gbps(), bound.algbw_gbps * (1 + kAccuracy));
    const TimeBound time = time_bound(question.collective, root_of(question), setting.router,
                                      setting.target.placement);
    const auto bytes = static_cast<double>(report.message_bytes);
    EXPECT_GE(report.time_s, time.least_s(bytes, bound) * (1 - kAccuracy)) << time.certificate;
  }
  EXPECT_GT(answered, 60);
}

}  // namespace
}  // namespace espalier
