// SPDX-License-Identifier: Apache-2.0
// What answers say beside a call's own time: what a benchmark prints, how far off the time is
// expected to be, and how fast NCCL is.
#include "scenarios/baseline.h"

#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

class Benchmark : public StudyFixture {
 protected:
  /// What is expected of NCCL, some of whose choice may be forced, with 1 MiB.
  ExpectedError expected(const std::string& machine, const std::string& algorithm,
                         const std::vector<int>& gpus = {},
                         Collective collective = Collective::allreduce) {
    Query query = with(question(machine, collective, "nccl"), algorithm, kMib);
    query.gpus = gpus;
    query.judge = false;
    return study_.ask(query).error.value();
  }

  Outcome ask(const std::string& machine, const std::string& profile, LaunchMode launch,
              Collective collective = Collective::allreduce, std::int64_t bytes = kMib,
              int version = 0) {
    Query query = with(question(machine, collective, profile), "nccl_rings", bytes);
    query.launch = launch;
    query.library_version = version;
    query.judge = false;
    return study_.ask(query);
  }
};

TEST_F(Benchmark, OfOneProcessHasTheCostsOfItsVersion) {
  const Outcome graph = ask("dgx-a100", "nccl", LaunchMode::graph);
  const Outcome old =
      ask("dgx-a100", "nccl", LaunchMode::single, Collective::allreduce, kMib, 201000);
  const Outcome newest = ask("dgx-a100", "nccl", LaunchMode::single);
  // 8 GPUs; under nccl all 32 blocks are in use. A ring's benchmark is its time, if nothing is
  // launched, but for the 1.7 us that a graph saves: 8 (4.0 + 32 x 0.22) = 88.32 us and
  // 8 (4.0 + 32 x 0.06) = 47.36 us, and fourth roots of sums of fourth powers.
  const auto together = [](double a_s, double b_s) {
    return std::pow(std::pow(a_s, 4) + std::pow(b_s, 4), 0.25);
  };
  ASSERT_EQ(graph.report.simulated->blocks, 32);
  EXPECT_NEAR(graph.benchmark_s, graph.report.time_s - 1.7e-6, 1e-12);
  EXPECT_NEAR(old.benchmark_s, together(graph.report.time_s, 88.32e-6), 1e-12);
  EXPECT_NEAR(newest.benchmark_s, together(graph.report.time_s, 47.36e-6), 1e-12);
  EXPECT_EQ(old.library_version, 201000);
}

/// A call by itself: rank 7's kernel starts after seven others, 7 x 4 us, and all that
/// passes it has to wait for it; the part of a ring that begins there goes all the way round.
TEST_F(Benchmark, StartsRanksOfOneProcessOneAfterTheOther) {
  const double together_s = ask("dgx-a100", "nccl:ll", LaunchMode::graph).report.time_s;
  const auto later_us = [&](LaunchMode launch, int version) {
    const Outcome outcome =
        ask("dgx-a100", "nccl:ll", launch, Collective::allreduce, kMib, version);
    return 1e6 * (outcome.report.time_s - together_s);
  };
  EXPECT_NEAR(later_us(LaunchMode::single, 201000), 7 * 4, 0.7);
  EXPECT_NEAR(later_us(LaunchMode::single, 0), 7 * 4, 0.7);
  EXPECT_NEAR(later_us(LaunchMode::per_gpu, 0), 0, 1e-9);
  // Two processes with eight GPUs each: every GPU has a proxy of its own to post its messages.
  const double two_s = ask("dgx-a100:nodes=2", "nccl:ll", LaunchMode::graph).report.time_s;
  const double late_s = ask("dgx-a100:nodes=2", "nccl:ll", LaunchMode::single).report.time_s;
  EXPECT_NEAR(1e6 * (late_s - two_s), 7 * 4, 0.3);
}

