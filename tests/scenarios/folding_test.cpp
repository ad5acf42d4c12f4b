// SPDX-License-Identifier: Apache-2.0
// Of many groups of ranks that behave alike one is simulated: exactly what all of them would take.
#include "scenarios/folding.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/chunk.h"
#include "ir/rounds.h"
#include "ir/unfold.h"
#include "ir/verify.h"
#include "sim/simulator.h"
#include "tests/ir/built_again.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMib = std::int64_t{1} << 20;

struct Question {
  std::string machine;
  std::string profile;
  std::string algorithm = "ring";
  Collective collective = Collective::allreduce;
  bool in_place = false;
  int each = 1;  ///< ranks of a group
};

void PrintTo(const Question& question, std::ostream* out) {
  *out << fmt::format("{} {} {} {} {}", question.machine, question.profile, question.algorithm,
                      to_string(question.collective), question.in_place ? "in place" : "");
}

Machine machine_of(const Question& question) {
  Machine machine;
  machine.topology = std::make_shared<const Topology>(load_topology(question.machine));
  machine.router =
      std::make_unique<Router>(*machine.topology, machine.topology->profile(question.profile));
  machine.placement = place_ranks(*machine.router, {});
  return machine;
}

/// A question whose program folds, and all its ops.
class WithFolding {
 protected:
  WithFolding(const Question& question, std::optional<std::int64_t> size_bytes)
      : machine_(machine_of(question)),
        choice_(parse_algorithm(question.algorithm)),
        request_(request_for(question.collective, 0, question.in_place, *machine_.router,
                             machine_.placement)) {
    request_.size_bytes = size_bytes;
    const bool is_planned = choice_.algorithm->folds_of_plan != nullptr;
    folding_ = is_planned
                   ? first_folding(machine_, folds(choice_, request_, plan(choice_, request_)))
                   : find_folding(machine_, choice_, request_);
  }

  Program whole() const { return build(choice_, request_); }
  Program folded() const {
    BuildRequest request = request_;
    request.fold = folding_->fold;
    return build(choice_, request);
  }

  RunReport run(const Program& program, std::int64_t size_bytes, const BlockUse& blocks = {}) {
    RunOptions options;
    options.size_bytes = size_bytes;
    options.engine = SimEngine::classes;
    options.blocks = blocks;
    const bool is_folded = program.fold.is_folded();
    return simulator_.run(
        program,
        {machine_.router.get(), machine_.placement, is_folded ? folding_->rotation.get() : nullptr},
        options);
  }

  static void expect_alike(const RunReport& expected, const RunReport& found,
                           const std::string& what) {
    EXPECT_NEAR(found.time_s, expected.time_s, 1e-9 * expected.time_s) << what;
    EXPECT_NEAR(found.simulated->back_to_back_s, expected.simulated->back_to_back_s,
                1e-9 * expected.time_s)
        << what;
    EXPECT_EQ(found.transfers, expected.transfers) << what;
    EXPECT_NEAR(found.simulated->links.front().busy_s, expected.simulated->links.front().busy_s,
                1e-9 * expected.time_s)
        << what;
  }

  void expect_same_program(const Program& whole) const {
    const Program folded = this->folded();
    EXPECT_TRUE(folds_routes(folded, machine_, *folding_->rotation));
    EXPECT_EQ(folded.ops.size() * static_cast<std::size_t>(folding_->fold.groups),
              whole.ops.size());
  }

  void expect_verified() const {
    const Program folded = this->folded();
    const Verification quotient = verify(folded);
    EXPECT_TRUE(quotient.ok()) << (quotient.ok() ? "" : quotient.problems.front().message);
    EXPECT_EQ(quotient.proof, Proof::exact);
    if (!folded.vias.empty()) return;
    const Verification unfolded = verify(unfold(folded));
    EXPECT_TRUE(unfolded.ok()) << (unfolded.ok() ? "" : unfolded.problems.front().message);
    EXPECT_EQ(quotient.order_consistent, unfolded.order_consistent);
  }

  Machine machine_;
  AlgorithmChoice choice_;
  BuildRequest request_;
  std::optional<Folding> folding_;
  Simulator simulator_;
};

class Folded : public testing::TestWithParam<Question>, protected WithFolding {
 protected:
  Folded() : WithFolding(GetParam(), std::nullopt) {}

  void expect_alike(const Program& whole, const Program& folded, std::int64_t size_bytes) {
    WithFolding::expect_alike(run(whole, size_bytes), run(folded, size_bytes),
                              fmt::format("{} bytes", size_bytes));
  }
};

TEST_P(Folded, TakesAsLongAsAllRanks) {
  ASSERT_TRUE(folding_);
  EXPECT_EQ(folding_->fold.each, GetParam().each);
  const Program folded = this->folded();
  const Program whole = this->whole();
  expect_same_program(whole);
  for (const std::int64_t size_bytes : {std::int64_t{8}, std::int64_t{7919}, 4 * kMib, 64 * kMib}) {
    expect_alike(whole, folded, size_bytes);
  }
  if (!may_be_cut(folded) || !folds_when_cut(choice_)) return;
  const Chunking pieces{.split = 3, .piece_units = 1};
  const Program cut = chunk(folded, pieces);
  EXPECT_TRUE(verify(cut).ok());
  EXPECT_TRUE(same_program(cut, built_again(cut)));
  EXPECT_EQ(cut.fold, built_again(cut).fold);
  expect_alike(chunk(whole, pieces), cut, 64 * kMib);
}

TEST_P(Folded, IsVerifiedLikeAllRanks) {
  ASSERT_TRUE(folding_);
  expect_verified();
}

constexpr auto kAllreduce = Collective::allreduce;
constexpr auto kAllgather = Collective::allgather;
constexpr auto kReducescatter = Collective::reducescatter;

