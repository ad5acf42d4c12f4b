// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/launcher.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "exec/host/numa.h"
#include "tests/temp_file.h"

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
  EXPECT_EQ(problem_of(launch_of({{"PALS_RANKID", "1"}})), std::nullopt);
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
}

TEST(Launcher, OfSeveralLaunchersTheInnerOneCounts) {
  const std::map<std::string, std::string> torch{
      {"RANK", "2"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const auto with = [&](const std::map<std::string, std::string>& more) {
    std::map<std::string, std::string> all = torch;
    all.insert(more.begin(), more.end());
    return launch_of(all);
  };
  // Variables of a shell that mpirun was started in.
  const Launch by_mpi = with({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(by_mpi.place, std::nullopt);
  EXPECT_EQ(by_mpi.rank, 3);
  EXPECT_TRUE(by_mpi.by_mpi);
  EXPECT_TRUE(with({{"PMIX_RANK", "3"}}).by_mpi);
  // A launcher of MPI has started torchrun on each node, or a script that does the same.
  for (const Launch& launch :
       {with({{"PMIX_RANK", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"TORCHELASTIC_RUN_ID", "none"}}),
        with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}})}) {
    EXPECT_FALSE(launch.by_mpi);
    ASSERT_TRUE(launch.place);
    EXPECT_EQ(launch.place->processes, 8);
    EXPECT_EQ(launch.rank, 2);
    EXPECT_EQ(problem_of(launch), std::nullopt);
  }
}

TEST(Launcher, TheNumberOnTheHostIsWhatTheLauncherSays) {
  EXPECT_EQ(launch_of({{"PMIX_RANK", "5"}}).local_rank, std::nullopt);
  EXPECT_EQ(launch_of({{"PMIX_RANK", "5"}, {"SLURM_LOCALID", "1"}}).local_rank, 1);
  EXPECT_EQ(launch_of({{"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "2"}}).local_rank, 2);
  EXPECT_EQ(launch_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}).local_rank, 1);
  EXPECT_EQ(launch_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "-1"}}).local_rank,
            std::nullopt);
  // Under mpirun that srun has started, each process has the number of the launcher.
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_RANK", "5"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                       {"PMIX_RANK", "5"},
                       {"SLURM_LOCALID", "0"},
                       {"LOCAL_RANK", "0"}})
                .local_rank,
            1);
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
  // How many there are, srun says in a variable of its own, and others do not.
  const Launch by_slurm = launch_of({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_THAT(problem_of(by_slurm, 1, "Open MPI 4").value().message,
              HasSubstr("4 processes were started, but MPI knows of one only"));
  EXPECT_THAT(problem_of(launch_of({{"PALS_RANKID", "1"}}), 1, "Open MPI 4").value().message,
              HasSubstr("this process was started as rank 1, but MPI knows of one only"));
  EXPECT_EQ(problem_of(launch_of({{"PMIX_RANK", "0"}}), 1, "Open MPI 4"), std::nullopt);
}

/// What Linux says of the processors that this process may use. `package`: of each, by its place
/// among them; `others`: the processors of its package.
std::string system_folder(const std::function<int(std::size_t)>& package,
                          const std::function<std::string(int)>& others) {
  const std::string folder = temp_file("system");
  const std::vector<int> processors = allowed_processors();
  for (std::size_t i = 0; i < processors.size(); ++i) {
    const std::string of_one = fmt::format("{}/cpu/cpu{}/topology", folder, processors[i]);
    std::filesystem::create_directories(of_one);
    std::ofstream(of_one + "/physical_package_id") << package(i);
    std::ofstream(of_one + "/package_cpus_list") << others(processors[i]);
  }
  std::filesystem::create_directories(folder + "/node/node4");
  std::ofstream(folder + "/node/node4/cpulist") << "0-8191";
  return folder;
}

TEST(Launcher, SocketsAreThoseOfTheProcessorsThatMayBeUsed) {
  const std::size_t last = allowed_processors().size() - 1;
  const Sockets sockets = allowed_sockets(system_folder(
      [&](std::size_t i) { return i == last ? 3 : 1; }, [](int) { return std::string("0-63"); }));
  EXPECT_EQ(sockets.numbers, last > 0 ? std::vector<int>({1, 3}) : std::vector<int>({3}));
  EXPECT_FALSE(sockets.are_numa_nodes);
  EXPECT_EQ(allowed_sockets(temp_file("nothing")).numbers, std::vector<int>());
}

TEST(Launcher, ProcessorsThatAreEachAPackageAreOnTheirNumaNodes) {
  const Sockets sockets =
      allowed_sockets(system_folder([](std::size_t i) { return static_cast<int>(i); },
                                    [](int processor) { return fmt::format("{}", processor); }));
  EXPECT_EQ(sockets.numbers, std::vector<int>({4}));
  EXPECT_TRUE(sockets.are_numa_nodes);
  EXPECT_EQ(sockets.only(), 4);
  EXPECT_EQ(sockets.text(), "NUMA node 4");
}

TEST(Launcher, SocketsHaveNames) {
  EXPECT_EQ(Sockets{}.text(), "");
  EXPECT_EQ((Sockets{{3}, false}.text()), "socket 3");
  EXPECT_EQ((Sockets{{1, 3}, false}.text()), "sockets 1, 3");
  EXPECT_EQ((Sockets{{0, 1}, true}.text()), "NUMA nodes 0, 1");
  EXPECT_EQ((Sockets{{0, 1}, true}.only()), -1);
}

TEST(Launcher, NumbersThatAreNoneAreIgnored) {
  EXPECT_EQ(launch_of({{"PMI_SIZE", "many"}}).processes, std::nullopt);
  EXPECT_EQ(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "-1"}}).place, std::nullopt);
}

}  // namespace
}  // namespace espalier