TEST_F(Benchmark, OfAChainIsShorterThanACall) {
  Query query =
      with(question("dgx-a100", Collective::broadcast, "nccl:ll"), "pipelined_chain", kMib);
  query.launch = LaunchMode::graph;
  query.chunk_bytes = kMib / 4;
  query.in_place = true;  // the root copies nothing
  const Outcome outcome = study_.ask(query);
  // Four pieces over seven hops: ten steps by themselves, four from call to call. Launch, LL's base
  // and wires are in both: 12.1 us, and 0.4 us for each hop. From
  // call to call a graph saves 1.7 us.
  const double steps_s = outcome.report.time_s - 12.1e-6;
  EXPECT_NEAR((outcome.benchmark_s + 1.7e-6 - 12.1e-6) / steps_s, 0.4, 0.04);
}

TEST_F(Benchmark, IsNotKnownOfTheory) {
  const Outcome outcome = ask("dgx-a100", "ideal", LaunchMode::single);
  EXPECT_NEAR(outcome.benchmark_s / outcome.report.time_s, 1, 1e-9);
  EXPECT_EQ(outcome.error->relative, 0);
}

TEST_F(Benchmark, ErrorsAreThoseOfWhatWasCompared) {
  const ExpectedError compared = expected("dgx-a100", "nccl");
  EXPECT_FALSE(compared.is_estimate);
  EXPECT_GT(compared.relative, 0);
  EXPECT_LT(compared.relative, kUncomparedError);
  // Two hosts, and GPUs of which no log was compared.
  EXPECT_TRUE(expected("dgx-a100:nodes=2", "nccl").is_estimate);
  EXPECT_TRUE(expected("mi250", "nccl").is_estimate);
}

TEST_F(Benchmark, ErrorsOfCallsThatWereNotComparedAreEstimates) {
  // Forced to what NCCL chooses there anyway, and an older version.
  for (const char* const algorithm :
       {"nccl:algo=ring", "nccl:proto=ll,algo=ring", "nccl:version=2.10", "nccl:threads=512"}) {
    EXPECT_FALSE(expected("dgx-a100", algorithm).is_estimate) << algorithm;
  }
  EXPECT_FALSE(expected("dgx-a100", "nccl", {0, 1, 2}).is_estimate);
  // Broadcasts were measured by one process, which says nothing of its GPUs where it is the slower;
  // a graph's calls were not measured.
  for (const LaunchMode launch : all_launch_modes()) {
    Query query = with(question("dgx-a100", Collective::broadcast, "nccl"), "nccl", kMib);
    query.launch = launch;
    EXPECT_EQ(study_.ask(query).error->is_estimate, launch != LaunchMode::single);
    query.size_bytes = 64 * kMib;
    EXPECT_FALSE(study_.ask(query).error->is_estimate);
    query.collective = Collective::allreduce;
    query.size_bytes = kMib;
    EXPECT_EQ(study_.ask(query).error->is_estimate, launch == LaunchMode::graph);
  }
  for (const char* const algorithm : {"nccl:algo=tree", "nccl:threads=64", "nccl:channels=1",
                                      "nccl:proto=simple", "ring", "nccl_rings"}) {
    EXPECT_TRUE(expected("dgx-a100", algorithm).is_estimate) << algorithm;
  }
  for (const Collective collective : {Collective::alltoall, Collective::reduce}) {
    EXPECT_TRUE(expected("dgx-a100", "nccl", {}, collective).is_estimate) << to_string(collective);
  }
  EXPECT_TRUE(expected("dgx-a100", "nccl", {0, 1}).is_estimate);
  EXPECT_TRUE(expected("dgx-a100", "nccl", {0}).is_estimate);
  // Theory holds for anything.
  Query query = with(question("dgx-a100", Collective::alltoall, "ideal"), "nccl:channels=2", kMib);
  query.gpus = {0, 1};
  EXPECT_EQ(study_.ask(query).error->relative, 0);
}

TEST_F(Benchmark, BlocksThatAreNoMultiplesOf16BytesHaveWideErrors) {
  Query query = with(question("dgx-a100", Collective::allgather, "nccl"), "nccl", 3 * kMib);
  query.gpus = {0, 1, 2};
  query.launch = LaunchMode::single;
  EXPECT_FALSE(study_.ask(query).error->is_estimate);  // 1 MiB each
  query.size_bytes = kMib;                             // 349525 bytes and a third
  const Outcome outcome = study_.ask(query);
  EXPECT_TRUE(outcome.error->is_estimate);
  EXPECT_EQ(outcome.error->relative, 0.5);
  EXPECT_NE(outcome.error->from.find("no multiple of 16 bytes"), std::string::npos);
  query.collective = Collective::allreduce;
  EXPECT_FALSE(study_.ask(query).error->is_estimate);  // which has no blocks
}

