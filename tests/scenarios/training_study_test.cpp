// SPDX-License-Identifier: Apache-2.0
// Iterations of training against arithmetic, on machines without start-up costs.
#include "scenarios/training_study.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/error_of.h"
#include "tests/scenarios/study_fixture.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::int64_t kMega = 1 << 20;

/// Layers of these many elements, in forward order; the backward pass takes as long as the forward
/// pass, its time shared in proportion to the elements.
std::shared_ptr<const Model> model_of(const std::vector<std::int64_t>& elements) {
  Model model;
  model.name = "made-up";
  model.backward_to_forward = 1;
  for (const std::int64_t count : elements) {
    model.tensors.push_back({"t" + std::to_string(model.tensors.size()), count, 1});
  }
  return std::make_shared<const Model>(model);
}

class Training : public StudyFixture {
 protected:
  /// Ring allreduce over four GPUs with 1 GB/s and no latency, an iteration of 20 ms on one.
  static TrainingQuery asked(const std::vector<std::int64_t>& elements) {
    TrainingQuery query;
    query.model = model_of(elements);
    query.exchange = with(question("full:n=4,gbps=1,latency_us=0"), "ring");
    query.step_s = 0.020;
    query.batch = 8;
    return query;
  }

  TrainingOutcome answer(const TrainingQuery& query) {
    TrainingOutcome outcome = train(study_, simulator_, query);
    EXPECT_EQ(outcome.skipped.value_or(""), "");
    for (const Diagnostic& problem : outcome.problems) ADD_FAILURE() << render(problem);
    return outcome;
  }
};

/// 2 (n - 1) / n of the bytes cross every link.
double ring_s(std::int64_t elements, int ranks = 4) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(elements * 4) / 1e9;
}

TEST_F(Training, OneGpuOnlyComputes) {
  TrainingQuery query = asked({kMega, 2 * kMega, kMega});
  query.exchange.gpus = {0};
  const TrainingOutcome outcome = answer(query);
  EXPECT_NEAR(outcome.iteration_s(), 0.020, 1e-15);
  EXPECT_EQ(outcome.compute_s, outcome.iteration_s());
  EXPECT_EQ(outcome.communication_s, 0);
  EXPECT_EQ(outcome.exposed_s(), 0);
  EXPECT_EQ(outcome.hidden_s(), 0);
  EXPECT_NEAR(outcome.efficiency(), 1, 1e-12);
  EXPECT_NEAR(outcome.samples_per_s(), 8 / 0.020, 1e-9);
}

TEST_F(Training, WithoutOverlapTimesAddUp) {
  TrainingQuery query = asked({kMega, 2 * kMega, kMega});
  query.overlap = false;
  const TrainingOutcome outcome = answer(query);
  // 4 Mi elements are 16 MiB, of which 3/2 cross each link: 25.2 ms.
  EXPECT_NEAR(outcome.communication_s, ring_s(4 * kMega), 1e-9);
  EXPECT_NEAR(outcome.iteration_s(), 0.020 + ring_s(4 * kMega), 1e-9);
  EXPECT_EQ(outcome.hidden_s(), 0);
  EXPECT_NEAR(outcome.exposed_s(), outcome.communication_s, 1e-12);
  EXPECT_NEAR(outcome.samples_per_s(), 4 * 8 / outcome.iteration_s(), 1e-9);
}

