// SPDX-License-Identifier: Apache-2.0
#include "report/page/channels.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "scenarios/folding.h"
#include "scenarios/study.h"
#include "sim/simulator.h"
#include "topologies/rotation.h"

namespace espalier {
namespace {

class ChannelsTest : public testing::Test {
 protected:
  Outcome simulate(const std::string& topology, const std::string& algorithm,
                   const std::string& profile) {
    Query query;
    query.topology = topology;
    query.algorithm = algorithm;
    query.profile = profile;
    query.size_bytes = 3 << 20;
    query.judge = false;
    query.may_fold = false;
    query.run.timeline = true;
    machine_ = &study_.machine(query);
    return study_.ask(query);
  }

  Target target() const { return {machine_->router.get(), machine_->placement}; }

  Simulator simulator_;
  Study study_{simulator_, &simulator_};
  const Machine* machine_ = nullptr;
};

TEST_F(ChannelsTest, CarryWhatTheSimulationCounted) {
  for (const char* topology : {"ring:n=4", "dgx1-v100", "mist", "kesch:nodes=2"}) {
    const Outcome outcome = simulate(topology, "ring", "kernel:simple");
    ASSERT_TRUE(outcome.ran()) << topology;
    const Target where = target();
    Channels channels(*outcome.program, where);
    load_in_time(*outcome.program, outcome.report, 100, channels);
    std::map<std::string, double> counted;
    for (const LinkUse& use : outcome.report.simulated->links) {
      if (use.is_link) counted[use.name] = use.bytes;
    }
    ASSERT_FALSE(counted.empty());
    std::size_t with_bytes = 0;
    for (const Channel& channel : channels.all()) {
      if (channel.load.empty()) continue;
      ++with_bytes;
      ASSERT_TRUE(counted.contains(channel.name)) << topology << ": " << channel.name;
      EXPECT_EQ(channel.bytes, counted[channel.name]);
      // Load is a share of the capacity: times capacity and the time of a bin it is bytes.
      const double load = std::accumulate(channel.load.begin(), channel.load.end(), 0.0);
      const double bytes = load * channel.capacity_gbps * 1e9 * outcome.report.time_s / 100;
      EXPECT_NEAR(bytes / channel.bytes, 1, 1e-6) << topology << ": " << channel.name;
      EXPECT_GT(channel.ops, 0);
    }
    EXPECT_EQ(with_bytes, counted.size()) << topology;
  }
}

/// Rounds that were counted in lie between those that were simulated.
TEST_F(ChannelsTest, CarryWhatWasCountedIn) {
  Query query;
  query.topology = "p2.8xlarge";
  query.algorithm = "nccl";
  query.collective = Collective::broadcast;
  query.size_bytes = std::int64_t{1} << 30;
  query.judge = false;
  query.run.timeline = true;
  machine_ = &study_.machine(query);
  const Outcome few = study_.ask(query);
  ASSERT_TRUE(few.ran());
  ASSERT_NE(few.report.repeated(), nullptr);
  query.all_rounds = true;
  const Outcome all = study_.ask(query);
  ASSERT_EQ(all.report.repeated(), nullptr);
  const Target where = target();
  Channels of_few(*few.program, where);
  Channels of_all(*all.program, where);
  load_in_time(*few.program, few.report, 100, of_few);
  load_in_time(*all.program, all.report, 100, of_all);
  ASSERT_EQ(of_few.all().size(), of_all.all().size());
  for (std::size_t i = 0; i < of_all.all().size(); ++i) {
    const Channel& one = of_few.all()[i];
    const Channel& same = of_all.all()[i];
    EXPECT_EQ(one.name, same.name);
    EXPECT_EQ(one.ops, same.ops) << one.name;
    EXPECT_NEAR(one.bytes, same.bytes, 1e-9 * same.bytes) << one.name;
    ASSERT_EQ(one.load.size(), same.load.size()) << one.name;
    // Of hundreds of rounds, one more or less lies in a bin.
    for (std::size_t bin = 0; bin < one.load.size(); ++bin) {
      EXPECT_NEAR(one.load[bin], same.load[bin], 0.1) << one.name << " " << bin;
    }
  }
}

TEST_F(ChannelsTest, OfFoldedProgramsStandForAllAlike) {
  Query query;
  query.topology = "dgx-h100:nodes=32";
  query.algorithm = "ring";
  query.size_bytes = 64 << 20;
  query.judge = false;
  query.run.timeline = true;
  machine_ = &study_.machine(query);
  const Outcome outcome = study_.ask(query);
  ASSERT_TRUE(outcome.ran());
  ASSERT_TRUE(outcome.program->fold.is_folded());
  const auto rotation =
      find_rotation(*machine_->topology, machine_->placement, outcome.program->fold);
  ASSERT_TRUE(rotation);
  const Target where{machine_->router.get(), machine_->placement, &*rotation};
  Channels channels(*outcome.program, where);
  load_in_time(*outcome.program, outcome.report, 100, channels);
  std::map<std::string, const LinkUse*> counted;
  for (const LinkUse& use : outcome.report.simulated->links) counted[use.name] = &use;
  std::size_t alike = 0;
  for (const Channel& channel : channels.all()) {
    if (channel.load.empty()) continue;
    ASSERT_TRUE(counted.contains(channel.name)) << channel.name;
    EXPECT_EQ(channel.bytes, counted[channel.name]->bytes);
    alike += static_cast<std::size_t>(counted[channel.name]->alike);
  }
  EXPECT_GT(alike, 32U * 8);  // every GPU sends and receives
}

TEST_F(ChannelsTest, LoadIsWhereOpsAre) {
  // Two steps of a reduce-scatter and two of an allgather: an op at a time on each of three links,
  // under the ideal profile without a gap.
  const Outcome outcome = simulate("ring:n=3", "ring", "ideal");
  const Target where = target();
  Channels channels(*outcome.program, where);
  load_in_time(*outcome.program, outcome.report, 10, channels);
  for (const Channel& channel : channels.all()) {
    for (const double load : channel.load) EXPECT_NEAR(load, 1, 1e-6) << channel.name;
  }
}

}  // namespace
}  // namespace espalier
