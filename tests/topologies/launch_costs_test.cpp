// SPDX-License-Identifier: Apache-2.0
#include "topologies/launch_costs.h"

#include <gtest/gtest.h>

#include "tests/error_of.h"
#include "topologies/library_version.h"
#include "topologies/load.h"

namespace espalier {
namespace {

TEST(LibraryVersion, IsReadFromWhatLogsAndFilesSay) {
  EXPECT_EQ(library_version("2.18"), 201800);
  EXPECT_EQ(library_version("2.18.3"), 201803);
  EXPECT_EQ(library_version("2.4.8"), 200408);
  EXPECT_EQ(library_version("2.27.7+cuda13.0"), 202707);
  EXPECT_EQ(library_version("2.27-rc1"), 202700);
  for (const char* word :
       {"", "2", "2.", "two", "2.x", "-2.18", "2.18x", "0.3", "2.1000", "99999.1"}) {
    EXPECT_EQ(library_version(word), std::nullopt) << word;
  }
  EXPECT_EQ(version_text(201800), "2.18");
  EXPECT_EQ(version_text(201803), "2.18.3");
  EXPECT_EQ(minor_of(201803), 18);
  EXPECT_EQ(patch_of(201803), 3);
  EXPECT_EQ(library_version(2, 18, 3), 201803);
}

TEST(LaunchCosts, AreThoseOfTheVersionAndOfTheNewestWithoutOne) {
  const LaunchCosts& costs = built_in_profiles().profiles.at("nccl").launch;
  // Section by section of the table in profiles.yaml; 2.17 is between two of its rows.
  EXPECT_DOUBLE_EQ(costs.single_of(200507).call_s, 4.9e-6);
  EXPECT_DOUBLE_EQ(costs.single_of(201003).block_s, 0.22e-6);
  EXPECT_DOUBLE_EQ(costs.single_of(201701).block_s, 0.22e-6);
  EXPECT_DOUBLE_EQ(costs.single_of(201800).block_s, 0.06e-6);
  EXPECT_DOUBLE_EQ(costs.single_of(100000).call_s, 4.9e-6);  // older than all
  EXPECT_EQ(costs.single_of(0), costs.single_of(203000));
}

TEST(LaunchCosts, ArePlainOnesForKernelsAndNoneForTheory) {
  const auto& profiles = built_in_profiles().profiles;
  EXPECT_EQ(profiles.at("kernel").launch.single_of(0).block_s, 0);
  for (const char* name : {"ideal", "copy_engine", "cuda_graph", "host"}) {
    EXPECT_TRUE(profiles.at(name).launch.empty()) << name;
  }
}

/// Two GPUs and what the file says of profiles.
std::string machine_with(const std::string& profiles) {
  return "schema: espalier.topology/1\nname: two\nnodes:\n"
         "  - {name: \"gpu[0-1]\", kind: gpu, model: a100-sxm4}\n"
         "links:\n  - {a: gpu0, b: gpu1, kind: nvlink3, gbps: 25}\nprofiles:\n" +
         profiles;
}

TEST(LaunchCosts, OfAFileReplaceThoseOfTheBase) {
  const Topology machine =
      parse_topology(machine_with("  mine: {like: nccl, launch: {per_gpu: {call_us: 7}}}\n"), "f");
  const LaunchCosts& costs = machine.profiles.at("mine").launch;
  EXPECT_DOUBLE_EQ(costs.per_gpu->call_s, 7e-6);
  EXPECT_EQ(costs.per_gpu->block_s, 0);
  EXPECT_TRUE(costs.single.empty());
  EXPECT_EQ(costs.graph_saves_s, 0);
  EXPECT_EQ(costs.sharpness, 4);  // but for what hardly any file knows
}

TEST(LaunchCosts, SharpnessIsReadAndWritten) {
  const Topology machine = parse_topology(
      machine_with("  mine: {like: nccl, launch: {single: {call_us: 7}, sharpness: 2.5}}\n"
                   "  bare: {launch: {single: {call_us: 7}}}\n"),
      "f");
  EXPECT_EQ(machine.profiles.at("mine").launch.sharpness, 2.5);
  const Topology again = parse_topology(print_topology(machine), "again");
  for (const char* name : {"mine", "bare"}) {
    EXPECT_EQ(again.profiles.at(name).launch, machine.profiles.at(name).launch) << name;
  }
}

TEST(LaunchCosts, SharpnessOfABaseIsTakenAway) {
  const Topology machine = parse_topology(
      machine_with("  mine: {like: nccl, launch: {single: {call_us: 7}, sharpness: none}}\n"), "f");
  EXPECT_TRUE(std::isinf(machine.profiles.at("mine").launch.sharpness));
  const Topology again = parse_topology(print_topology(machine), "again");
  EXPECT_EQ(again.profiles.at("mine").launch, machine.profiles.at("mine").launch);
}

TEST(LaunchCosts, OfGraphsAreReadAndWritten) {
  const Topology machine =
      parse_topology(machine_with("  mine: {like: nccl, launch: {graph: {saves_us: 2.5}}}\n"), "f");
  EXPECT_DOUBLE_EQ(machine.profiles.at("mine").launch.graph_saves_s, 2.5e-6);
  const Topology again = parse_topology(print_topology(machine), "again");
  EXPECT_EQ(again.profiles.at("mine").launch, machine.profiles.at("mine").launch);
}

TEST(LaunchCosts, AllThatIsWrongWithThemIsSaid) {
  const std::string text = error_of(
      [&] {
        parse_topology(
            machine_with("  mine:\n    launch:\n      per_gpu: {call_us: -1}\n      single:\n"
                         "        - {since: two, call_us: 1}\n"
                         "        - {since: \"2.18\", call_us: 1}\n"
                         "        - {since: \"2.8\", call_us: 1}\n"
                         "      sharpness: 0.5\n"
                         "      graph: {saves_us: -3, call_us: 1}\n"),
            "f");
      },
      ErrorKind::input);
  EXPECT_NE(text.find("'call_us'"), std::string::npos) << text;
  EXPECT_NE(text.find("'two' is no version of a library"), std::string::npos) << text;
  EXPECT_NE(text.find("must come in order of versions"), std::string::npos) << text;
  EXPECT_NE(text.find("'sharpness'"), std::string::npos) << text;
  EXPECT_NE(text.find("'saves_us'"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown key 'call_us'"), std::string::npos) << text;
}

/// Ops in switches are made with the protocol for bulk data, and with those that say so: then in
/// their own slices, each of which costs a hop.
TEST(Protocols, MayMakeOpsInSwitches) {
  const Topology machine = parse_topology(
      machine_with("  mine: {like: kernel, protocols: {ll: {in_switch: true, slice_kib: 4}}}\n"),
      "f");
  const Profile& mine = machine.profiles.at("mine");
  const SwitchOps packets = mine.under("ll").in_switch.at("h100");
  EXPECT_DOUBLE_EQ(packets.slice_s, 0.6e-6);
  EXPECT_DOUBLE_EQ(packets.fixed_s(9 * 1024), 3 * 0.6e-6);
  EXPECT_DOUBLE_EQ(packets.wire, mine.in_switch.at("h100").wire);
  EXPECT_TRUE(mine.under("ll128").in_switch.empty());
  EXPECT_EQ(mine.under("simple").in_switch, mine.in_switch);
  EXPECT_TRUE(machine.profiles.at("kernel").under("ll").in_switch.empty());
  const Topology again = parse_topology(print_topology(machine), "again");
  EXPECT_EQ(again.profiles.at("mine").under("ll").in_switch, mine.under("ll").in_switch);
}

}  // namespace
}  // namespace espalier