TEST_F(Training, OverlapHidesWhatTheBackwardPassCovers) {
  // The backward pass takes 10 ms: 2.5, 5 and 2.5. Buckets of one tensor take 6.3, 12.6 and 6.3 ms
  // each: ready at 12.5, 17.5 and 20 ms, they run from 12.5, 18.8 and 31.4 ms on.
  const TrainingOutcome outcome = answer(asked({kMega, 2 * kMega, kMega}));
  ASSERT_EQ(outcome.buckets.size(), 3U);
  EXPECT_NEAR(outcome.buckets[0].ready_s, 0.0125, 1e-12);
  EXPECT_NEAR(outcome.buckets[1].ready_s, 0.0175, 1e-12);
  EXPECT_NEAR(outcome.buckets[1].begin_s, 0.0125 + ring_s(kMega), 1e-9);
  EXPECT_NEAR(outcome.buckets[2].end_s, outcome.iteration_s(), 1e-12);
  EXPECT_NEAR(outcome.iteration_s(), 0.0125 + ring_s(4 * kMega), 1e-9);
  EXPECT_NEAR(outcome.hidden_s(), 0.0075, 1e-9);
  EXPECT_NEAR(outcome.exposed_s() + outcome.hidden_s(), outcome.communication_s, 1e-12);
}

TEST_F(Training, OneBucketHasNothingToHideBehind) {
  TrainingQuery query = asked({kMega, 2 * kMega, kMega});
  query.fusion_bytes = 16 * kMega;
  const TrainingOutcome fused = answer(query);
  EXPECT_EQ(fused.buckets.size(), 1U);
  EXPECT_EQ(fused.hidden_s(), 0);
  // Two buckets, of the last 4 and the first 12 MiB: the first is exchanged while 7.5 ms are left.
  query.fusion_bytes = 12 * kMega;
  const TrainingOutcome halves = answer(query);
  ASSERT_EQ(halves.buckets.size(), 2U);
  EXPECT_EQ(halves.buckets[0].bytes, 12 * kMega);
  EXPECT_NEAR(halves.hidden_s(), 0.0025, 1e-9);  // ready at 17.5 of 20 ms
}

TEST_F(Training, SlowComputationHidesAllButTheLastBucket) {
  TrainingQuery query = asked({kMega, 2 * kMega, kMega});
  query.step_s = 1;
  const TrainingOutcome outcome = answer(query);
  EXPECT_NEAR(outcome.exposed_s(), ring_s(kMega), 1e-9);
}

TEST_F(Training, ParametersCanBeBroadcast) {
  // One link after the other on a line of two: reduce and broadcast take 4 MiB / 1 GB/s each.
  TrainingQuery query = asked({kMega});
  query.exchange = with(question("full:n=2,gbps=1,latency_us=0"), "knomial+pipelined_chain");
  query.exchange.chunk_bytes = 0;
  const TrainingOutcome outcome = answer(query);
  EXPECT_NEAR(outcome.communication_s, 2 * 4.0 * kMega / 1e9, 1e-9);
  EXPECT_EQ(outcome.buckets[0].algorithm, "knomial+pipelined_chain");
}

TEST_F(Training, OwnersBroadcastTheirShares) {
  // A quarter of 4 MiB takes u = 1.05 ms over a link. Every owner reads three quarters over links
  // of its own: u. Then four broadcasts, each of one round with k = 4, or of three hops along a
  // chain; the next one's root and its first receiver have to be done with the one before.
  const double u = kMega / 1e9;
  TrainingQuery query = asked({kMega});
  query.exchange.algorithm = "owners:direct+knomial:k=4";
  query.exchange.chunk_bytes = 0;
  const TrainingOutcome trees = answer(query);
  EXPECT_NEAR(trees.communication_s, (1 + 4 * 1) * u, 1e-9);
  EXPECT_EQ(trees.buckets[0].algorithm, "owners:direct+knomial:k=4");
  query.exchange.algorithm = "owners:direct+chain";
  EXPECT_NEAR(answer(query).communication_s, (1 + 4 * 3) * u, 1e-9);
  // Every broadcast is by what is best for one.
  query.exchange.algorithm = "owners:direct+auto";
  const TrainingOutcome chosen = answer(query);
  EXPECT_LE(chosen.communication_s, trees.communication_s + 1e-9);
  EXPECT_TRUE(chosen.buckets[0].algorithm.starts_with("owners:direct+"));
  EXPECT_EQ(chosen.buckets[0].algorithm.find("auto"), std::string::npos);
}

