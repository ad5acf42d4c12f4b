// SPDX-License-Identifier: Apache-2.0
#include "exec/room.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "exec/caches.h"
#include "exec/free_memory.h"
#include "exec/host/host_memory.h"
#include "tests/exec/test_programs.h"
#include "tests/limited_memory.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

TEST(Room, NamesTheTightestMemoryItsPartsAndWhatFits) {
  // GPU 0 lacks a little; GPU 1 has room for (2200 - 100) / 4200 of the message: half of it.
  MemoryNeed first{.owner = "GPU 0", .available = 4096};
  first.add("inputs", 4200, true);
  MemoryNeed second{.owner = "GPU 1", .available = 2200};
  second.add("inputs", 2100, true);
  second.add("tables", 60, false);
  second.add("inputs", 2100, true);
  second.add("tables", 40, false);
  second.add("results", 0, true);
  const std::vector<MemoryNeed> needs{first, second};
  const auto shortage = find_shortage(needs, 1 << 20);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->kind(), ErrorKind::unsupported);
  EXPECT_STREQ(shortage->what(),
               "error: a message of 1MiB needs 4.2 KiB of the memory of GPU 1 (inputs 4.1 KiB, "
               "tables 100 bytes), which can give 2.1 KiB\n"
               "  help: 512KiB fits");
}

TEST(Room, SaysNothingWhenEverythingFits) {
  MemoryNeed need{.owner = "this computer", .available = 100};
  need.add("inputs", 100, true);
  EXPECT_FALSE(find_shortage(std::vector{need}, 1));
  need.available = std::numeric_limits<double>::infinity();
  need.add("inputs", 1e30, true);
  EXPECT_FALSE(find_shortage(std::vector{need}, 1));
  EXPECT_FALSE(find_shortage({}, 1));
}

TEST(Room, WhatDoesNotGrowMayBeTooMuchAlone) {
  MemoryNeed need{.owner = "this computer", .available = 100};
  need.add("inputs", 10, true);
  need.add("tables", 200, false);
  EXPECT_THAT(find_shortage(std::vector{need}, 1)->what(), testing::HasSubstr("no message fits"));
}

/// A folder of files as Linux has them.
class FreeMemory : public testing::Test {
 protected:
  FreeMemory() : root_(temp_file("free_memory")) {
    std::filesystem::remove_all(root_);  // that of the test before
    std::filesystem::create_directories(root_ / "proc/self");
    std::filesystem::create_directories(root_ / "sys/fs/cgroup");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
  }
  const std::filesystem::path root_;
};

TEST_F(FreeMemory, IsTheLeastThatTheComputerAndTheControlGroupLeave) {
  EXPECT_EQ(free_memory_bytes(root_), std::numeric_limits<double>::infinity());
  write("proc/meminfo", "MemTotal:  4000 kB\nMemFree:   100 kB\nMemAvailable:   3000 kB\n");
  EXPECT_EQ(free_memory_bytes(root_), 3000 * 1024);
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(free_memory_bytes(root_), 3000 * 1024);
  write("sys/fs/cgroup/memory.max", "5000\n");
  EXPECT_EQ(free_memory_bytes(root_), 4000);
  // Of what is used, 600 bytes are files that were read once.
  write("sys/fs/cgroup/memory.stat", "anon 400\ninactive_file 500\nactive_file 100\n");
  EXPECT_EQ(free_memory_bytes(root_), 4600);
  write("sys/fs/cgroup/memory.max", "300\n");
  EXPECT_EQ(free_memory_bytes(root_), 0);
}