/// Blocks of 3, 6, 7 and 12 ranks that are and that are no multiples of 16 bytes.
TEST_F(Benchmark, BlocksOfOddNumbersOfRanksHaveWideErrors) {
  for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
    for (const int ranks : {3, 6, 7, 12}) {
      Query query = question("dgx2", collective, "nccl");
      query.algorithm = "nccl";
      for (int gpu = 0; gpu < ranks; ++gpu) query.gpus.push_back(gpu);
      query.judge = false;
      for (const std::int64_t block : {std::int64_t{4}, std::int64_t{1000}, kMib / 4 + 8}) {
        query.size_bytes = ranks * block;
        const ExpectedError error = *study_.ask(query).error;
        EXPECT_EQ(error.relative, 0.5) << to_string(collective) << " " << ranks << " x " << block;
        EXPECT_NE(error.from.find(fmt::format("each of the {} ranks", ranks)), std::string::npos);
      }
      query.size_bytes = ranks * kMib / 4;
      EXPECT_LT(study_.ask(query).error->relative, 0.5) << to_string(collective) << " " << ranks;
    }
  }
}

TEST(BaselineQuery, AsksTheSameOfTheLibrary) {
  Query query = with(question("dgx-a100", Collective::allreduce, "kernel:ll"), "optimal", kMib);
  query.against_nccl = true;
  query.chunk_bytes = 4096;
  query.relays = {7};
  query.gpus = {0, 1, 2};
  const std::optional<Query> asked = baseline_query(query);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->algorithm, "nccl");
  EXPECT_EQ(asked->profile, "kernel");  // which names its library's
  EXPECT_EQ(asked->size_bytes, kMib);
  EXPECT_EQ(asked->gpus, query.gpus);
  EXPECT_TRUE(asked->relays.empty());
  EXPECT_FALSE(asked->chunk_bytes);
  EXPECT_FALSE(asked->against_nccl);  // or it would be asked forever

  query.profile = "ideal";
  EXPECT_EQ(baseline_query(query)->profile, "ideal");
  query.profile = "host";
  EXPECT_FALSE(baseline_query(query));
  query.profile = "kernel";
  query.topology.clear();
  EXPECT_FALSE(baseline_query(query));
}

class AgainstNccl : public StudyFixture {};

TEST_F(AgainstNccl, SaysHowManyTimesAsFast) {
  Query query = with(question("dgx-a100", Collective::allreduce, "kernel"), "all_pairs", 8192);
  EXPECT_FALSE(study_.ask(query).nccl);  // which was not asked
  query.against_nccl = true;
  const Outcome outcome = study_.ask(query);
  ASSERT_TRUE(outcome.nccl);
  const Outcome library = study_.ask(*baseline_query(query));
  EXPECT_EQ(outcome.nccl->time_s, library.report.time_s);
  EXPECT_DOUBLE_EQ(*speedup_of(outcome), library.report.time_s / outcome.report.time_s);
  EXPECT_GT(*speedup_of(outcome), 1);  // two hops of LL are fewer than fourteen
  // NVLink 3 carries 85 % of 25 GB/s under `kernel`, 77 % under `nccl`.
  EXPECT_DOUBLE_EQ(outcome.nccl->runtime_gain, 0.85 / 0.77);
  // Of itself it is as fast as itself.
  Query same = *baseline_query(query);
  same.against_nccl = true;
  EXPECT_EQ(speedup_of(study_.ask(same)), 1.0);
  // All answers for a size are compared with one baseline, that of the profile asked for.
  EXPECT_DOUBLE_EQ(study_.ask(same).nccl->runtime_gain, 0.85 / 0.77);
}