TEST_F(Training, OneOwnerKeepsWhatItHas) {
  TrainingQuery query = asked({kMega});
  query.exchange.gpus = {2};
  query.exchange.algorithm = "owners:ring+knomial";
  EXPECT_EQ(answer(query).communication_s, 0);
}

TEST_F(Training, EveryCallHasItsCost) {
  Topology machine = load_topology("full:n=4,gbps=1,latency_us=0");
  machine.profiles["ideal"].call_overhead_s = 1e-3;
  study_.know_machine("slow-calls", machine);
  TrainingQuery query = asked({kMega});
  query.exchange.topology = "slow-calls";
  // One call for an allreduce, five for a reducescatter and four broadcasts.
  const TrainingOutcome ring = answer(query);
  EXPECT_NEAR(ring.communication_s, ring_s(kMega) + 1e-3, 1e-9);
  EXPECT_NEAR(ring.compute_s, 0.020, 1e-12);
  EXPECT_NEAR(ring.iteration_s(), 0.020 + ring_s(kMega) + 1e-3, 1e-9);
  query.exchange.algorithm = "owners:direct+knomial:k=4";
  query.exchange.chunk_bytes = 0;
  EXPECT_NEAR(answer(query).communication_s, 5 * (kMega / 1e9 + 1e-3), 1e-9);
}

TEST_F(Training, ACallCostsASlowGpuNoMore) {
  Topology machine = load_topology("full:n=4,gbps=1,latency_us=0");
  machine.profiles["ideal"].call_overhead_s = 1e-3;
  machine.nodes[2].speed = 0.5;
  study_.know_machine("slow-gpu", machine);
  TrainingQuery query = asked({kMega});
  query.exchange.topology = "slow-gpu";
  const TrainingOutcome outcome = answer(query);
  EXPECT_NEAR(outcome.compute_s, 0.040, 1e-12);
  EXPECT_NEAR(outcome.communication_s, ring_s(kMega) + 1e-3, 1e-9);
  EXPECT_NEAR(outcome.iteration_s(), 0.040 + ring_s(kMega) + 1e-3, 1e-9);
  // Against four GPUs that take 20 ms, whatever the slow one does.
  EXPECT_NEAR(outcome.efficiency(), 0.020 / outcome.iteration_s(), 1e-12);
  EXPECT_NEAR(outcome.efficiency(), outcome.samples_per_s() / (4 * 8 / 0.020), 1e-12);
}

TEST_F(Training, HalfPrecisionHalvesTheBytes) {
  TrainingQuery query = asked({kMega});
  query.type = DataType::float16;
  EXPECT_NEAR(answer(query).communication_s, ring_s(kMega) / 2, 1e-9);
}

TEST_F(Training, LanguageModelOfTheRingArticle) {
  // Baidu ring allreduce, 2017: 2 * 39/40 * 1.2 GB / 6 GB/s is about 400 ms of communication; 650
  // to 700 ms an iteration on 40 GPUs, 370 ms on one, so that 70 to 120 ms are hidden. Within 10 %.
  TrainingQuery query;
  query.model = std::make_shared<const Model>(load_model("lm300m"));
  query.exchange = with(question("baidu40", Collective::allreduce, "kernel"), "ring");
  query.step_s = find_step(*query.model, "", 32).step_s;
  query.batch = 32;
  const TrainingOutcome outcome = answer(query);
  EXPECT_EQ(outcome.ranks, 40);
  EXPECT_NEAR(outcome.communication_s, 0.400, 0.040);
  EXPECT_GE(outcome.iteration_s(), 0.650 * 0.9);
  EXPECT_LE(outcome.iteration_s(), 0.700 * 1.1);
  EXPECT_GE(outcome.hidden_s(), 0.070 * 0.9);
  EXPECT_LE(outcome.hidden_s(), 0.120 * 1.1);
  // Linear scaling: from 16 to 40 GPUs an iteration takes the same time within 5 %.
  query.exchange.gpus.resize(16);
  for (int gpu = 0; gpu < 16; ++gpu) query.exchange.gpus[gpu] = gpu;
  EXPECT_NEAR(answer(query).iteration_s() / outcome.iteration_s(), 1, 0.05);
}

