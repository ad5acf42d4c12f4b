// SPDX-License-Identifier: Apache-2.0
#include "exec/caches.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace espalier {
namespace {

std::string first_word(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// "32768K" as Linux writes it.
std::int64_t bytes_of(const std::string& size) {
  char* end = nullptr;
  const std::int64_t number = std::strtoll(size.c_str(), &end, 10);
  switch (*end) {
    case 'K':
      return number << 10;
    case 'M':
      return number << 20;
    case 'G':
      return number << 30;
    default:
      return number;
  }
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
          bytes_of(first_word(cache.path() / "size"));
    }
  }
  std::int64_t bytes = 0;
  if (levels.empty()) return bytes;
  for (const auto& [sharing, size] : levels.rbegin()->second) bytes += size;
  return bytes;
}

}  // namespace espalier