INSTANTIATE_TEST_SUITE_P(
    Questions, Folded,
    testing::Values(
        Question{"ring:n=12", "ideal", "ring", kAllreduce, false, 1},
        Question{"switch:n=12,latency_us=2", "ideal", "ring:directions=2", kAllreduce, true, 1},
        Question{"switch:n=16", "ideal", "ring", kAllgather, false, 1},
        Question{"switch:n=16", "ideal", "ring:directions=2", kAllgather, true, 1},
        Question{"switch:n=16", "ideal", "ring", kReducescatter, false, 1},
        Question{"dgx-a100:nodes=4", "kernel:simple", "ring", kAllreduce, false, 8},
        Question{"dgx-a100:nodes=4", "kernel:ll", "ring", kAllgather, true, 8},
        Question{"dgx-a100:nodes=4", "copy_engine", "ring", kReducescatter, true, 8},
        Question{"dgx-h100:nodes=6", "nccl:simple", "ring:directions=2", kAllreduce, true, 8},
        Question{"dgx-h100:nodes=6", "kernel:simple", "hierarchical:direct=0", kAllreduce, false,
                 8},
        Question{"dgx-h100:nodes=6", "kernel:ll128", "hierarchical:direct=1", kAllreduce, true, 8},
        Question{"mi300x:nodes=4", "kernel", "hierarchical:direct=1", kAllreduce, false, 8},
        Question{"dgx-h100:nodes=6", "kernel:simple", "nvls", kAllreduce, false, 8},
        Question{"dgx-h200:nodes=4", "nccl:simple", "nvls:channels=3", kAllreduce, true, 8},
        Question{"dgx1-v100:nodes=3", "kernel:simple", "ring", kAllreduce, false, 8},
        Question{"dgx-a100:nodes=4", "kernel:simple", "nccl_rings", kAllreduce, false, 8},
        Question{"dgx-h100:nodes=3", "kernel:ll128", "nccl_rings", kAllgather, true, 8},
        Question{"switch:n=12", "kernel", "direct:at_once=1", Collective::alltoall, false, 1},
        Question{"dgx-a100:nodes=3", "kernel:simple", "direct:at_once=1", Collective::alltoall,
                 true, 8},
        Question{"dgx-a100:nodes=3", "kernel:simple", "direct:at_once=1", kReducescatter, false, 8},
        Question{"dgx-h100:nodes=32", "kernel:simple", "direct:at_once=1", Collective::alltoall,
                 false, 8},
        Question{"dgx-h100:nodes=32", "kernel:ll128", "nccl_rings", kReducescatter, false, 8},
        Question{"gb200-nvl72:nodes=4", "kernel:simple", "ring", kAllreduce, false, 4},
        // All peers at once, and read in lockstep over links of several groups.
        Question{"switch:n=12", "kernel", "direct:at_once=11", Collective::alltoall, false, 1},
        Question{"ring:n=13,forward=1", "ideal", "direct:at_once=64", kAllgather, true, 1},
        Question{"ring:n=13,forward=1", "kernel:simple", "direct:at_once=12", kReducescatter, false,
                 1},
        Question{"dgx-a100:nodes=3", "kernel:ll", "direct:at_once=64", kReducescatter, false, 8},
        Question{"switch:n=257", "ideal", "ring", kAllgather, false, 1},
        Question{"ring:n=1024,half=1", "ideal", "ring", kAllreduce, true, 1},
        Question{"switch:n=12", "ideal", "direct:at_once=1", kAllgather, true, 1},
        Question{"switch:n=12", "kernel:simple", "hierarchical_trees", kAllreduce, false, 1},
        Question{"dgx-h100:nodes=3", "kernel:simple", "hierarchical_trees", kAllreduce, true, 8},
        Question{"dgx-a100:nodes=4", "kernel:ll128", "hierarchical_trees", kAllreduce, false, 8},
        Question{"mi300x:nodes=5", "kernel:simple", "hierarchical_trees", kAllreduce, false, 8},
        Question{"dgx1-v100:nodes=16", "kernel:simple", "hierarchical_trees", kAllreduce, false, 8},
        Question{"ring:n=12", "kernel:simple", "direct:at_once=1", Collective::sendrecv, true, 1},
        Question{"mist:nodes=16", "kernel:simple", "optimal", kAllgather, false, 4},
        Question{"mist:nodes=8", "kernel:ll", "optimal:k=1", kReducescatter, false, 4},
        Question{"dgx1-v100:nodes=4", "kernel:simple", "optimal", kReducescatter, true, 8},
        Question{"p3.16xlarge:nodes=5", "ideal", "optimal:strips=0", kAllgather, true, 8},
        // Reads peers of several groups in lockstep, by links of its own and of theirs.
        Question{"mist:nodes=6", "kernel:simple", "optimal", kAllreduce, false, 8},
        Question{"p3.16xlarge:nodes=8", "kernel:ll", "optimal", kAllreduce, true, 16},
        // Lanes share blocks: which ones must not depend on the numbers of peers.
        Question{"dgx2:nodes=5", "kernel:simple", "optimal", kAllgather, false, 16},
        Question{"dgx-h100:nodes=9", "kernel:simple", "optimal", kReducescatter, false, 8},
        // Names ways over NICs.
        Question{"dgx-a100:nodes=9", "kernel:simple", "optimal", kAllgather, false, 8},
        Question{"dgx-a100:nodes=4", "kernel:ll128", "optimal:streams=1", kReducescatter, false,
                 8}));

/// A library's program is for one size of message and runs in the library's blocks.
struct LibraryQuestion {
  std::string machine;
  std::string algorithm;
  std::int64_t size_bytes = 0;
  int each = 1;      ///< ranks of a group
  int channels = 1;  ///< that do the same
  Collective collective = Collective::allreduce;
  std::string protocol = "simple";
};

void PrintTo(const LibraryQuestion& question, std::ostream* out) {
  *out << fmt::format("{} {} {} {}", question.machine, question.algorithm,
                      to_string(question.collective), question.size_bytes);
}

