// SPDX-License-Identifier: Apache-2.0
#include "scenarios/study.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/machine_findings.h"
#include "core/file.h"
#include "exec/host/host_backend.h"
#include "scenarios/chooser.h"
#include "tests/scenarios/study_fixture.h"
#include "tests/temp_file.h"
#include "topologies/load.h"

namespace espalier {
namespace {

Query query(const std::string& topology, const std::string& algorithm, std::int64_t size_bytes) {
  return with(question(topology), algorithm, size_bytes);
}

using StudyTest = StudyFixture;

TEST_F(StudyTest, RingTakesItsClosedForm) {
  // 2 (n - 1) steps of M / n / B + start-up = 14 x (1e6 / 25e9 + 1e-6) s.
  const Outcome outcome = study_.ask(query("ring:n=8,gbps=25,startup_us=1", "ring", 8'000'000));
  EXPECT_TRUE(outcome.ran());
  EXPECT_EQ(outcome.ranks, 8);
  EXPECT_EQ(outcome.backend, "sim");
  EXPECT_EQ(outcome.chunk_bytes, 0);
  EXPECT_NEAR(outcome.report.time_s, 14 * (1e6 / 25e9 + 1e-6), 1e-9 * outcome.report.time_s);
  EXPECT_DOUBLE_EQ(outcome.busbw_gbps(), outcome.report.algbw_gbps() * 2 * 7 / 8);
}

TEST_F(StudyTest, JudgesByTheLinksThatWereUsed) {
  const Outcome fabric = study_.ask(query("ring:n=4,gbps=10,host_gbps=5", "ring", 4000));
  EXPECT_EQ(fabric.bound_links, LinkScope::fabric);
  EXPECT_FALSE(fabric.bound_helpers);
  ASSERT_TRUE(fabric.bound.has_value());
  EXPECT_DOUBLE_EQ(fabric.fraction, fabric.report.algbw_gbps() / fabric.bound->algbw_gbps);

  const Outcome all =
      study_.ask(query("ring:n=4,gbps=10,host_gbps=5", "parameter_server:host=1", 4000));
  EXPECT_EQ(all.bound_links, LinkScope::all);
  EXPECT_TRUE(all.bound_helpers);
  ASSERT_TRUE(all.bound.has_value());
  EXPECT_GT(all.bound->algbw_gbps, fabric.bound->algbw_gbps);
}

TEST_F(StudyTest, TakesAMachineThatHasNoFile) {
  study_.know_machine("what was probed, just now", load_topology("ring:n=8,gbps=25"));
  const Outcome known = study_.ask(query("what was probed, just now", "ring", 8'000'000));
  EXPECT_EQ(known.report.time_s,
            study_.ask(query("ring:n=8,gbps=25", "ring", 8'000'000)).report.time_s);
}

TEST_F(StudyTest, SaysThatAnAlgorithmDoesNotSupportACollective) {
  // Also where programs of others would fold.
  const Outcome outcome = study_.ask(query("dgx-h100:nodes=4", "direct:at_once=1", 1 << 20));
  EXPECT_EQ(outcome.skipped, "does not support allreduce");
}

TEST_F(StudyTest, ForgetsMachinesWhereThereAreMany) {
  const auto about = [](int number) {
    Query one = query(fmt::format("ring:n=4,gbps={}", 25 + 0.5 * number), "ring", 8'000'000);
    one.against_nccl = true;
    one.judge = number == 0;
    return one;
  };
  EXPECT_THROW(study_.ask(query("dgx1-v100:foo", "ring", 8)), Error);  // is no machine to forget
  study_.know_machine("given", load_topology("ring:n=4,gbps=7"));
  const double given_s = study_.ask(query("given", "ring", 8'000'000)).report.time_s;
  const std::string file = temp_file("machine.yaml");
  write_file(file, print_topology(load_topology("dgx1-v100")));
  const double of_file_s = study_.ask(query(file, "ring", 8'000'000)).report.time_s;
  write_file(file, print_topology(load_topology("dgx1-p100")));
  const Outcome once = study_.ask(about(0));
  const std::weak_ptr<const MachineFindings> known = study_.machine(about(0)).found;
  const std::weak_ptr<const Topology> topology = study_.machine(about(0)).topology;
  study_.make_room();
  EXPECT_FALSE(known.expired());  // one machine is not many
  int asked = 1;
  for (; !known.expired() && asked < 2000; ++asked) {
    study_.make_room();
    study_.ask(about(asked));
  }
  EXPECT_LT(asked, 2000);
  EXPECT_TRUE(topology.expired());
  const Outcome again = study_.ask(about(0));
  EXPECT_EQ(again.report.time_s, once.report.time_s);
  EXPECT_EQ(again.nccl->time_s, once.nccl->time_s);
  EXPECT_EQ(study_.ask(query("given", "ring", 8'000'000)).report.time_s, given_s);
  EXPECT_EQ(study_.ask(query(file, "ring", 8'000'000)).report.time_s, of_file_s);
}

/// A study that was asked about other machines answers as one that was not: those laid out alike
/// share the ways of their routes, placements, programs and what simulations found out.
TEST_F(StudyTest, AnswersAboutAMachineWhateverItWasAskedBefore) {
  struct About {
    const char* machine;
    std::vector<int> gpus = {};
    std::vector<int> relays = {};
  };
  const std::vector<About> questions = {
      {"dgx1-v100"},
      {"dgx1-v100:nvlink2.gbps=30"},
      {"dgx1-v100:nvlink2.gbps=2"},  // slower than PCIe
      {"dgx1-v100:gpu0-gpu3.gbps=x2"},
      {"dgx1-v100:without=gpu0-gpu3"},
      {"dgx1-v100:without=gpu1-gpu2"},  // as many links, others
      {"dgx1-v100:nvlink2.gbps=30", {1, 4, 5, 7}},
      {"dgx1-v100", {1, 4, 5, 7}},
      {"dgx1-v100:pcie3x16.gbps=x3", {0, 1, 4}, {2}},
      {"dgx1-v100", {0, 1, 4}, {2}},
      {"dgx1-p100"},
      {"p2.16xlarge"},
      {"p2.16xlarge:nodes=2"},
      {"p2.16xlarge:pcie3x16.gbps=x0.5"},
      {"dgx-a100:nodes=2"},
      {"dgx-a100:nodes=2,nvlink3.gbps=x2"},
      {"dgx-a100:nodes=2,n1.nic0-fabric.gbps=5"},
  };
  for (const LinkScope links : {LinkScope::all, LinkScope::fabric}) {
    for (const auto& [profile, algorithm] : {std::pair("nccl", "nccl"),
                                             {"kernel", "nccl"},
                                             {"kernel:ll", "ring"},
                                             {"ideal", "ring"}}) {
      for (const About& about : questions) {
        Query one = query(about.machine, algorithm, 3'000'000);
        one.gpus = about.gpus;
        one.relays = about.relays;
        one.profile = profile;
        one.links = links;
        SCOPED_TRACE(fmt::format("{}, {} GPUs, {} under {}, {} links", about.machine,
                                 about.gpus.size(), algorithm, profile, to_string(links)));
        const auto answer_of = [&](Study& study) {
          try {
            const Outcome outcome = study.ask(one);
            return std::tuple(outcome.skipped.value_or(""), outcome.report.time_s, outcome.fraction,
                              outcome.chosen);
          } catch (const Error& error) {
            return std::tuple(std::string(error.what()), 0.0, 0.0, Query{}.algorithm);
          }
        };
        Study fresh(simulator_, &simulator_);
        EXPECT_EQ(answer_of(study_), answer_of(fresh));
      }
    }
  }
}

/// A study whose profile changes answers as one that is new, whatever it was asked before.
TEST_F(StudyTest, AnswersByTheProfileOfNow) {
  Topology machine = load_topology("dgx1-v100");
  study_.know_machine("mine", machine);
  std::vector<Query> queries;
  for (const char* const algorithm : {"nccl", "nccl:algo=ring,proto=ll128", "optimal", "ring"}) {
    for (const std::int64_t bytes : {std::int64_t{4096}, std::int64_t{16} << 20}) {
      Query one = with(question("mine", Collective::allreduce), algorithm, bytes);
      one.profile = "nccl";
      queries.push_back(one);
    }
  }
  for (const char* const changed : {"nccl", "kernel"}) {
    for (const double efficiency : {0.5, 0.8}) {
      Profile& profile = machine.profiles[changed];
      profile.links["nvlink2"].efficiency = profile.links["pcie3x16"].efficiency = efficiency;
      study_.change_profile("mine", changed, profile);
      Study fresh(simulator_, &simulator_);
      fresh.know_machine("mine", machine);
      for (const Query& query : queries) {
        const Outcome expected = fresh.ask(query);
        const Outcome outcome = study_.ask(query);
        EXPECT_EQ(outcome.report.time_s, expected.report.time_s) << query.algorithm;
        EXPECT_EQ(outcome.chosen, expected.chosen);
        EXPECT_EQ(outcome.fraction, expected.fraction) << query.algorithm;
      }
    }
  }
}

/// The order of links by rate is another one after the change, and back: routes that machines laid
/// out alike share must be those of now.
TEST_F(StudyTest, AnswersByTheRoutesOfNow) {
  for (const char* const name : {"one", "other", "as it was"}) {
    study_.know_machine(name, load_topology("dgx1-v100"));
  }
  const auto about = [](const char* machine, const char* algorithm) {
    Query asked = query(machine, algorithm, 1 << 20);
    asked.profile = "kernel";
    return asked;
  };
  const double unchanged_s = study_.ask(about("as it was", "ring")).report.time_s;
  for (const double efficiency : {1.0, 0.01, 0.5}) {
    for (const char* const changed : {"one", "other"}) {
      Topology machine = load_topology("dgx1-v100");
      Profile& profile = machine.profiles["kernel"];
      profile.links["nvlink2"].efficiency = efficiency;
      study_.change_profile(changed, "kernel", profile);
      Study fresh(simulator_, &simulator_);
      fresh.know_machine(changed, machine);
      for (const char* const algorithm : {"ring", "nccl"}) {
        const Query asked = about(changed, algorithm);
        EXPECT_EQ(study_.ask(asked).report.time_s, fresh.ask(asked).report.time_s)
            << changed << ", " << algorithm << ", " << efficiency;
      }
      EXPECT_EQ(study_.ask(about("as it was", "ring")).report.time_s, unchanged_s);
    }
  }
}

/// More machines than a study compares with each other: those of one name are still compared.
TEST_F(StudyTest, FindsOutOnceForAllProfilesWhatNcclDoes) {
  const auto about = [](int number, const char* profile) {
    Query asked = query(fmt::format("dgx-a100:nodes=2,without=n0.gpu{}-n0.nvswitch", number % 8),
                        "nccl", 1 << 20);
    if (number >= 8) asked.topology = fmt::format("dgx-a100:nodes={}", number);
    asked.profile = profile;
    return asked;
  };
  constexpr int kMachines = 12;
  for (int number = 0; number < kMachines; ++number) study_.machine(about(number, "kernel"));
  for (int number = 0; number < kMachines; ++number) {
    EXPECT_EQ(study_.machine(about(number, "kernel:ll")).found->nccl,
              study_.machine(about(number, "kernel")).found->nccl)
        << about(number, "kernel").topology;
  }
}

/// Four ranks pass a message on.
constexpr const char* kChain =
    "program mine\ncollective broadcast root 0\nranks 4\nunits 1\n"
    "0: r0.out[0] <- r0.in[0]\n1: r1.out[0] <- r0.in[0]\n"
    "2: r2.out[0] <- r1.out[0] after 1\n3: r3.out[0] <- r2.out[0] after 2\n";

Query broadcast(const std::string& algorithm, std::int64_t size_bytes) {
  return with(question("line:n=4,gbps=10", Collective::broadcast), algorithm, size_bytes);
}

TEST_F(StudyTest, CutsAProgramFromAFile) {
  const std::string path = temp_file("chain.esp");
  write_file(path, kChain);
  // Whole messages one after the other, then in pieces: as the algorithm of that name does it.
  Query whole = broadcast(path, 30'000'000);
  whole.chunk_bytes = 0;
  EXPECT_NEAR(study_.ask(whole).report.time_s, 3 * 0.003, 1e-12);
  const Outcome cut = study_.ask(broadcast(path, 30'000'000));
  EXPECT_TRUE(cut.ran());
  EXPECT_GT(cut.chunk_bytes, 0);
  EXPECT_DOUBLE_EQ(cut.report.time_s,
                   study_.ask(broadcast("pipelined_chain", 30'000'000)).report.time_s);
  // Read once, whatever becomes of the file.
  write_file(path, "no program");
  EXPECT_TRUE(study_.ask(broadcast(path, 1000)).ran());
  EXPECT_EQ(program_files(study_, broadcast(path, 1000)).size(), 1U);
  EXPECT_EQ(program_files(study_, broadcast("auto:chain|" + path, 1000)).size(), 1U);
  EXPECT_TRUE(program_files(study_, broadcast("chain", 1000)).empty());
}

TEST_F(StudyTest, PathsThroughGpusAreBoundAsSuch) {
  // One op takes the message past three wires of 1 us with one start-up of 4 us; ops that do not
  // name a path through GPUs need two.
  const std::string path = temp_file("through.esp");
  write_file(path,
             "program through\ncollective broadcast root 0\nranks 4\nunits 1\n"
             "0: r0.out[0] <- r0.in[0]\n1: r3.out[0] <- r0.in[0] via gpu1>gpu2\n"
             "2: r2.out[0] <- r0.in[0] via gpu1 lane 1\n3: r1.out[0] <- r0.in[0] lane 2\n");
  Query asked =
      with(question("line:n=4,latency_us=1,startup_us=4", Collective::broadcast), path, 0);
  const Outcome through = study_.ask(asked);
  ASSERT_TRUE(through.ran());
  EXPECT_NEAR(through.report.time_s, 7e-6, 1e-15);
  EXPECT_NEAR(through.fraction, 1, 1e-9);
  asked.algorithm = "chain";
  EXPECT_NEAR(study_.ask(asked).least_s(), 11e-6, 1e-15);
}

TEST_F(StudyTest, DoesNothingWithAWrongProgram) {
  const std::string path = temp_file("race.esp");
  std::string text = kChain;
  text.erase(text.find(" after 2"), 8);
  write_file(path, text);
  const Outcome outcome = study_.ask(broadcast(path, 1'000'000));
  EXPECT_FALSE(outcome.skipped);
  EXPECT_FALSE(outcome.verified);
  ASSERT_EQ(outcome.problems.size(), 1U);
  EXPECT_EQ(outcome.problems.front().rule, "R6");
  EXPECT_EQ(outcome.problems.front().where, (Location{path, 8, 0}));
  const Prediction prediction = study_.predict(broadcast(path, 1'000'000));
  EXPECT_NE(prediction.skipped.value_or("").find("the verifier refuses the program"),
            std::string::npos);
  EXPECT_EQ(study_.ask(broadcast("auto:chain|" + path, 1'000'000)).chosen, "chain");
  EXPECT_NO_THROW(study_.require_room(broadcast(path, 1'000'000)));
}

TEST_F(StudyTest, SaysWhatWouldFitAProgramFromAFile) {
  const std::string path = temp_file("four.esp");
  write_file(path, kChain);
  const auto instead = [&](auto&& change) {
    Query asked = broadcast(path, 1000);
    change(asked);
    const Outcome outcome = study_.ask(asked);
    EXPECT_TRUE(outcome.skipped);
    return outcome.instead;
  };
  EXPECT_EQ(instead([](Query& q) { q.topology = "line:n=8"; }),
            "--gpus 0-3, or a program for 8 ranks");
  EXPECT_EQ(instead([](Query& q) {
              q.topology = "line:n=8";
              q.gpus = {7, 6, 5, 4, 3};
            }),
            "--gpus 7,6,5,4, or a program for 5 ranks");
  EXPECT_EQ(instead([](Query& q) { q.topology = "line:n=3"; }),
            "a machine with more GPUs, or more of its --gpus");
  study_.know_machine("probed just now", load_topology("line:n=8"));
  EXPECT_EQ(instead([](Query& q) { q.topology = "probed just now"; }), "--ranks 4")
      << "it has as many GPUs as ranks were asked for";
  EXPECT_EQ(instead([](Query& q) { q.root = 2; }), "--root 0, or a program whose root is rank 2");
  EXPECT_EQ(instead([](Query& q) { q.collective = Collective::gather; }), "--collective broadcast");
}

TEST_F(StudyTest, DoesNotJudgeUnlessAsked) {
  Query asked = query("full:n=2", "ring", 4000);
  asked.judge = false;
  EXPECT_FALSE(study_.ask(asked).bound.has_value());
}

TEST_F(StudyTest, WhatDoesNotApplyIsSkippedWithTheReason) {
  const Outcome no_host = study_.ask(query("full:n=4", "parameter_server:host=1", 4000));
  ASSERT_TRUE(no_host.skipped.has_value());
  EXPECT_FALSE(no_host.ran());
  const Outcome no_route = study_.ask(query("ring:n=4", "all_pairs", 4000));
  ASSERT_TRUE(no_route.skipped.has_value());
  EXPECT_NE(no_route.skipped->find("no route from r"), std::string::npos) << *no_route.skipped;
}

TEST_F(StudyTest, UnconnectedRanksAreAnErrorThatNamesThem) {
  Query asked = query("ring:n=4", "ring", 4000);
  asked.gpus = {0, 2};
  try {
    study_.ask(asked);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_STREQ(error.what(),
                 "error: ranks 0 (gpu0) and 1 (gpu2) are not connected\n"
                 "  help: choose other GPUs; or let idle GPUs relay with --relay all");
  }
}

TEST_F(StudyTest, OfUnconnectedRanksTheMostThatAreConnectedAreNamed) {
  Query asked = query("ring:n=8", "ring", 4000);
  asked.gpus = {0, 6, 3, 5, 2};
  const auto ask = [&] { study_.ask(asked); };
  EXPECT_THAT(ask, testing::ThrowsMessage<Error>(
                       testing::HasSubstr("--gpus 6,5 takes the most that are connected")));
}

TEST_F(StudyTest, QuestionsWithoutSenseAreUsageErrors) {
  const auto kind_of = [&](const Query& asked) {
    try {
      study_.ask(asked);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::runtime;
  };
  Query root = query("full:n=4", "chain", 4000);
  root.collective = Collective::broadcast;
  root.root = 4;
  EXPECT_EQ(kind_of(root), ErrorKind::usage);
  Query profile = query("full:n=4", "chain", 4000);
  profile.profile = "none";
  EXPECT_EQ(kind_of(profile), ErrorKind::usage);
  EXPECT_EQ(kind_of(query("full:n=4", "chian", 4000)), ErrorKind::usage);
  EXPECT_EQ(kind_of(query("fool:n=4", "chain", 4000)), ErrorKind::usage);
}

TEST_F(StudyTest, ChunksAsAsked) {
  Query asked = query("line:n=4,gbps=10", "chain", 4'000'000);
  asked.collective = Collective::broadcast;
  asked.chunk_bytes = 0;
  // Three hops of 400 us, one after the other.
  EXPECT_NEAR(study_.ask(asked).report.time_s, 3 * 400e-6, 1e-12);
  asked.chunk_bytes = 1'000'000;
  // Four pieces: the last one starts after three pieces of 100 us and takes three hops of them.
  const Outcome cut = study_.ask(asked);
  EXPECT_EQ(cut.chunk_bytes, 1'000'000);
  EXPECT_NEAR(cut.report.time_s, (3 + 3) * 100e-6, 1e-12);
  asked.chunk_bytes = 1 << 30;
  EXPECT_EQ(study_.ask(asked).chunk_bytes, 0) << "nothing is that long";
}

TEST_F(StudyTest, AutomaticChunksAreTheFastestOfThePowersOfTwo) {
  Query asked = query("line:n=8,gbps=10,startup_us=5", "pipelined_chain", 64'000'000);
  asked.collective = Collective::broadcast;
  const double automatic_s = study_.ask(asked).report.time_s;
  const std::int64_t chosen = study_.ask(asked).chunk_bytes;
  EXPECT_GT(chosen, 0);
  double best_s = INFINITY;
  for (int pieces = 1; pieces <= 256; pieces *= 2) {
    asked.chunk_bytes = pieces == 1 ? 0 : 64'000'000 / pieces;
    best_s = std::min(best_s, study_.ask(asked).report.time_s);
  }
  EXPECT_DOUBLE_EQ(automatic_s, best_s);
}

/// What it takes at the values of the parameters named, all others at their defaults.
double time_at(Study& study, Query asked, const std::string& parameters) {
  asked.algorithm += (asked.algorithm.find(':') == std::string::npos ? ":" : ",") + parameters;
  return study.ask(asked).report.time_s;
}

TEST_F(StudyTest, OpenParametersAreWeighedForTheMessageAtHand) {
  // Over all links, few of the trees cross PCIe and NICs: at 16 MiB they are not worth their
  // start-ups.
  for (const auto& [machine, collective] : {std::pair("mi300x", Collective::broadcast),
                                            std::pair("dgx1-v100", Collective::allreduce)}) {
    SCOPED_TRACE(machine);
    Query asked = question(machine, collective, "kernel");
    asked.algorithm = "optimal:plan=1";
    asked.size_bytes = 16 << 20;
    const Outcome weighed = study_.ask(asked);
    const double all_s = time_at(study_, asked, "fabric=0,strips=0");
    const double fabric_s = time_at(study_, asked, "fabric=1,strips=0");
    EXPECT_LT(fabric_s, 0.9 * all_s);
    EXPECT_LE(weighed.report.time_s, fabric_s * (1 + 1e-9));
    EXPECT_EQ(weighed.chosen.find("optimal:fabric=1,plan=1,strips="), 0U) << weighed.chosen;
    EXPECT_EQ(weighed.bound_links, LinkScope::fabric);
    EXPECT_EQ(weighed.query.algorithm, "optimal:plan=1");
    // What was chosen can be asked for, and auto chooses among the same.
    asked.algorithm = weighed.chosen;
    EXPECT_EQ(study_.ask(asked).report.time_s, weighed.report.time_s);
    EXPECT_EQ(study_.ask(asked).chosen, "");
  }
}

/// Whole trees have a lane for every op, too many to tell them apart; of pieces one of eight GPUs
/// is simulated.
TEST_F(StudyTest, PiecesAreToldApartWhereWholeOpsAreNot) {
  for (const char* const algorithm : {"hierarchical_trees", "optimal:plan=1"}) {
    Query asked = question("dgx-h100:nodes=64", Collective::allreduce, "kernel");
    asked.algorithm = algorithm;
    asked.size_bytes = 1 << 30;
    asked.only_times = true;
    const Outcome outcome = study_.ask(asked);
    EXPECT_EQ(outcome.report.simulated->alike_lanes, AlikeLanes::one_simulated) << algorithm;
  }
}

TEST_F(StudyTest, WhereTheFabricJoinsNotAllOtherLinksAreUsed) {
  Query asked = question("dgx1-v100:nodes=2", Collective::broadcast, "kernel");
  asked.algorithm = "optimal:plan=1";
  asked.size_bytes = 1 << 20;
  const Outcome outcome = study_.ask(asked);
  EXPECT_EQ(outcome.chosen.find("optimal:fabric=0,plan=1,strips="), 0U) << outcome.chosen;
  EXPECT_EQ(outcome.bound_links, LinkScope::all);
}

/// Three bundles of 33.9, 200 and 100 GB/s: exact weights take 1339 units, of 3 KiB at 4 MiB.
TEST_F(StudyTest, UnlikeBandwidthsLeaveRoomForPipelining) {
  Query asked = question(ESPALIER_MACHINES "/unlike.yaml", Collective::allreduce, "ideal");
  asked.algorithm = "optimal";
  asked.size_bytes = 4 << 20;
  EXPECT_GE(study_.ask(asked).fraction, 0.95);
  EXPECT_GT(time_at(study_, asked, "fabric=1,strips=0"), 1.5 * study_.ask(asked).report.time_s)
      << "1339 strips side by side: up, then down";
  Query blink = asked;
  blink.algorithm = "blink";
  EXPECT_LE(study_.ask(asked).report.time_s, 1.02 * study_.ask(blink).report.time_s);
  for (const Collective collective :
       {Collective::reduce, Collective::allgather, Collective::gather}) {
    asked.collective = collective;
    EXPECT_GE(study_.ask(asked).fraction, 0.95) << to_string(collective);
  }
}

TEST_F(StudyTest, SaysWhenAShareOfHostMemoryHasNoEffect) {
  const auto note = [&](const char* topology, const char* algorithm, std::vector<int> gpus) {
    Query asked = query(topology, algorithm, 1 << 20);
    asked.collective = Collective::sendrecv;
    asked.gpus = std::move(gpus);
    return study_.ask(asked).program_note;
  };
  const char* share = "multipath:host_share=20,streams=2";
  EXPECT_EQ(note("dgx1-v100", share, {0, 1}), "") << "one socket";
  EXPECT_EQ(note("dgx1-v100", share, {0, 4}),
            "host_share=20 has no effect: no two ranks share a host memory");
  EXPECT_EQ(note("dgx1-v100", share, {0, 4, 1, 5}),
            "host_share=20 has no effect: no transfer between two ranks of one host memory can be "
            "divided");
  EXPECT_EQ(note("ring:n=4", share, {}),
            "host_share=20 has no effect: no rank reaches a host memory");
  EXPECT_EQ(note("ring:n=4", share, {0}), "") << "nothing is sent";
  EXPECT_EQ(note("ring:n=4", "multipath:host_share=0,streams=2", {}), "") << "nothing is asked for";
  // Without parameters the default share is tried, and others.
  EXPECT_EQ(note("ring:n=4", "multipath", {}),
            "host_share=25 has no effect: no rank reaches a host memory");
}

TEST_F(StudyTest, SaysWhenASmallMessageIsInPiecesAlready) {
  Query asked = query("dgx1-v100", "optimal:fabric=0,strips=0", 64 << 10);
  asked.links = LinkScope::fabric;
  asked.profile = "copy_engine";  // with some 10 us for each copy, halves do not pay
  const Outcome outcome = study_.ask(asked);
  EXPECT_EQ(outcome.chunk_bytes, 0);
  // Trees of 24 units together, two strips each: 1366 bytes.
  EXPECT_EQ(outcome.chunk_note, "not cut: already in 48 pieces");
  EXPECT_EQ(study_.ask(query("line:n=8,gbps=10", "pipelined_chain", 2048)).chunk_note, "")
      << "the message itself is small";
}

TEST_F(StudyTest, AHopelessChunkSizeIsRaisedAndSaidToBe) {
  // Seven ops of the whole message: 500 000 ops allow 71 428 pieces each, of 14 bytes or somewhat
  // more, since pieces are whole elements.
  Query asked = query("line:n=8,gbps=10", "pipelined_chain", 1'000'000);
  asked.collective = Collective::broadcast;
  asked.chunk_bytes = 1;
  const Outcome raised = study_.ask(asked);
  EXPECT_TRUE(raised.ran());
  EXPECT_LE(raised.program->ops.size(), 500'000U);
  EXPECT_GT(raised.program->ops.size(), 400'000U);
  EXPECT_EQ(raised.chunk_bytes, 16);
  EXPECT_EQ(raised.chunk_note,
            "raised from 1 to 16 bytes: smaller ones would make more than 500000 ops");
  asked.chunk_bytes = 1000;
  const Outcome kept = study_.ask(asked);
  EXPECT_EQ(kept.chunk_bytes, 1000);
  EXPECT_EQ(kept.chunk_note, "");
}

TEST_F(StudyTest, ChunksAreSearchedAsFarAsTheWorkAllows) {
  Query asked = query("line:n=8,gbps=10,startup_us=5", "pipelined_chain", 64'000'000);
  asked.collective = Collective::broadcast;
  const Outcome best = study_.ask(asked);
  EXPECT_EQ(best.chunk_note, "");
  ASSERT_LT(best.chunk_bytes, 4'000'000);
  // 14 ops in halves, 28 in quarters; with the 56 of eighths they would be more than 90.
  Study frugal(simulator_, &simulator_, 90 * kWorkPerOp);
  const Outcome coarse = frugal.ask(asked);
  EXPECT_EQ(coarse.chunk_bytes, 16'000'000);
  EXPECT_EQ(coarse.chunk_note, "chunks of 8000000 bytes or less were not tried, to save time");
  EXPECT_GT(coarse.report.time_s, best.report.time_s);
}

TEST_F(StudyTest, OnlyWhatGainsIsCut) {
  EXPECT_EQ(study_.ask(query("ring:n=4", "halving_doubling", 64'000'000)).chunk_bytes, 0);
}

TEST_F(StudyTest, RemembersMachines) {
  const Query asked = query("dgx1-v100", "ring", 4000);
  Machine& machine = study_.machine(asked);
  EXPECT_EQ(&study_.machine(asked), &machine);
  Query some = asked;
  some.gpus = {0, 1};
  EXPECT_NE(&study_.machine(some), &machine);
  EXPECT_EQ(study_.machine(some).topology, machine.topology) << "read once";
}

TEST_F(StudyTest, AnswersDoNotDependOnWhatWasAskedBefore) {
  const Query asked = query("dgx1-v100", "double_binary_tree", 1 << 24);
  const Outcome first = study_.ask(asked);
  study_.ask(query("dgx1-v100", "double_binary_tree", 1 << 20));
  study_.ask(query("full:n=4", "ring", 1 << 20));
  const Outcome again = study_.ask(asked);
  EXPECT_EQ(again.chunk_bytes, first.chunk_bytes);
  EXPECT_DOUBLE_EQ(again.report.time_s, first.report.time_s);
}

TEST(StudyHost, RunsWithoutAMachine) {
  HostBackend host;
  Simulator simulator;
  Study study(host, &simulator);
  Query asked = query("", "pipelined_chain", 3'000'000);
  asked.ranks = 3;
  asked.judge = false;
  asked.run.iterations = 2;
  const Outcome outcome = study.ask(asked);
  EXPECT_EQ(outcome.backend, "host");
  EXPECT_EQ(outcome.ranks, 3);
  EXPECT_EQ(outcome.report.executed->wrong, 0);
  EXPECT_EQ(outcome.chunk_bytes, 1 << 20);
}

}  // namespace
}  // namespace espalier
