// SPDX-License-Identifier: Apache-2.0
#include "exec/caches.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "core/units.h"

namespace espalier {
namespace {

std::string first_word(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

std::int64_t last_caches_bytes(const std::filesystem::path& root) {
  std::map<int, std::map<std::string, std::int64_t>> levels;  // by level and who shares it
  std::error_code missing;
  using Entries = std::filesystem::directory_iterator;
  for (const auto& cpu : Entries(root / "sys/devices/system/cpu", missing)) {
    for (const auto& cache : Entries(cpu.path() / "cache", missing)) {
      const int level = std::atoi(first_word(cache.path() / "level").c_str());
      levels[level][first_word(cache.path() / "shared_cpu_list")] =
          parse_bytes(first_word(cache.path() / "size")).value_or(0);  // "32768K"
    }
  }
  std::int64_t bytes = 0;
  if (levels.empty()) return bytes;
  for (const auto& [sharing, size] : levels.rbegin()->second) bytes += size;
  return bytes;
}

}  // namespace espalier