class FoldedLibrary : public testing::TestWithParam<LibraryQuestion>, protected WithFolding {
 protected:
  FoldedLibrary() : WithFolding(question_of(GetParam()), GetParam().size_bytes) {}

  static Question question_of(const LibraryQuestion& asked) {
    return {asked.machine, "nccl:" + asked.protocol, asked.algorithm, asked.collective};
  }
};

TEST_P(FoldedLibrary, TakesAsLongAsAllRanks) {
  ASSERT_TRUE(folding_);
  EXPECT_EQ(folding_->fold.each, GetParam().each);
  EXPECT_EQ(folding_->fold.lanes, GetParam().channels);
  const Program folded = this->folded();
  const Program whole = this->whole();
  expect_same_program(whole);
  const BlockUse blocks = library_call(choice_, request_).blocks;
  const RunReport expected = run(whole, GetParam().size_bytes, blocks);
  // Written out again, shares belong to other heads than in the whole; and parts of a chunk that
  // are passed on line by line no longer stand one after the other, which is how they are known.
  std::vector<Program> alike = {folded};
  if (!blocks.streams) alike.push_back(unfold(folded));
  for (const Program& program : alike) {
    const RunReport found = run(program, GetParam().size_bytes, blocks);
    expect_alike(expected, found, program.fold.is_folded() ? "folded" : "unfolded again");
    EXPECT_EQ(found.simulated->blocks, expected.simulated->blocks);
  }
}

/// The same behind an op that takes no time: it does not begin with rounds.
Program without_rounds(Program program) {
  for (OpId& dependency : program.dependencies) ++dependency;
  Op nothing;
  nothing.kind = OpKind::compute;
  nothing.lane = 1000;
  nothing.dst = {0, static_cast<std::uint32_t>(program.durations_s.size()), Buffer::tmp};
  program.durations_s.push_back(0);
  program.ops.insert(program.ops.begin(), nothing);
  EXPECT_FALSE(find_rounds(program));
  return program;
}

/// Ops of all rounds are looked up in the first.
TEST_P(FoldedLibrary, TakesAsLongRoundByRound) {
  ASSERT_TRUE(folding_);
  const std::int64_t size_bytes = GetParam().size_bytes;
  const BlockUse blocks = library_call(choice_, request_).blocks;
  for (const Program& program : {folded(), whole()}) {
    const RunReport found = run(program, size_bytes, blocks);
    const RunReport expected = run(without_rounds(program), size_bytes, blocks);
    const std::string what = program.fold.is_folded() ? "folded" : "whole";
    EXPECT_EQ(found.time_s, expected.time_s) << what;
    EXPECT_EQ(found.simulated->back_to_back_s, expected.simulated->back_to_back_s) << what;
    EXPECT_EQ(found.simulated->critical_steps, expected.simulated->critical_steps) << what;
    EXPECT_EQ(found.transfers, expected.transfers) << what;
  }
}

TEST_P(FoldedLibrary, IsVerifiedLikeAllRanks) {
  ASSERT_TRUE(folding_);
  expect_verified();
}

INSTANTIATE_TEST_SUITE_P(
    Questions, FoldedLibrary,
    testing::Values(
        LibraryQuestion{"dgx-h100:nodes=3", "nccl:algo=nvls_tree", 64 * kMib, 3, 8},
        LibraryQuestion{"dgx-h100:nodes=6", "nccl:algo=nvls_tree", 8, 6, 8},
        LibraryQuestion{"dgx-h100:nodes=6", "nccl:algo=nvls_tree", 100'000'000, 6, 8},
        LibraryQuestion{"dgx-h100:nodes=4", "nccl:algo=nvls_tree,channels=7", 32 * kMib, 4, 1},
        LibraryQuestion{"dgx-h200:nodes=4", "nccl:algo=nvls_tree", 32 * kMib, 4, 8},
        // A tree's channels begin with one GPU after the other.
        LibraryQuestion{"dgx-h100:nodes=4", "nccl:algo=tree,proto=simple", 5'000'000, 4, 8},
        LibraryQuestion{"dgx-h100:nodes=5", "nccl:algo=tree,proto=ll,channels=16", 64 * 1024, 5, 8,
                        Collective::allreduce, "ll"},
        LibraryQuestion{"dgx-h100:nodes=3", "nccl:algo=tree,proto=ll128", 4 * kMib, 3, 8,
                        Collective::allreduce, "ll128"},
        // A ring's relays (PXN) hand on what another group gave them.
        LibraryQuestion{"dgx-h100:nodes=5", "nccl:algo=ring", 40'000'000, 8, 1,
                        Collective::allgather},
        LibraryQuestion{"dgx-h100:nodes=5", "nccl:algo=ring,proto=ll", 8000, 8, 1,
                        Collective::reducescatter, "ll"},
        LibraryQuestion{"dgx-a100:nodes=6", "nccl:algo=ring,pxn=0", 48 * kMib, 8, 1,
                        Collective::reducescatter},
        LibraryQuestion{"gb200-nvl72:nodes=4", "nccl:algo=ring", 24 * kMib, 4, 1,
                        Collective::allgather}));

/// Programs of which one round stands for all, whatever the last one is like.
class LibraryInRounds : public testing::TestWithParam<LibraryQuestion>, protected WithFolding {
 protected:
  LibraryInRounds()
      : WithFolding(
            {GetParam().machine, "nccl:simple", GetParam().algorithm, GetParam().collective},
            GetParam().size_bytes) {}
};