TEST_F(Training, TooManyOpsAreRefused) {
  // A ring of 256 ranks has 2 * 255 * 256 ops, and 4 million hold 30 of them.
  TrainingQuery query = asked(std::vector<std::int64_t>(31, kMega));
  query.exchange = with(question("ring:n=256,gbps=1"), "ring");
  EXPECT_EQ(error_of([&] { train(study_, simulator_, query); }, ErrorKind::unsupported),
            "error: an iteration would have more than 4000000 ops\n"
            "  help: a larger fusion buffer makes fewer buckets, and a larger chunk fewer pieces");
}

TEST_F(Training, RandomModelsKeepTheirAccounts) {
  constexpr unsigned seed = 20261120;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](int minimum, int maximum) {
    return std::uniform_int_distribution<int>(minimum, maximum)(random);
  };
  const std::vector<std::string> algorithms = {"ring",
                                               "ring:directions=2",
                                               "chain",
                                               "all_pairs",
                                               "optimal",
                                               "knomial+direct",
                                               "double_binary_tree",
                                               "owners:direct+pipelined_chain"};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> elements(pick(1, 8));
    for (std::int64_t& count : elements) count = pick(1, 1 << 18);
    TrainingQuery query = asked(elements);
    query.exchange.algorithm = algorithms[pick(0, static_cast<int>(algorithms.size()) - 1)];
    query.step_s = pick(1, 30) * 1e-4;
    query.fusion_bytes = pick(0, 1) * pick(1, 1 << 20);
    SCOPED_TRACE(query.exchange.algorithm);
    const TrainingOutcome overlapped = answer(query);
    query.overlap = false;
    const TrainingOutcome apart = answer(query);
    const double tolerance_s = 1e-9 * apart.iteration_s();
    EXPECT_NEAR(overlapped.compute_s, query.step_s, tolerance_s);
    EXPECT_NEAR(apart.iteration_s(), apart.compute_s + apart.communication_s, tolerance_s);
    EXPECT_LE(overlapped.iteration_s(), apart.iteration_s() + tolerance_s);
    EXPECT_GE(overlapped.iteration_s(), overlapped.compute_s);
    EXPECT_GE(overlapped.iteration_s(), overlapped.communication_s - tolerance_s);
    EXPECT_GE(overlapped.hidden_s(), 0);
    EXPECT_NEAR(overlapped.hidden_s() + overlapped.exposed_s(), overlapped.communication_s,
                tolerance_s);
  }
}

TEST_F(Training, ExchangesAreChecked) {
  EXPECT_EQ(error_of([] { check_exchange("rings"); }, ErrorKind::usage),
            "error: there is no algorithm 'rings'\n  help: did you mean 'ring'?");
  EXPECT_EQ(error_of([] { check_exchange("ring+chain+chain"); }, ErrorKind::usage),
            "error: 'ring+chain+chain' names more than two algorithms\n"
            "  help: REDUCE+BROADCAST, such as knomial+pipelined_chain");
  EXPECT_EQ(error_of([] { check_exchange("owners:direct"); }, ErrorKind::usage),
            "error: 'owners:direct' does not name two algorithms\n"
            "  help: owners:REDUCESCATTER+BROADCAST, such as owners:direct+pipelined_chain");
  EXPECT_EQ(error_of([] { check_exchange("owners:knomial+ring"); }, ErrorKind::usage).substr(0, 57),
            "error: algorithm 'knomial' does not support reducescatter");
  check_exchange("owners:ring+auto");
  check_exchange("auto");
  check_exchange("knomial:k=4+scatter_allgather");
}

}  // namespace
}  // namespace espalier