TEST_F(FreeMemory, IsKnownWhereThereIsNone) {
  EXPECT_EQ(as_bytes(std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(as_bytes(0), 1);
  EXPECT_EQ(as_bytes(4096), 4096);
}

TEST_F(FreeMemory, CachesCountOnceHoweverManyProcessorsShareThem) {
  EXPECT_EQ(last_caches_bytes(root_), 0);
  const auto cache = [&](int cpu, int index, int level, const std::string& size,
                         const std::string& shared) {
    const std::string folder =
        fmt::format("sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
    std::filesystem::create_directories(root_ / folder);
    write(folder + "level", std::to_string(level) + "\n");
    write(folder + "size", size + "\n");
    write(folder + "shared_cpu_list", shared + "\n");
  };
  std::filesystem::create_directories(root_ / "sys/devices/system/cpu/cpufreq");
  for (int cpu = 0; cpu < 4; ++cpu) {
    cache(cpu, 0, 1, "48K", std::to_string(cpu));
    cache(cpu, 2, 2, "2048K", std::to_string(cpu));
    if (cpu < 2) continue;
    cache(cpu, 3, 3, cpu < 3 ? "32768K" : "96M", cpu < 3 ? "0-2" : "3");
  }
  EXPECT_EQ(last_caches_bytes(root_), std::int64_t{128} << 20);
}

// As managers of jobs make them: one in another, and the limit somewhere between.
TEST_F(FreeMemory, IsThatOfEveryControlGroupAround) {
  const auto limit = [&](const std::string& folder, const std::string& maximum,
                         const std::string& used, const std::string& bytes) {
    std::filesystem::create_directories(root_ / "sys/fs/cgroup" / folder);
    write("sys/fs/cgroup/" + folder + "/" + maximum, bytes + "\n");
    write("sys/fs/cgroup/" + folder + "/" + used, "1000\n");
  };
  write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  limit("slurm/job_7/step_0", "memory.max", "memory.current", "max");
  limit("slurm/job_7", "memory.max", "memory.current", "6000");
  limit("slurm/job_8", "memory.max", "memory.current", "2000");
  EXPECT_EQ(free_memory_bytes(root_), 5000);
  // Of the first version.
  write("proc/self/cgroup", "12:cpu,memory:/slurm/uid_1\n11:pids:/\n");
  limit("memory/slurm/uid_1", "memory.limit_in_bytes", "memory.usage_in_bytes", "5000");
  write("sys/fs/cgroup/memory/slurm/uid_1/memory.stat", "total_inactive_file 500\n");
  EXPECT_EQ(free_memory_bytes(root_), 4500);
}

[[noreturn]] void say_what_is_free() {
  limit_memory(std::size_t{64} << 20);
  const double mib = free_memory_bytes() / (1 << 20);
  std::_Exit(mib > 60 && mib < 65 ? 0 : 1);  // the heap may have given something back since
}

TEST(FreeMemoryOfAProcess, IsWhatItsLimitOfAddressesLeaves) {
  if (!kCanLimitMemory) GTEST_SKIP() << "with a sanitizer, addresses can't be limited";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(say_what_is_free(), testing::ExitedWithCode(0), "");
}

// The guards and the rounding that HostMemory really allocates are those that are counted.
TEST(AllocatedBytes, CountsGuardsAndWholeSteps) {
  EXPECT_EQ(allocated_bytes(1), 192);  // 64 bytes on either side, in steps of 64
  EXPECT_EQ(allocated_bytes(64), 192);
  EXPECT_EQ(allocated_bytes(65), 256);
  EXPECT_EQ(allocated_bytes(1 << 20), 2 << 20);  // huge pages of 2 MiB
  EXPECT_EQ(allocated_bytes(4 << 20), 6 << 20);
  // Of many places in one process, only what fills a huge page has some: 64 of 128 KiB take 8 MiB
  // and their guards, not 128 MiB.
  EXPECT_EQ(allocated_bytes(128 << 10, 16), 2 << 20);
  EXPECT_EQ(allocated_bytes(128 << 10, 17), (128 << 10) + 128);
  EXPECT_EQ(allocated_bytes(2 << 20, 17), 4 << 20);
  EXPECT_EQ(allocated_bytes(1e25), 1e25);
}

}  // namespace
}  // namespace espalier