TEST_P(LibraryInRounds, HasThem) {
  ASSERT_TRUE(folding_);
  const auto one = with_one_round(folded());
  ASSERT_TRUE(one);
  EXPECT_LT(3 * one->ops.size(), 2 * folded().ops.size());
  EXPECT_TRUE(verify(*one).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Questions, LibraryInRounds,
    testing::Values(
        LibraryQuestion{"dgx-h100:nodes=3", "nccl:algo=nvls_tree", 64 * kMib},
        LibraryQuestion{"dgx-h100:nodes=6", "nccl:algo=nvls_tree", 100'000'000},
        // The last round is so nearly as long as the others that it counts as one of them.
        LibraryQuestion{"dgx-h100:nodes=6", "nccl:algo=nvls_tree", 64 * kMib - 4096}));

/// What the quotient's verifier must refuse: one change each to a program that folds.
class Wrong : public testing::Test {
 protected:
  Wrong() {
    Builder builder("ring", contract_, turned_by_blocks(contract_, 8));
    for (int step = 1; step < 8; ++step) {
      for (int rank = 0; rank < 8; ++rank) {
        const int chunk = (rank + 8 - step) % 8;
        const int next = (rank + 1) % 8;
        const Slice held =
            step == 1 ? builder.input(rank, chunk, 1) : builder.output(rank, chunk, 1);
        builder.combine(builder.output(next, chunk, 1), {held, builder.input(next, chunk, 1)});
      }
    }
    // Rank r has all of chunk r now; in the first half it began with what it passes on.
    for (int step = 1; step < 8; ++step) {
      for (int rank = 0; rank < 8; ++rank) {
        const int chunk = (rank + 9 - step) % 8;
        builder.copy(builder.output((rank + 1) % 8, chunk, 1), builder.output(rank, chunk, 1));
      }
    }
    program_ = builder.finish();
  }

  std::string refusal() const {
    const Verification verification = verify(program_);
    return verification.ok() ? "" : verification.problems.front().message;
  }

  const Contract contract_{Collective::allreduce, 8, 0, 8, false};
  Program program_;
};

TEST_F(Wrong, Source) {
  program_.sources[program_.ops[3].src_begin].begin += 1;
  program_.sources[program_.ops[3].src_begin].begin %= 8;
  EXPECT_NE(refusal(), "");
}

TEST_F(Wrong, MissingDependency) {
  Op& op = program_.ops.back();
  ASSERT_GT(op.dep_count, 0u);
  op.dep_count = 0;
  EXPECT_THAT(refusal(), HasSubstr("may run at the same time as op"));
}

TEST_F(Wrong, DependencyOnAnotherGroup) {
  int& group = program_.fold.dependency_groups.back();
  group = (group + 1) % 8;
  EXPECT_THAT(refusal(), HasSubstr("may run at the same time as op"));
}

TEST_F(Wrong, LastOpIsMissing) {
  program_.ops.pop_back();
  program_.dependencies.pop_back();
  program_.fold.dependency_groups.pop_back();
  EXPECT_THAT(refusal(), HasSubstr("result is not what allreduce promises"));
}

TEST_F(Wrong, ContributionCountedTwice) {
  Op& op = program_.ops[2];
  program_.sources[op.src_begin + 1] = program_.sources[op.src_begin];
  EXPECT_NE(refusal(), "");
}

/// Right for the first rank, and for no other.
TEST_F(Wrong, UnitsAreNotTurned) {
  program_.fold.turns[static_cast<std::size_t>(Buffer::out)].most.step = 0;
  EXPECT_THAT(refusal(), HasSubstr("the fold does not map"));
}

TEST_F(Wrong, PeriodsDoNotFitTheBuffer) {
  program_.fold.turns[static_cast<std::size_t>(Buffer::in)].most = {.period = 3, .step = 1};
  EXPECT_THAT(refusal(), HasSubstr("the fold does not map"));
}

TEST_F(Wrong, OrderIsNone) {
  program_.fold.order = {0, 1, 2, 3, 4, 5, 6, 6};
  EXPECT_THAT(refusal(), HasSubstr("the fold does not map"));
}

/// Groups that share ranks: four of two ranks, each with a lane of its own on one of them.
class WrongLane : public testing::Test {
 protected:
  WrongLane() {
    Fold fold{.groups = 4, .each = 1, .adjacent = 1, .lanes = 2};
    fold.lane_turn = Fold::LaneTurn::after_ranks;
    fold.turns.fill({.most = {.period = 4, .step = 1}});
    Builder builder("exchange", contract_, fold);
    for (int lane = 0; lane < 2; ++lane) {
      for (int rank = 0; rank < 2; ++rank) {
        const int unit = 2 * lane + rank;
        const int other = 1 - rank;
        builder.combine(builder.output(rank, unit, 1),
                        {builder.input(rank, unit, 1), builder.input(other, unit, 1)},
                        {.lane = lane});
        builder.copy(builder.output(other, unit, 1), builder.output(rank, unit, 1),
                     {.lane = 2 + lane});
      }
    }
    program_ = builder.finish();
  }

  const Contract contract_{Collective::allreduce, 2, 0, 4, false};
  Program program_;
};

TEST_F(WrongLane, IsRightAsItIs) {
  EXPECT_EQ(program_.ops.size(), 2u);
  EXPECT_TRUE(verify(program_).ok());
  EXPECT_TRUE(verify(unfold(program_)).ok());
}

TEST_F(WrongLane, DependencyOnTheOtherLane) {
  program_.fold.dependency_groups.front() = 2;
  EXPECT_FALSE(verify(program_).ok());
}

TEST_F(WrongLane, UnitOfTheOtherLane) {
  program_.ops.front().dst.begin = 2;
  EXPECT_FALSE(verify(program_).ok());
}

TEST_F(Wrong, InputOverwritten) {
  program_.ops[1].dst.buffer = Buffer::in;
  EXPECT_NE(refusal(), "");
}

TEST(Folding, NeedsWaysThatAreMovedOn) {
  const Machine machine = machine_of({"dgx-a100:nodes=4", "kernel:simple"});
  const AlgorithmChoice choice = parse_algorithm("optimal");
  const BuildRequest request =
      request_for(kAllgather, 0, false, *machine.router, machine.placement);
  Forest forest = plan(choice, request);
  const auto folding = first_folding(machine, folds(choice, request, forest));
  ASSERT_TRUE(folding);
  EXPECT_TRUE(folds_ways(forest, machine, *folding->rotation));
  // Another NIC on the same switch, between the same two ranks of the second machine's trees.
  const auto leaves = [](const TreeEdge& edge) { return edge.path.size() > 1; };
  PlannedTree& tree = forest.trees[8];
  const auto edge = std::ranges::find_if(tree.edges, leaves);
  ASSERT_NE(edge, tree.edges.end());
  const auto of_other = std::ranges::find_if(forest.trees[9].edges, leaves);
  ASSERT_NE(of_other, forest.trees[9].edges.end());
  ASSERT_NE(edge->path, of_other->path);
  edge->path = of_other->path;
  EXPECT_FALSE(folds_ways(forest, machine, *folding->rotation));
}

TEST(Folding, NeedsAlikeMachines) {
  const auto folds = [](const std::string& machine) {
    const Machine made = machine_of({machine, "kernel:simple", "ring"});
    return find_folding(made, parse_algorithm("ring"),
                        request_for(kAllreduce, 0, false, *made.router, made.placement))
        .has_value();
  };
  EXPECT_TRUE(folds("dgx-h100:nodes=4"));
  EXPECT_FALSE(folds("dgx-h100:nodes=4,n2.gpu3-n2.nvswitch.gbps=x0.5"));
  EXPECT_FALSE(folds("dgx-h100:nodes=4,n1.gpu0.speed=x0.5"));
  const Machine several = machine_of({"dgx-h100:nodes=4", "kernel:simple", "direct:at_once=2"});
  EXPECT_FALSE(find_folding(
      several, parse_algorithm("direct:at_once=2"),
      request_for(Collective::alltoall, 0, false, *several.router, several.placement)));
  // One rank has the switch of the network add up for all.
  const Machine joined = machine_of({"dgx-h100:nodes=4,ibswitch.combines=1", "kernel:simple"});
  const auto request = request_for(kAllreduce, 0, false, *joined.router, joined.placement);
  EXPECT_FALSE(find_folding(joined, parse_algorithm("nvls"), request));
  EXPECT_TRUE(find_folding(joined, parse_algorithm("ring"), request));
  // Roots of trees are not alike.
  const Machine made = machine_of({"dgx-h100:nodes=4", "kernel:simple", "ring"});
  EXPECT_FALSE(
      find_folding(made, parse_algorithm("ring"),
                   request_for(Collective::broadcast, 0, false, *made.router, made.placement)));
}

/// Programs fold, cut as a search finds it best: lanes that share a block and flows that
/// share a link have their turns alike in all groups.
TEST(Folding, FindsTheChunksOfAllRanks) {
  Simulator simulator;
  Query query;
  query.topology = "dgx-h100:nodes=4";
  query.judge = false;
  const std::vector<std::pair<std::string, std::int64_t>> asked = {
      {"hierarchical_trees", 1 * kMib},
      {"hierarchical_trees", 64 * kMib},
      {"hierarchical", 1 * kMib},
      {"hierarchical:direct=0", 64 * kMib},
      {"hierarchical:direct=1", 64 * kMib},
      // Of a protocol that has no ops in switches.
      {"nvls", 1 * kMib},
      {"nvls", 64 * kMib}};
  for (const auto& [algorithm, size_bytes] : asked) {
    SCOPED_TRACE(fmt::format("{}, {} bytes", algorithm, size_bytes));
    query.algorithm = algorithm;
    query.size_bytes = size_bytes;
    query.may_fold = true;
    const Outcome folded = Study(simulator, &simulator).ask(query);
    query.may_fold = false;
    const Outcome whole = Study(simulator, &simulator).ask(query);
    ASSERT_TRUE(folded.ran() && whole.ran());
    EXPECT_EQ(folded.program->fold.groups, 4);
    EXPECT_FALSE(whole.program->fold.is_folded());
    EXPECT_EQ(folded.chunk_bytes, whole.chunk_bytes);
    EXPECT_EQ(folded.protocol, whole.protocol);
    EXPECT_NEAR(folded.report.time_s, whole.report.time_s, 1e-9 * whole.report.time_s);
    EXPECT_NEAR(folded.benchmark_s, whole.benchmark_s, 1e-9 * whole.report.time_s);
  }
}

/// Where only times are asked for, programs of few ranks fold, too.
struct FewRanks {
  const char* machine;
  std::vector<int> gpus = {};
  const char* profile = "kernel";
  /// Of the questions below, how many are answered by a folded program, at least.
  int folded = 1;
};

/// Questions about machines of few ranks, one after the other.
struct AskedOfFew {
  Simulator simulator;
  Study study{simulator, &simulator};
  Query query = [] {
    Query asked;
    asked.judge = false;
    return asked;
  }();
};

class FoldingOfFew : public testing::TestWithParam<FewRanks>, protected AskedOfFew {};
class FoldingOfFewAlone : public testing::Test, protected AskedOfFew {};

TEST_P(FoldingOfFew, TakesTheTimeOfAllOps) {
  query.topology = GetParam().machine;
  query.gpus = GetParam().gpus;
  query.profile = GetParam().profile;
  int folded = 0;
  for (const Collective collective :
       {kAllreduce, kAllgather, kReducescatter, Collective::alltoall}) {
    query.collective = collective;
    for (const std::string& algorithm : Study::applicable(collective)) {
      if (algorithm == "optimal") continue;  // its plans do not fold
      query.algorithm = algorithm;
      for (const auto& [size_bytes, chunk_bytes] :
           std::vector<std::pair<std::int64_t, std::optional<std::int64_t>>>{
               {48 * 1024, {}}, {8 * kMib, {}}, {8 * kMib, 256 * 1024}, {48 * kMib, 0}}) {
        SCOPED_TRACE(fmt::format("{} by {}, {} bytes in chunks of {}", to_string(collective),
                                 algorithm, size_bytes, chunk_bytes.value_or(-1)));
        query.size_bytes = size_bytes;
        query.chunk_bytes = chunk_bytes;
        query.only_times = true;
        const Outcome few = study.ask(query);
        query.only_times = false;
        const Outcome whole = study.ask(query);
        ASSERT_EQ(few.skipped, whole.skipped);
        if (few.skipped) continue;
        folded += few.program->fold.is_folded() ? 1 : 0;
        EXPECT_FALSE(whole.program->fold.is_folded());
        EXPECT_EQ(few.chosen, whole.chosen);
        EXPECT_EQ(few.chunk_bytes, whole.chunk_bytes);
        EXPECT_EQ(few.protocol, whole.protocol);
        EXPECT_EQ(few.program_note, whole.program_note);
        EXPECT_NEAR(few.report.time_s, whole.report.time_s, 1e-9 * whole.report.time_s);
        EXPECT_NEAR(few.benchmark_s, whole.benchmark_s, 1e-9 * whole.report.time_s);
      }
    }
  }
  EXPECT_GE(folded, GetParam().folded);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, FoldingOfFew,
    testing::Values(FewRanks{"dgx-a100", {}, "kernel", 20}, FewRanks{"dgx2", {}, "kernel", 20},
                    FewRanks{"dgx1-v100"}, FewRanks{"mi300x", {}, "kernel", 10},
                    FewRanks{"dgx-h100:nodes=2", {}, "kernel", 20},
                    FewRanks{"dgx-h100:nodes=2", {}, "nccl"},
                    FewRanks{"dgx-a100:nodes=2", {0, 1, 2, 8, 9, 10}},
                    FewRanks{"dgx-a100:nodes=3", {0, 1, 8, 9, 16, 17}, "copy_engine"},
                    FewRanks{"mist:nodes=2"}, FewRanks{"ring:n=6,gbps=25", {}, "ideal", 4},
                    FewRanks{"switch:n=12", {}, "kernel:simple", 10},
                    FewRanks{"torus:x=3,y=4", {}, "ideal", 0}, FewRanks{"kesch"}),
    [](const auto& one) { return fmt::format("number_{}", one.index); });

/// Pairs of GPUs hang from one PCIe switch, so that no rotation of all that there is moves each to
/// the next; but all of them have the same links to the NVSwitches.
TEST_F(FoldingOfFewAlone, LooksAtTheFabricAloneWhereNothingElseIsUsed) {
  query.topology = "dgx-a100";
  query.algorithm = "ring";
  query.size_bytes = kMib;
  query.only_times = true;
  EXPECT_EQ(study.ask(query).program->fold.groups, 8);
}

/// Programs of long messages are forgotten when there are many, but not while a question about one
/// of them is being answered, for which another, folded one is built.
TEST_F(FoldingOfFewAlone, KeepsTheProgramThatIsAskedAbout) {
  query.topology = "dgx-a100";
  query.algorithm = "nccl";
  for (const std::int64_t size_bytes : {kMib << 19, kMib << 20}) {
    query.size_bytes = size_bytes;
    const Outcome outcome = study.ask(query);
    ASSERT_TRUE(outcome.ran());
    EXPECT_FALSE(outcome.program->fold.is_folded());
    EXPECT_TRUE(outcome.error.has_value());  // found out at the end, from what was prepared
  }
}

TEST_F(FoldingOfFewAlone, FindsWhichGroupsAreStaggeredAlike) {
  const auto are_alike = [](const std::string& machine, const std::string& algorithm,
                            Collective collective) {
    const Machine made = machine_of({machine, "kernel:simple"});
    BuildRequest request = request_for(collective, 0, false, *made.router, made.placement);
    const AlgorithmChoice choice = parse_algorithm(algorithm);
    request.fold = find_folding(made, choice, request).value().fold;
    return staggers_alike(build(choice, request));
  };
  EXPECT_FALSE(are_alike("dgx-h100:nodes=2", "hierarchical:direct=1", kAllreduce));
  EXPECT_TRUE(are_alike("dgx-h100:nodes=3", "hierarchical:direct=1", kAllreduce));
  EXPECT_TRUE(are_alike("dgx-h100:nodes=2", "hierarchical_trees", kAllreduce));
  EXPECT_TRUE(are_alike("dgx-h100:nodes=2", "ring", kAllgather));
  EXPECT_TRUE(are_alike("dgx-a100", "ring", kAllreduce));
}

/// Whether a lane of a rail is staggered depends on the machine where there are two of them.
TEST_F(FoldingOfFewAlone, IsNotWhereLanesBeginWithHalvesInSomeGroupsOnly) {
  query.algorithm = "hierarchical:direct=1";
  query.size_bytes = 1024 * kMib;
  query.chunk_bytes = 8 * kMib;
  query.profile = "kernel:simple";
  query.topology = "dgx2:nodes=2";
  EXPECT_FALSE(study.ask(query).program->fold.is_folded());
  query.topology = "dgx2:nodes=3";
  EXPECT_TRUE(study.ask(query).program->fold.is_folded());
}

/// Pieces begin when those before them have ended, and then share links in changing company.
TEST_F(FoldingOfFewAlone, OfAllPeersAtOnceIsOfWholeMessagesOnly) {
  query.topology = "dgx-h100:nodes=6";
  query.collective = Collective::alltoall;
  query.size_bytes = 16 * kMib;
  for (const auto& [at_once, chunk_bytes, is_folded] :
       {std::tuple(47, 0, true), std::tuple(47, 64 * 1024, false), std::tuple(46, 0, false),
        std::tuple(1, 64 * 1024, true)}) {
    query.algorithm = fmt::format("direct:at_once={}", at_once);
    query.chunk_bytes = chunk_bytes;
    query.may_fold = true;
    const Outcome outcome = study.ask(query);
    ASSERT_TRUE(outcome.ran());
    EXPECT_EQ(outcome.program->fold.is_folded(), is_folded) << at_once << ' ' << chunk_bytes;
    query.may_fold = false;
    const double whole_s = study.ask(query).report.time_s;
    EXPECT_NEAR(outcome.report.time_s, whole_s, 1e-9 * whole_s) << at_once << ' ' << chunk_bytes;
  }
}

/// Of many machines, switches add up and hand out while rings bring what comes next: a message
/// takes little longer than its way through the network, which is most of it.
TEST(Folding, StagesInSwitchesOverlap) {
  Simulator simulator;
  Query query;
  query.topology = "dgx-h100:nodes=64";
  query.algorithm = "nvls";
  query.size_bytes = 1024 * kMib;
  query.judge = false;
  const Outcome outcome = Study(simulator, &simulator).ask(query);
  ASSERT_TRUE(outcome.ran());
  EXPECT_EQ(outcome.program->fold.groups, 64);
  EXPECT_LT(outcome.report.time_s, 7.5e-3);  // 13.8 ms, one stage after the other
}

/// One process launches the GPUs of a host one after the other, so that they do not begin alike.
TEST(Folding, KeepsStartsApart) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = "dgx-h100:nodes=32";
  query.profile = "nccl";
  query.algorithm = "nccl:algo=nvls_tree";
  query.size_bytes = 64 * 1024;
  query.judge = false;
  EXPECT_TRUE(study.ask(query).program->fold.is_folded());
  query.launch = LaunchMode::single;
  const Outcome single = study.ask(query);
  EXPECT_FALSE(single.program->fold.is_folded());
  query.may_fold = false;
  EXPECT_EQ(study.ask(query).report.time_s, single.report.time_s);
}