/// For large messages nothing is faster than NCCL by more than both errors: on a DGX H100 whatever
/// runs it, on a DGX A100 if NCCL's kernels do. Kernels that put data into peers' memory are faster
/// there, and for small messages anywhere.
TEST_F(AgainstNccl, IsKeptWhereNothingIsFaster) {
  for (const auto& [machine, profile] :
       {std::pair("dgx-h100", "kernel"), {"dgx-h100", "nccl"}, {"dgx-a100", "nccl"}}) {
    Query query = question(machine, Collective::allreduce, profile);
    query.against_nccl = true;
    query.judge = false;
    for (const char* const candidate : {"all_pairs", "hierarchical", "flat_two_stage:at_once=1",
                                        "halving_doubling", "nccl_rings", "ring", "nvls"}) {
      for (const std::int64_t bytes : {256 * kMib, 1024 * kMib}) {
        const Outcome outcome = study_.ask(with(query, candidate, bytes));
        if (!outcome.ran()) continue;  // nvls needs switches that combine
        EXPECT_TRUE(keeps_library(outcome))
            << machine << " " << profile << " " << candidate << " of " << bytes;
      }
    }
    query.profile = "kernel";
    EXPECT_FALSE(keeps_library(study_.ask(with(query, "all_pairs", 8192)))) << machine;
  }
  Query query = question("dgx-a100", Collective::allreduce, "kernel");
  query.against_nccl = true;
  EXPECT_FALSE(keeps_library(study_.ask(with(query, "flat_two_stage", 1024 * kMib))));
}

TEST_F(AgainstNccl, ComparesAllVersionsWithTheOneOfTheQuestion) {
  Query query = with(question("dgx-a100", Collective::allreduce, "kernel"), "nccl", 16 * kMib);
  const Outcome newest = study_.ask(query);
  const Outcome old = study_.ask(with(query, "nccl:version=2.4", 16 * kMib));
  ASSERT_GT(old.report.time_s, 1.1 * newest.report.time_s);
  query.against_nccl = true;
  const Outcome row = study_.ask(with(query, "nccl:version=2.4", 16 * kMib));
  EXPECT_EQ(row.report.time_s, old.report.time_s);
  EXPECT_EQ(row.nccl->time_s, newest.report.time_s);
  EXPECT_EQ(row.nccl->version, newest.library_version);
  EXPECT_EQ(*speedup_of(row), newest.report.time_s / old.report.time_s);
  EXPECT_EQ(study_.ask(with(query, "nccl:proto=ll", 16 * kMib)).nccl->time_s, newest.report.time_s);
  query.library_version = 200408;  // of a log, say
  const Outcome of_log = study_.ask(with(query, "nccl:version=2.30", 16 * kMib));
  EXPECT_EQ(of_log.nccl->time_s, old.report.time_s);
  EXPECT_EQ(of_log.nccl->version, 200400);
}

TEST(IsOpen, UntilTheDifferenceIsMoreThanBothErrorsCombined) {
  // sqrt(0.03^2 + 0.04^2) = 0.05
  EXPECT_TRUE(is_open(100, 0.03, 104.9, 0.04));
  EXPECT_TRUE(is_open(104.9, 0.03, 100, 0.04));  // either way
  EXPECT_FALSE(is_open(100, 0.03, 105.1, 0.04));
  EXPECT_FALSE(is_open(100, 0, 100, 0));  // exact times: the first one is the fastest
}

TEST(KeepsLibrary, UnlessAnAnswerIsFasterByMoreThanTheError) {
  Outcome outcome;
  outcome.report.time_s = 100;
  outcome.error = ExpectedError{0.07, "", false};
  EXPECT_FALSE(keeps_library(outcome));  // nothing is known of it
  outcome.nccl = Baseline{107.5, "nccl", 203000, 0.03};
  EXPECT_TRUE(keeps_library(outcome));  // 7.5 % of sqrt(7^2 + 3^2) = 7.6 %
  outcome.nccl->time_s = 107.7;
  EXPECT_FALSE(keeps_library(outcome));
  outcome.nccl->time_s = 50;
  EXPECT_TRUE(keeps_library(outcome));  // far faster
}

}  // namespace
}  // namespace espalier
