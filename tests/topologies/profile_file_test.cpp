// SPDX-License-Identifier: Apache-2.0
// Profiles in files of their own, and how they are named.
#include "topologies/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFitted = R"(
schema: espalier.profiles/1
sources: ["a log"]
profiles:
  mine:
    like: nccl
    call_overhead_us: 21.5
    links: {nvlink3: {efficiency: 0.75}}
    protocols: {ll: {hop_us: {gpu_fabric: 0.8}, block_gbps: {a100: 6.5}}}
)";

TEST(ProfileFile, ChangesWhatItSaysOfTheProfileThatItIsLike) {
  const Topology machine = load_topology("dgx-a100");
  const Profile read = parse_profile(kFitted, "./mine.yaml", machine);
  EXPECT_EQ(read.name, "./mine.yaml");
  EXPECT_DOUBLE_EQ(read.call_overhead_s, 21.5e-6);
  EXPECT_DOUBLE_EQ(read.links.at("nvlink3").efficiency, 0.75);
  const Profile& nccl = machine.profiles.at("nccl");
  EXPECT_EQ(read.links.at("nvlink2").efficiency, nccl.links.at("nvlink2").efficiency);
  EXPECT_EQ(read.fifo_steps, nccl.fifo_steps);
  const Protocol ll = read.under("ll").protocol;
  EXPECT_DOUBLE_EQ(ll.hop_s.at(LinkClass::gpu_fabric), 0.8e-6);
  EXPECT_EQ(ll.hop_s.at(LinkClass::host), nccl.under("ll").protocol.hop_s.at(LinkClass::host));
  EXPECT_DOUBLE_EQ(figure_of(ll.block_gbps, "a100-sxm4"), 6.5);
  EXPECT_EQ(figure_of(ll.block_gbps, "v100-sxm2"), 7.2);
}

TEST(ProfileFile, IsTakenWhereAProfileIsNamed) {
  const std::string path = temp_file("mine.yaml");
  write_file(path, kFitted);
  const Topology machine = load_topology("dgx-a100");
  EXPECT_DOUBLE_EQ(machine.profile(path).call_overhead_s, (21.5 + 8.4) * 1e-6);  // of simple
  EXPECT_EQ(machine.profile(path).name, path);
  EXPECT_EQ(machine.profile(path + ":ll").name, path + ":ll");
  EXPECT_DOUBLE_EQ(machine.profile(path + ":LL").call_overhead_s, (21.5 + 6.6) * 1e-6);
  EXPECT_THAT(machine.open_profiles(path),
              ElementsAre(path + ":simple", path + ":ll", path + ":ll128"));
  EXPECT_THAT(machine.open_profiles(path + ":ll"), ElementsAre(path + ":ll"));
  EXPECT_THAT(error_of([&] { machine.profile(path + ":lll"); }, ErrorKind::usage),
              HasSubstr("has no protocol 'lll'\n  help: did you mean 'll'?"));
  EXPECT_THAT(error_of([&] { machine.profile("./missing.yaml"); }, ErrorKind::input),
              HasSubstr("./missing.yaml"));
}

TEST(ProfileFile, MayBeLikeAProfileOfTheMachineAndNameItsLinks) {
  const Topology machine = parse_topology(R"(
schema: espalier.topology/1
name: two
link_kinds: {wire: {class: gpu_fabric}}
profiles: {own: {like: kernel, call_overhead_us: 3}}
nodes: [{name: "gpu[0-1]", kind: gpu}]
links: [{a: gpu0, b: gpu1, kind: wire, gbps: 10}]
)",
                                          "two.yaml");
  const Profile read = parse_profile(
      "{schema: espalier.profiles/1, profiles: {x: {like: own, links: {wire: {efficiency: 0.5}}}}}",
      "x.yaml", machine);
  EXPECT_DOUBLE_EQ(read.call_overhead_s, 3e-6);
  EXPECT_DOUBLE_EQ(read.links.at("wire").efficiency, 0.5);
}

TEST(ProfileFile, IsKnownByItsName) {
  for (const char* name : {"./fitted.yaml", "fitted.yaml", "a/b", "fitted.yml:ll", "C:/x.yaml",
                           "a:b/c.yaml:ll128", "./x"}) {
    EXPECT_TRUE(names_profile_file(name)) << name;
  }
  for (const char* name : {"nccl", "nccl:ll", "", "yaml", "kernel:auto"}) {
    EXPECT_FALSE(names_profile_file(name)) << name;
  }
  EXPECT_EQ(profile_word("a:b/c.yaml").runtime, "a:b/c.yaml");
  EXPECT_EQ(profile_word("a:b/c.yaml").protocol, "");
  EXPECT_EQ(profile_word("a:b/c.yaml:LL").runtime, "a:b/c.yaml");
  EXPECT_EQ(profile_word("a:b/c.yaml:LL").protocol, "ll");
  EXPECT_EQ(profile_word("./x:ll").runtime, "./x");
}

}  // namespace
}  // namespace espalier