TEST(Folding, ThousandsOfRanksAreOneGroup) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = "dgx-h100:nodes=512";
  query.profile = "kernel:simple";
  query.algorithm = "ring";
  query.size_bytes = 1024 * kMib;
  query.chunk_bytes = 0;
  const Outcome outcome = study.ask(query);
  ASSERT_TRUE(outcome.ran()) << *outcome.skipped;
  EXPECT_EQ(outcome.program->fold.groups, 512);
  EXPECT_EQ(outcome.report.transfers, std::int64_t{2} * 4096 * 4095);
  EXPECT_GT(outcome.fraction, 0);
  EXPECT_LT(outcome.fraction, 1);
  EXPECT_THAT(outcome.program_note, HasSubstr("512 groups of 8 ranks behave alike"));
}

/// Programs whose groups do the same, on machines that are not alike for them.
class OfGroups : public testing::TestWithParam<Question>, protected WithFolding {
 protected:
  OfGroups() : WithFolding(GetParam(), std::nullopt) {}

  Program of_one_group() const {
    BuildRequest request = request_;
    request.fold = folds(choice_, request).front();
    return build(choice_, request);
  }
  RunReport run(const Program& program, std::int64_t size_bytes,
                const std::vector<double>& starts_s = {}) {
    RunOptions options;
    options.size_bytes = size_bytes;
    options.engine = SimEngine::classes;
    options.starts_s = starts_s;
    const Target target{machine_.router.get(), machine_.placement, nullptr};
    EXPECT_EQ(simulator_.unsupported(program, target), std::nullopt);
    return simulator_.run(program, target, options);
  }
  void expect_alike(const RunReport& expected, const RunReport& found, const std::string& what) {
    WithFolding::expect_alike(expected, found, what);
    EXPECT_EQ(found.simulated->blocks, expected.simulated->blocks) << what;
    ASSERT_EQ(found.simulated->links.size(), expected.simulated->links.size()) << what;
    for (const LinkUse& link : expected.simulated->links) {
      const auto same = std::ranges::find(found.simulated->links, link.name, &LinkUse::name);
      ASSERT_NE(same, found.simulated->links.end()) << link.name;
      EXPECT_NEAR(same->bytes, link.bytes, 1e-9 * link.bytes) << link.name;
    }
  }
  /// Step by step.
  void expect_same_path(const RunReport& expected, const RunReport& found) {
    EXPECT_EQ(found.simulated->critical_steps, expected.simulated->critical_steps);
    const auto& steps = expected.simulated->critical_path;
    ASSERT_EQ(found.simulated->critical_path.size(), steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const CriticalStep& step = found.simulated->critical_path[i];
      EXPECT_EQ(step.op, steps[i].op);
      EXPECT_EQ(step.what, steps[i].what);
      EXPECT_EQ(step.waited_for, steps[i].waited_for);
      EXPECT_NEAR(step.start_s, steps[i].start_s, 1e-9 * expected.time_s);
    }
  }
};

