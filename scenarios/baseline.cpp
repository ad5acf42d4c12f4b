// SPDX-License-Identifier: Apache-2.0
#include "scenarios/baseline.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "scenarios/study.h"

namespace espalier {
namespace {

/// The library: NCCL as it chooses by itself.
constexpr std::string_view kBaseline = "nccl";

}  // namespace

std::optional<Query> baseline_query(const Query& query) {
  const std::string runtime = profile_word(query.profile).runtime;
  const Algorithm* algorithm = find_algorithm(kBaseline);
  const bool has_collective =
      algorithm != nullptr && std::ranges::count(algorithm->collectives, query.collective) > 0;
  if (query.topology.empty() || runtime == "host" || !has_collective) return std::nullopt;
  Query asked = query;
  asked.profile = runtime;  // which says what the library runs under (Profile::library)
  asked.algorithm = algorithm->name;
  asked.chunk_bytes.reset();
  asked.relays.clear();
  if (asked.links == LinkScope::detours) asked.links = LinkScope::all;  // NCCL takes none
  asked.merge = true;
  asked.judge = false;
  asked.against_nccl = false;
  asked.run.timeline = false;
  return asked;
}

std::optional<double> speedup_of(const Outcome& outcome) {
  if (!outcome.nccl || outcome.report.time_s <= 0) return std::nullopt;
  return outcome.nccl->time_s / outcome.report.time_s;
}

bool is_open(double a_s, double a_error, double b_s, double b_error) {
  return std::abs(a_s - b_s) < std::hypot(a_error, b_error) * std::min(a_s, b_s);
}

bool keeps_library(const Outcome& outcome) {
  if (!outcome.nccl) return false;
  const double error = outcome.error ? outcome.error->relative : 0;
  const double library_s = outcome.nccl->time_s;
  const double time_s = outcome.report.time_s;
  return time_s >= library_s || is_open(time_s, error, library_s, outcome.nccl->relative_error);
}

}  // namespace espalier
