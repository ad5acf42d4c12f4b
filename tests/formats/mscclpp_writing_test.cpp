// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the catalogue as an execution plan of MSCCL++ and back: the same data
// movement, in the same simulated time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "formats/format.h"
#include "ir/chunk.h"
#include "ir/instances.h"
#include "run/blocks.h"
#include "run/routes.h"
#include "sim/simulator.h"
#include "tests/error_of.h"
#include "tests/formats/mscclpp_format.h"
#include "tests/formats/mscclpp_rules.h"
#include "tests/formats/notes_of.h"
#include "tests/sample.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

/// What was tried, and why what could not be written could not.
struct Tally {
  int written = 0;
  std::map<std::string, int> refused;
};

class MscclppWriting : public testing::TestWithParam<std::string> {
 protected:
  MscclppWriting() : topology_(load_topology(GetParam())) {}

  double time_s(const Program& program, const Target& target) {
    RunOptions options;
    options.size_bytes = 1'000'003;
    options.engine = SimEngine::classes;
    return simulator_.run(program, target, options).time_s;
  }

  void round_trip(const Program& program, const WritingOptions& options, Tally& tally) {
    Written written;
    try {
      written = mscclpp_format().write_program(program, options);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
      ASSERT_FALSE(error.diagnostics().empty());
      ++tally.refused[program.name + " " + error.diagnostics()[0].message];
      return;
    }
    ++tally.written;
    EXPECT_EQ(broken_mscclpp_rules(written.text), "");
    const ForeignProgram back = mscclpp_format().read_program({written.text, "plan.json"});
    ASSERT_TRUE(back.has_program);
    for (const std::string& note : notes_of(back)) {
      EXPECT_THAT(note, testing::Not(testing::HasSubstr("must stand between")));
      EXPECT_THAT(note, testing::Not(testing::HasSubstr("never awaited")));
      EXPECT_THAT(note, testing::Not(testing::HasSubstr("relaxed")));
    }
    const bool is_staged = std::ranges::any_of(written.notes, [](const std::string& note) {
      return note.find("come to scratch first") != std::string::npos;
    });
    ForeignProgram again;
    if (is_staged) {
      const Written second = mscclpp_format().write_program(back.program, options);
      EXPECT_THAT(second.notes,
                  testing::Not(testing::Contains(testing::HasSubstr("come to scratch"))));
      again = mscclpp_format().read_program({second.text, "plan.json"});
    }
    for (const char* profile : {"kernel", "ideal"}) {
      const Router router(topology_, topology_.profile(profile));
      const Target target{&router, place_ranks(router, {})};
      if (!check_routes(program, target).empty()) continue;
      // Where operands came to scratch first, what was read is what is written without that.
      const double before_s = time_s(is_staged ? again.program : program, target);
      EXPECT_NEAR(time_s(back.program, target), before_s, 1e-9 * before_s) << profile;
    }
  }

  Topology topology_;
  Simulator simulator_;
};

TEST_P(MscclppWriting, KeepsEveryAlgorithmAndItsTime) {
  const Router router(topology_, topology_.profile("kernel"));
  const Placement placement = place_ranks(router, {});
  // Also as if each half of the ranks were a computer: through port channels.
  WritingOptions two_hosts;
  for (int rank = 0; rank < static_cast<int>(placement.ranks.size()); ++rank) {
    two_hosts.host_of_rank.push_back(2 * rank / static_cast<int>(placement.ranks.size()));
  }
  Tally tally;
  Tally across;
  // Plans of trees for larger machines take most of the time.
  const std::size_t most = all_cases_wanted() ? 8 : 4;
  const bool plans = placement.ranks.size() <= most || !GetParam().starts_with("full");
  for (const Algorithm* algorithm : all_algorithms()) {
    if (algorithm->needs_machine && !plans) continue;
    for (const Collective collective : algorithm->collectives) {
      for (const bool in_place : {false, true}) {
        const AlgorithmChoice choice = parse_algorithm(algorithm->name);
        const BuildRequest request = request_for(collective, 0, in_place, router, placement);
        if (unsupported(choice, request)) continue;
        const Program program = build(choice, request);
        SCOPED_TRACE(fmt::format("{} {}{}", algorithm->name, to_string(collective),
                                 in_place ? " in place" : ""));
        round_trip(program, {}, tally);
        round_trip(program, two_hosts, across);
      }
    }
  }
  EXPECT_GT(tally.written, 50);
  EXPECT_GT(across.written, 10);
  // What can't be written is too large for the executor, or has places or ops that it has not.
  for (const auto& [why, count] : tally.refused) {
    EXPECT_THAT(why, testing::AnyOf(testing::HasSubstr("takes at most"),
                                    testing::HasSubstr("host memor"), testing::HasSubstr("relay"),
                                    testing::HasSubstr("ways over the machine"),
                                    testing::HasSubstr("no switch channel")));
  }
  for (const auto& [why, count] : across.refused) {
    if (tally.refused.contains(why)) continue;
    EXPECT_THAT(why, testing::AnyOf(testing::HasSubstr("another host"),
                                    testing::HasSubstr("takes at most")));
  }
}

