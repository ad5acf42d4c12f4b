// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace espalier {
namespace {

using testing::HasSubstr;

Launch launch_of(const std::map<std::string, std::string>& variables) {
  return read_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, EveryLauncherOfMpiIsKnown) {
  EXPECT_EQ(problem_of(launch_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}})),
            std::nullopt);
  EXPECT_EQ(problem_of(launch_of({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}})), std::nullopt);
  EXPECT_EQ(problem_of(launch_of({{"PMIX_RANK", "1"}})), std::nullopt);
  EXPECT_EQ(launch_of({{"PMIX_RANK", "1"}}).rank, 1);
  EXPECT_EQ(launch_of({{"PMI_RANK", "0"}}).rank, 0);
  EXPECT_EQ(launch_of({}).rank, 0);
}

TEST(Launcher, AProcessOnItsOwnIsToldHowToStart) {
  const auto problem = problem_of(launch_of({{"WORLD_SIZE", "8"}}));
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message, HasSubstr("neither a launcher of MPI nor torchrun"));
}

TEST(Launcher, TorchrunSaysWhereProcessesMeet) {
  const std::map<std::string, std::string> variables{{"RANK", "2"},
                                                     {"WORLD_SIZE", "8"},
                                                     {"LOCAL_RANK", "2"},
                                                     {"MASTER_ADDR", "node1"},
                                                     {"MASTER_PORT", "29500"}};
  const Launch launch = launch_of(variables);
  EXPECT_EQ(problem_of(launch), std::nullopt);
  EXPECT_EQ(launch.rank, 2);
  ASSERT_TRUE(launch.place);
  EXPECT_EQ(launch.place->rank, 2);
  EXPECT_EQ(launch.place->processes, 8);
  EXPECT_EQ(launch.place->address, "node1");
  EXPECT_EQ(launch.place->port, 29500);
  // Under mpirun its variables say nothing new.
  std::map<std::string, std::string> both = variables;
  both["PMI_RANK"] = "3";
  EXPECT_EQ(launch_of(both).place, std::nullopt);
  EXPECT_EQ(launch_of(both).rank, 3);
}

TEST(Launcher, VariablesThatDoNotSayWhereAreAProblem) {
  const auto problem = problem_of(launch_of({{"RANK", "2"}, {"WORLD_SIZE", "8"}}));
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message, HasSubstr("MASTER_ADDR"));
  EXPECT_TRUE(problem_of(launch_of(
      {{"RANK", "8"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}})));
  EXPECT_TRUE(problem_of(launch_of(
      {{"RANK", "0"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "70000"}})));
}

TEST(Launcher, TheLauncherOfAnotherMpiIsRecognised) {
  const Launch launch = launch_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(problem_of(launch, 4, "MPICH 4"), std::nullopt);
  const auto problem = problem_of(launch, 1, "Open MPI 4");
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message, HasSubstr("4 processes were started, but MPI knows of one only"));
  EXPECT_THAT(problem->message, HasSubstr("Open MPI 4"));
  EXPECT_EQ(problem_of(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), 1, ""), std::nullopt);
}

TEST(Launcher, NumbersThatAreNoneAreIgnored) {
  EXPECT_EQ(launch_of({{"PMI_SIZE", "many"}}).processes, std::nullopt);
  EXPECT_EQ(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "-1"}}).place, std::nullopt);
}

}  // namespace
}  // namespace espalier
