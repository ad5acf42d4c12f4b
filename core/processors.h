// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace espalier {

/// The processors whose whole time this process may have, at least 1: those it may run on
/// (sched_getaffinity: what Slurm, mpirun or taskset left it), but no more than the quota of its
/// control groups pays for (cpu.max: what a container was given), rounded up.
int usable_processors();

/// What `cpu.max` of control groups version 2 says: "200000 100000" is 2, "max 100000" is no limit,
/// as is anything else. At least 1.
std::optional<int> quota_from(std::string_view cpu_max);

/// The least quota of a group and the groups around it. `mount`: where groups are, as a rule
/// /sys/fs/cgroup. `group`: below it, as in the line "0::/user.slice/job" of /proc/self/cgroup.
std::optional<int> quota_of(const std::filesystem::path& mount, const std::filesystem::path& group);

}  // namespace espalier