/// Thread blocks wait for each other: a GPU that runs fewer at once hangs.
TEST(CrowdedMscclppWriting, NeedsAllThreadBlocksAtOnce) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("kernel"));
  const Placement placement = place_ranks(router, {});
  const BuildRequest request = request_for(Collective::allreduce, 0, false, router, placement);
  const Program program = instances(build(parse_algorithm("ring"), request), 8);
  WritingOptions options;
  options.multiprocessors = 108;
  EXPECT_NO_THROW(mscclpp_format().write_program(program, options));
  options.multiprocessors = 7;
  EXPECT_THAT(
      error_of([&] { mscclpp_format().write_program(program, options); }, ErrorKind::unsupported),
      testing::HasSubstr("16 thread blocks of a GPU wait for each other, and it runs 7 at once"));
}

/// One rank: a reduction is an allreduce.
TEST(CrowdedMscclppWriting, OfOneRankIsWritten) {
  const Topology topology = load_topology("full:n=1");
  const Router router(topology, topology.profile("kernel"));
  const Placement placement = place_ranks(router, {});
  for (const bool in_place : {false, true}) {
    const BuildRequest request = request_for(Collective::reduce, 0, in_place, router, placement);
    const Program program = build(parse_algorithm("chain"), request);
    EXPECT_NO_THROW(mscclpp_format().write_program(program, {}));
  }
}

/// More lanes than the 32 blocks that a GPU has under profile `kernel`: they share some.
TEST(CrowdedMscclppWriting, KeepsTheTime) {
  Simulator simulator;
  int crowded = 0;
  for (const char* machine : {"dgx1-v100", "mi300x"}) {
    const Topology topology = load_topology(machine);
    const Router router(topology, topology.profile("kernel"));
    const Target target{&router, place_ranks(router, {})};
    for (const Collective collective :
         {Collective::allreduce, Collective::allgather, Collective::reducescatter}) {
      for (const int count : {2, 8}) {
        SCOPED_TRACE(fmt::format("{} {} x{}", machine, to_string(collective), count));
        const AlgorithmChoice choice = parse_algorithm("optimal:fabric=1,plan=1");
        const BuildRequest request = request_for(collective, 0, false, router, target.placement);
        const Program program = instances(build(choice, request), count);
        if (std::ranges::max(moving_lanes(program)) <= router.profile().blocks) continue;
        const Written written = mscclpp_format().write_program(program, {});
        if (written.is_reshaped) continue;
        ++crowded;
        const ForeignProgram back = mscclpp_format().read_program({written.text, "plan.json"});
        RunOptions options;
        options.size_bytes = 1 << 24;
        const double before_s = simulator.run(program, target, options).time_s;
        EXPECT_NEAR(simulator.run(back.program, target, options).time_s, before_s, 1e-9 * before_s);
        const auto cut_s = [&](const Program& whole) {
          const Chunking chunking =
              plan_chunking(whole, 1 << 24, 1 << 18, 4'000'000, /*stagger=*/true);
          return simulator.run(chunk(whole, chunking), target, options).time_s;
        };
        const double before_cut_s = cut_s(program);
        EXPECT_NEAR(cut_s(back.program), before_cut_s, 1e-9 * before_cut_s);
      }
    }
  }
  EXPECT_GE(crowded, 6);
}

std::vector<std::string> machines() {
  std::vector<std::string> all = {"full:n=2", "full:n=3", "full:n=4", "full:n=8",
                                  "switch:n=4,gbps=50,nvswitch0.combines=1"};
  if (all_cases_wanted()) {
    for (int n = 5; n <= 16; ++n) {
      if (n != 8) all.push_back(fmt::format("full:n={}", n));
    }
    all.insert(all.end(), {"dgx1-v100", "dgx-a100:nodes=2", "dgx-h100"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Machines, MscclppWriting, testing::ValuesIn(machines()),
                         [](const auto& param) {
                           std::string name;
                           for (const char letter : param.param) {
                             name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter
                                                                                           : '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace espalier