TEST_P(OfGroups, AreSimulatedLikeAllOps) {
  EXPECT_FALSE(folding_) << "the machine is alike for all groups";
  const Program program = of_one_group();
  ASSERT_TRUE(program.fold.is_folded());
  EXPECT_EQ(program.fold.each, GetParam().each);
  EXPECT_TRUE(verify(program).ok());
  const Program whole = this->whole();
  for (const std::int64_t size_bytes : {std::int64_t{8}, std::int64_t{7919}, 64 * kMib}) {
    const std::string what = fmt::format("{} bytes", size_bytes);
    const RunReport found = run(program, size_bytes);
    expect_alike(run(whole, size_bytes), found, what);
    // Written out, ops have the same numbers.
    const RunReport expected = run(unfold(program), size_bytes);
    expect_alike(expected, found, what + ", unfolded");
    expect_same_path(expected, found);
  }
}

TEST_P(OfGroups, AreSimulatedLikeAllOpsInPieces) {
  const Program program = of_one_group();
  if (!may_be_cut(program)) return;
  const Chunking pieces{.split = 3, .piece_units = 1};
  const RunReport found = run(chunk(program, pieces), 64 * kMib);
  expect_alike(run(chunk(whole(), pieces), 64 * kMib), found, "in pieces");
  const RunReport expected = run(unfold(chunk(program, pieces)), 64 * kMib);
  expect_alike(expected, found, "in pieces, unfolded");
  expect_same_path(expected, found);
}

