// SPDX-License-Identifier: Apache-2.0
// Times our allreduce of floats on this computer's threads: the half of host_vs_mpi.sh that is
// ours.
//
//   host_allreduce RANKS SIZE ITERATIONS                   which candidate is fastest here
//   host_allreduce RANKS SIZE ITERATIONS ALGORITHM CHUNK   the mean seconds of one allreduce
//
// Every candidate's result is checked, element by element, outside of the time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "core/error.h"
#include "core/units.h"
#include "exec/host/host_backend.h"
#include "ir/chunk.h"

namespace {

using namespace espalier;

struct Setting {
  int ranks = 0;
  std::int64_t size_bytes = 0;
  int iterations = 0;
};

double mean_time_s(const Setting& setting, const std::string& algorithm, std::int64_t chunk_bytes) {
  BuildRequest request;
  request.ranks = setting.ranks;
  const Program whole = build(parse_algorithm(algorithm), request);
  const auto size = static_cast<double>(setting.size_bytes);
  const Program program =
      chunk(whole, plan_chunking(whole, size, static_cast<double>(chunk_bytes)));
  RunOptions options;
  options.size_bytes = setting.size_bytes;
  options.iterations = setting.iterations;
  options.warmup = 1;
  const RunReport report = HostBackend().run(program, {}, options);
  if (report.executed->wrong != 0) {
    throw Error(ErrorKind::runtime, fmt::format("{}: {} elements are wrong", algorithm,
                                                report.executed->wrong.value_or(-1)));
  }
  return report.time_s;
}

void choose(const Setting& setting) {
  std::string best;
  double best_s = 0;
  for (const char* algorithm : {"flat_two_stage", "ring", "halving_doubling", "all_pairs"}) {
    for (const std::int64_t chunk_bytes : {64 << 10, 256 << 10, 1 << 20, 4 << 20, 0}) {
      const double time_s = mean_time_s(setting, algorithm, chunk_bytes);
      fmt::print(stderr, "{:18} chunk {:>6}: {}\n", algorithm,
                 chunk_bytes == 0 ? "whole" : format_bytes(chunk_bytes), format_seconds(time_s));
      if (!best.empty() && time_s >= best_s) continue;
      best = fmt::format("{} {}", algorithm, chunk_bytes);
      best_s = time_s;
    }
  }
  fmt::print("{}\n", best);
}

int run(const std::vector<std::string>& words) {
  std::vector<std::optional<std::int64_t>> numbers;  // of all words but the algorithm
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 3) numbers.push_back(parse_bytes(words[i]));
  }
  const bool valid =
      std::ranges::all_of(numbers, [](const auto& n) { return n && *n <= std::int64_t{1} << 40; });
  if ((words.size() != 3 && words.size() != 5) || !valid || *numbers[0] < 1 || *numbers[0] > 1024 ||
      *numbers[2] < 1 || *numbers[2] > 1'000'000) {
    fmt::print(stderr, "usage: host_allreduce RANKS SIZE ITERATIONS [ALGORITHM CHUNK]\n");
    return 2;
  }
  const Setting setting{static_cast<int>(*numbers[0]), *numbers[1], static_cast<int>(*numbers[2])};
  if (words.size() == 3) {
    choose(setting);
  } else {
    fmt::print("{:.9f}\n", mean_time_s(setting, words[3], *numbers[3]));
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return exit_code(error.kind());
  }
}
