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

/// Of the control group at the root of the folder: that of a container.
double free_of_group(const std::filesystem::path& folder) {
  const auto maximum = number_in(folder / "memory.max");
  const auto used = number_in(folder / "memory.current");
  if (!maximum || !used) return kUnlimited;
  // What is used counts files in the cache, which give way.
  const double cached = number_after(folder / "memory.stat", "inactive_file", 0) +
                        number_after(folder / "memory.stat", "active_file", 0);
  return std::max(0.0, *maximum - std::max(0.0, *used - cached));
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
  return std::min({available, free_of_group(root / "sys/fs/cgroup"), free_addresses(root)});
}

}  // namespace espalier