TEST_P(OfGroups, BeginOneAfterTheOther) {
  const Program program = of_one_group();
  std::vector<double> starts_s;
  for (int rank = 0; rank < program.ranks(); ++rank) starts_s.push_back(rank * 1e-6);
  const RunReport expected = run(unfold(program), kMib, starts_s);
  const RunReport found = run(program, kMib, starts_s);
  EXPECT_GT(expected.time_s, expected.simulated->together_s);
  expect_alike(expected, found, "one after the other");
  EXPECT_NEAR(found.simulated->together_s, expected.simulated->together_s, 1e-9 * expected.time_s);
  expect_same_path(expected, found);
}

INSTANTIATE_TEST_SUITE_P(
    Questions, OfGroups,
    testing::Values(Question{"ring:n=12,latency_us=0.5,gpu2-gpu3.gbps=x0.5", "ideal", "ring",
                             kAllreduce, false, 1},
                    Question{"ring:n=12,latency_us=2,gpu2-gpu3.latency_us=x3", "ideal",
                             "ring:directions=2", kAllreduce, true, 1},
                    Question{"switch:n=16,startup_us=1,gpu5-nvswitch0.gbps=x0.3", "ideal", "ring",
                             kAllgather, false, 1},
                    Question{"switch:n=16,gpu5-nvswitch0.gbps=x0.3", "kernel:simple",
                             "ring:directions=2", kReducescatter, true, 1},
                    Question{"dgx-a100:nodes=4,n1.gpu3.speed=x0.5", "kernel:ll", "ring", kAllreduce,
                             false, 1},
                    Question{"dgx-a100:nodes=4,n1.nic0-ibswitch.gbps=x0.5", "copy_engine", "ring",
                             kReducescatter, true, 1},
                    Question{"dgx-h100:nodes=6,n2.nic1-ibswitch.gbps=x0.5", "kernel:simple",
                             "hierarchical:direct=0", kAllreduce, false, 8},
                    Question{"dgx-a100:nodes=3,n1.nic2-ibswitch.gbps=x0.5", "kernel:simple",
                             "direct:at_once=1", Collective::alltoall, true, 1}));

