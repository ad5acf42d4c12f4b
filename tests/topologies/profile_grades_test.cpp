// SPDX-License-Identifier: Apache-2.0
#include "topologies/profile_grades.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/file.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"
#include "topologies/load.h"

namespace espalier {
namespace {

std::map<std::string, GradedFigure> figures_of(const Profile& profile, const Topology& machine) {
  std::map<std::string, GradedFigure> figures;
  for (const GradedFigure& one : graded_figures(profile, machine)) figures[one.name] = one;
  return figures;
}

TEST(ProfileGrades, EveryFigureOfEveryMachineHasAGradeAndItsOrigin) {
  std::set<std::string> grades;
  for (const CatalogueEntry& entry : catalogue()) {
    const Topology machine = load_topology(entry.name);
    for (const auto& [name, profile] : machine.profiles) {
      for (const auto& [of, figure] : figures_of(profile, machine)) {
        EXPECT_NE(figure.grade, "") << entry.name << ", profile " << name << ": " << of;
        EXPECT_NE(figure.from, "") << entry.name << ", profile " << name << ": " << of;
        EXPECT_GT(figure.value, 0) << of;
        grades.insert(figure.grade);
      }
    }
  }
  EXPECT_TRUE(grades.contains("source") && grades.contains("fitted") &&
              grades.contains("estimate"));
}

TEST(ProfileGrades, AreThoseBesideTheFigures) {
  const Topology machine = load_topology("dgx-a100");
  const auto figures = figures_of(machine.profiles.at("kernel"), machine);
  EXPECT_DOUBLE_EQ(figures.at("call_overhead_us").value, 5.5);
  EXPECT_EQ(figures.at("call_overhead_us").unit, "us");
  EXPECT_EQ(figures.at("call_overhead_us").grade, "fitted");
  EXPECT_EQ(figures.at("staging_overhead_us").grade, "estimate");
  EXPECT_EQ(figures.at("protocols.ll.hop_us.host").grade, "source");
  EXPECT_DOUBLE_EQ(figures.at("protocols.ll.gpu_gbps.other").value, 82);
  EXPECT_FALSE(figures.contains("protocols.ll.gpu_gbps.h100"));  // no such GPU is here
  EXPECT_FALSE(figures.contains("in_switch.other.wire"));        // and no such switch
}

TEST(ProfileGrades, InheritedFiguresKeepTheirs) {
  const Topology machine = load_topology("dgx-h100");
  const auto figures = figures_of(machine.profiles.at("nccl"), machine);
  EXPECT_EQ(figures.at("protocols.ll.hop_us.gpu_fabric").from, "NCCL src/graph/tuning.cc");
  EXPECT_EQ(figures.at("protocols.simple.hop_us.gpu_fabric").grade, "fitted");
  EXPECT_EQ(figures.at("in_switch.h100.call_us").grade, "source");
  EXPECT_EQ(figures.at("in_switch.h100.wire").grade, "fitted");
  EXPECT_DOUBLE_EQ(figures.at("launch.sharpness").value, 4);
  EXPECT_EQ(figures.at("launch.sharpness").grade, "fitted");
  EXPECT_EQ(figures_of(machine.profiles.at("kernel"), machine).at("launch.sharpness").grade,
            "estimate");
  // Under a protocol it is the same profile, and a call costs no more of itself.
  const auto under = figures_of(machine.profile("nccl:ll"), machine);
  EXPECT_DOUBLE_EQ(under.at("call_overhead_us").value, 5.5);
  EXPECT_EQ(under.at("call_overhead_us").grade, "fitted");
  EXPECT_DOUBLE_EQ(under.at("protocols.ll.call_us").value, 6.6);
}

TEST(ProfileGrades, WhatAFileChangesIsItsOwn) {
  const Topology machine = load_topology("dgx-a100");
  Profile profile = machine.profiles.at("nccl");
  profile.like = "nccl";
  profile.name = "./mine.yaml";
  profile.call_overhead_s = 7e-6;
  const auto figures = figures_of(profile, machine);
  EXPECT_EQ(figures.at("call_overhead_us").grade, "its file");
  EXPECT_EQ(figures.at("call_overhead_us").from, "./mine.yaml");
  EXPECT_EQ(figures.at("fifo_steps").grade, "source");
  // So is what the file of a machine changes of a built-in profile.
  const Topology aws = load_topology("p3dn.24xlarge");
  const auto changed = figures_of(aws.profiles.at("nccl"), aws);
  EXPECT_EQ(changed.at("protocols.ll.hop_us.network").from, "p3dn.24xlarge");
}

TEST(ProfileGrades, AFileMaySayHowWellItsFiguresAreKnown) {
  const Topology machine = load_topology("dgx-a100");
  const std::string file = temp_file("graded.yaml");
  write_file(file, R"(
schema: espalier.profiles/1
sources: [made up]
profiles:
  fitted:
    like: nccl
    call_overhead_us: 7
    message_us: 3
    links: {nvlink3: {efficiency: 0.5}, pcie4x16: {efficiency: 0.5}}
grades:
  fitted:
    - {of: [call_overhead_us, links.nvlink3.efficiency], grade: fitted, from: "5 times, a.log"}
)");
  const Profile profile = machine.profile(file);
  const auto figures = figures_of(profile, machine);
  EXPECT_EQ(figures.at("call_overhead_us").grade, "fitted");
  EXPECT_EQ(figures.at("call_overhead_us").from, "5 times, a.log");
  EXPECT_EQ(figures.at("message_us").grade, "its file");
  EXPECT_EQ(figures.at("fifo_steps").grade, "source");
  const auto fitted = graded_link(profile, machine, "nvlink3");
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->grade, "fitted");
  EXPECT_DOUBLE_EQ(fitted->value, 0.5);
  EXPECT_EQ(graded_link(profile, machine, "pcie4x16")->grade, "its file");
  EXPECT_FALSE(graded_link(profile, machine, "ib_hdr"));
  EXPECT_FALSE(graded_link(machine.profiles.at("nccl"), machine, "nvlink3"));
}

TEST(ProfileGrades, WrongGradesOfAFileAreRefused) {
  const std::string file = temp_file("graded.yaml");
  write_file(file, R"(
schema: espalier.profiles/1
sources: [made up]
profiles: {fitted: {like: nccl}}
grades: {fitted: [{of: blocks, grade: guessed, from: x}]}
)");
  EXPECT_NE(error_of([&] { load_topology("dgx-a100").profile(file); }, ErrorKind::input)
                .find("a grade is source, fitted or estimate"),
            std::string::npos);
}

}  // namespace
}  // namespace espalier
