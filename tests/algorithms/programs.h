// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"

namespace espalier::programs {

/// Start-up and time per message of the machine of `time_s`, where tests need no others.
inline constexpr double kAlpha = 3;
inline constexpr double kBeta = 7;

inline BuildRequest request(Collective collective, int ranks, int root = 0, bool in_place = false) {
  BuildRequest request;
  request.collective = collective;
  request.ranks = ranks;
  request.root = root;
  request.in_place = in_place;
  return request;
}

/// Ranks 0, 1, ... shared out evenly, neighbours together.
inline void use_hosts(BuildRequest& request, int hosts) {
  request.hosts = hosts;
  for (int rank = 0; rank < request.ranks; ++rank) {
    request.host_of_rank.push_back(rank * hosts / request.ranks);
  }
}

inline Program make(const std::string& spec, const BuildRequest& request) {
  return build(parse_algorithm(spec), request);
}

inline bool is_remote(const Program& program, const Op& op) {
  bool remote = false;
  for_each_transfer(program, op, [&](PlaceId, PlaceId) { remote = true; });
  return remote;
}

/// Time on a machine where nothing contends: an op that reads other places takes
/// alpha + beta x its part of the message, a local one nothing; an op waits for its dependencies
/// and for the op before it in its lane.
inline double time_s(const Program& program, double alpha, double beta) {
  std::vector<double> end(program.ops.size(), 0);
  std::map<std::pair<PlaceId, int>, double> lane_end;
  double last = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    double& lane = lane_end[{op.at, op.lane}];
    double start = lane;
    for (const OpId earlier : program.dependencies_of(op)) start = std::max(start, end[earlier]);
    const double part =
        static_cast<double>(op.length) / static_cast<double>(program.contract.units);
    lane = end[i] = start + (is_remote(program, op) ? alpha + beta * part : 0);
    last = std::max(last, end[i]);
  }
  return last;
}

/// Rounds of transfers: the longest chain of ops that read other places.
inline int rounds(const Program& program) {
  return static_cast<int>(std::lround(time_s(program, 1, 0)));
}

/// Messages (of program.contract.units units) that go from place to place.
inline std::map<std::pair<PlaceId, PlaceId>, double> traffic(const Program& program) {
  std::map<std::pair<PlaceId, PlaceId>, double> messages;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
      messages[{from, to}] +=
          static_cast<double>(op.length) / static_cast<double>(program.contract.units);
    });
  }
  return messages;
}

/// Messages each place sends, and receives.
struct Load {
  std::vector<double> sent;
  std::vector<double> received;
};
inline Load load(const Program& program) {
  const auto places = static_cast<std::size_t>(program.places());
  Load load{std::vector<double>(places, 0), std::vector<double>(places, 0)};
  for (const auto& [pair, messages] : traffic(program)) {
    load.sent[static_cast<std::size_t>(pair.first)] += messages;
    load.received[static_cast<std::size_t>(pair.second)] += messages;
  }
  return load;
}

inline int ceil_log(int n, int k) {
  int rounds = 0;
  for (std::int64_t reached = 1; reached < n; reached *= k) ++rounds;
  return rounds;
}

}  // namespace espalier::programs