/// Many ops that nobody writes down.
TEST(OfGroupsInStudies, AnswerLikeAllOps) {
  Simulator simulator;
  Query query;
  query.topology = "ring:n=400,gbps=50,latency_us=0.5,gpu0-gpu1.gbps=x0.5";
  query.profile = "ideal";
  query.algorithm = "ring";
  query.size_bytes = 1024 * kMib;
  for (const std::int64_t chunk_bytes : {std::int64_t{0}, 2 * kMib}) {
    query.chunk_bytes = chunk_bytes;
    query.may_fold = true;
    const Outcome found = Study(simulator, &simulator).ask(query);
    query.may_fold = false;
    const Outcome whole = Study(simulator, &simulator).ask(query);
    ASSERT_TRUE(found.ran() && whole.ran());
    EXPECT_EQ(found.program->fold.groups, 400);
    EXPECT_EQ(400 * found.program->ops.size(), whole.program->ops.size());
    EXPECT_EQ(found.chunk_bytes, whole.chunk_bytes);
    EXPECT_EQ(found.chunk_note, whole.chunk_note);
    EXPECT_EQ(found.program_note, whole.program_note);
    EXPECT_EQ(found.report.transfers, whole.report.transfers);
    EXPECT_NEAR(found.report.time_s, whole.report.time_s, 1e-9 * whole.report.time_s);
    EXPECT_NEAR(found.benchmark_s, whole.benchmark_s, 1e-9 * whole.report.time_s);
    EXPECT_EQ(found.fraction, whole.fraction);
  }
}

TEST(OfGroupsInStudies, AreWrittenOutForATimeline) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = "ring:n=400,latency_us=0.5,gpu0-gpu1.gbps=x0.5";
  query.profile = "ideal";
  query.algorithm = "ring";
  query.size_bytes = kMib;
  query.chunk_bytes = 0;
  query.judge = false;
  const Outcome outcome = study.ask(query);
  EXPECT_TRUE(outcome.program->fold.is_folded());
  query.run.timeline = true;
  const Outcome again = study.ask(query);
  EXPECT_FALSE(again.program->fold.is_folded());
  EXPECT_EQ(again.report.timeline.size(), again.program->ops.size());
  EXPECT_EQ(again.report.time_s, outcome.report.time_s);
}

TEST(OfGroupsInStudies, AreNotUsedWhereGroupsDiffer) {
  Simulator simulator;
  const auto of_groups = [&](const std::string& machine, const std::string& profile,
                             const std::string& algorithm) {
    const Machine made = machine_of({machine, profile});
    const auto request = request_for(kAllreduce, 0, false, *made.router, made.placement);
    return program_of_groups(made, parse_algorithm(algorithm), request, simulator).has_value();
  };
  const std::string slow = "ring:n=400,gpu0-gpu1.gbps=x0.5";
  EXPECT_TRUE(of_groups(slow, "ideal", "ring"));
  // FIFOs are emptied by ops, which are asked for one by one.
  EXPECT_FALSE(of_groups(slow, "nccl:simple", "ring"));
  // Few ops.
  EXPECT_FALSE(of_groups("ring:n=40,gpu0-gpu1.gbps=x0.5", "ideal", "ring"));
  // Rank 5 has no way to rank 6.
  EXPECT_FALSE(of_groups("ring:n=400,without=gpu5-gpu6", "ideal", "ring"));
}

}  // namespace
}  // namespace espalier
