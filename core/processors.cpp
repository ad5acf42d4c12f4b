// SPDX-License-Identifier: Apache-2.0
#include "core/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace espalier {

namespace {

constexpr std::size_t kMaxProcessors = 8192;  // what Linux can be built for

/// 0: not known.
int allowed_processors() {
  std::vector<cpu_set_t> sets(kMaxProcessors / CPU_SETSIZE);
  const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
  if (sched_getaffinity(0, bytes, sets.data()) != 0) return 0;
  return CPU_COUNT_S(bytes, sets.data());
}

/// Of this process; "/" where that is not known.
std::filesystem::path own_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "/";
}

}  // namespace

std::optional<int> quota_from(std::string_view cpu_max) {
  std::int64_t microseconds = 0;
  std::int64_t period = 0;
  const char* const end = cpu_max.data() + cpu_max.size();
  const auto first = std::from_chars(cpu_max.data(), end, microseconds);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc{} || microseconds <= 0 || period <= 0) return std::nullopt;
  const std::int64_t whole = microseconds / period + (microseconds % period > 0 ? 1 : 0);
  return static_cast<int>(std::clamp<std::int64_t>(whole, 1, kMaxProcessors));
}

std::optional<int> quota_of(const std::filesystem::path& mount,
                            const std::filesystem::path& group) {
  std::optional<int> least;
  const auto look_at = [&](const std::filesystem::path& folder) {
    std::ifstream file(folder / "cpu.max");
    std::string line;
    if (!std::getline(file, line)) return;
    const std::optional<int> quota = quota_from(line);
    if (quota) least = std::min(least.value_or(*quota), *quota);
  };
  std::filesystem::path folder = mount;
  look_at(folder);
  for (const std::filesystem::path& part : group.relative_path()) look_at(folder /= part);
  return least;
}

int usable_processors() {
  int processors = allowed_processors();
  if (processors == 0) processors = static_cast<int>(std::thread::hardware_concurrency());
  const std::optional<int> quota = quota_of("/sys/fs/cgroup", own_group());
  return std::max(1, quota ? std::min(processors, *quota) : processors);
}

}  // namespace espalier
