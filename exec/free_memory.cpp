// SPDX-License-Identifier: Apache-2.0
#include "exec/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The number in a file of one number; nothing where there is none, as in "max".
std::optional<double> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  double number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The number after a word at the beginning of a line.
double number_after(const std::filesystem::path& path, std::string_view word, double missing) {
  std::ifstream file(path);
  std::string first;
  for (double number = 0; file >> first >> number; file.ignore(1 << 10, '\n')) {
    if (first == word) return number;
  }
  return missing;
}

/// What a version of control groups calls its files and lines.
struct GroupNames {
  const char* folder;
  const char* maximum;
  const char* used;
  const char* inactive_files;
  const char* active_files;
};
constexpr GroupNames kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file",
                               "active_file"};
constexpr GroupNames kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};

double free_of_group(const std::filesystem::path& folder, const GroupNames& names) {
  const auto maximum = number_in(folder / names.maximum);
  const auto used = number_in(folder / names.used);
  if (!maximum || !used) return kUnlimited;
  // What is used counts files in the cache, which give way.
  const double cached = number_after(folder / "memory.stat", names.inactive_files, 0) +
                        number_after(folder / "memory.stat", names.active_files, 0);
  return std::max(0.0, *maximum - std::max(0.0, *used - cached));
}

/// Of the process's control group and all that it is part of, as managers of jobs make them; the
/// last one, at the root of the folder, is that of a container.
double free_of_groups(const std::filesystem::path& root, std::filesystem::path group,
                      const GroupNames& names) {
  const std::filesystem::path folder = root / names.folder;
  double free = free_of_group(folder, names);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path()) {
    free = std::min(free, free_of_group(folder / group, names));
  }
  return free;
}

/// The lines of /proc/self/cgroup: "0::/system.slice" of version 2, "9:cpu,memory:/job_7" of 1.
double free_of_control_groups(const std::filesystem::path& root) {
  double free = free_of_groups(root, {}, kVersion2);
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") free = std::min(free, free_of_groups(root, group, kVersion2));
    if (controllers.find(",memory,") != controllers.npos) {
      free = std::min(free, free_of_groups(root, group, kVersion1));
    }
  }
  return free;
}

double free_addresses(const std::filesystem::path& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const double pages = number_in(root / "proc/self/statm").value_or(0);
  const double used = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - used);
}

}  // namespace

double free_memory_bytes(const std::filesystem::path& root) {
  const double available = number_after(root / "proc/meminfo", "MemAvailable:", kUnlimited) * 1024;
  return std::min({available, free_of_control_groups(root), free_addresses(root)});
}

std::int64_t as_bytes(double free_bytes) {
  if (free_bytes > 1e18) return 0;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(free_bytes));
}

}  // namespace espalier
