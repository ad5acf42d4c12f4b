// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "tests/sim/machine.h"

namespace espalier {

inline constexpr double kUs = 1e-6;
inline constexpr std::int64_t kUnitBytes = 4096;

/// What each of several groups of four ranks does, at random, between these.
class AlikeGroups {
 public:
  AlikeGroups(std::mt19937& random, int groups) : random_(random), groups_(groups) {}

  Program program() {
    Builder builder("alike", allreduce_contract(kRanks * groups_, kUnits));
    const int ops = number(4, 40);
    const int lanes = number(1, 4);
    for (int i = 0; i < ops; ++i) {
      const int from = number(0, kRanks - 1);
      const int to = (from + number(1, kRanks - 1)) % kRanks;
      const int length = number(1, 3);
      const int begin = number(0, kUnits - length);
      const int target = begin + kUnits * number(0, 1);  // in scratch
      const int source = begin + kUnits * number(0, 2);  // likewise, or an input
      const bool is_read = number(0, 3) == 0;
      const bool adds = number(0, 2) == 0;
      const int lane = number(0, lanes - 1);
      for (int group = 0; group < groups_; ++group) {
        const int first = kRanks * group;
        const Slice dst = builder.tmp(first + to, target, length);
        const Slice src = source < 2 * kUnits ? builder.tmp(first + from, source, length)
                                              : builder.input(first + from, begin, length);
        const int at = is_read || adds ? first + to : first + from;
        if (adds) {
          builder.combine(dst, {builder.input(first + to, begin, length), src},
                          {.lane = lane, .at = at});
        } else {
          builder.copy(dst, src, {.lane = lane, .at = at});
        }
      }
    }
    return builder.finish();
  }

  Profile profile() {
    Profile profile = bare_profile();
    profile.links["nvlink2"].overhead_s = number(0, 4) * 0.5 * kUs;
    profile.gets_wait = number(0, 1) == 0;
    if (number(0, 1) == 0) {
      profile.blocks = number(1, 4);
      profile.splits_lanes = number(0, 1) == 0;
      profile.protocol.block_gbps["other"] = number(2, 30);
    }
    if (number(0, 2) == 0) {
      profile.fifo_steps = number(2, 4);
      profile.protocol.step_bytes = kUnitBytes;
    }
    if (number(0, 3) == 0) profile.reduction = ReductionMode::separate;
    if (number(0, 3) == 0) profile.protocol.min_op_s = number(1, 5) * kUs;
    return profile;
  }

  /// What an op costs goes with its length in steps: start-ups of longer messages, slices, of which
  /// the first of a lane cost more, and what is lost to lockstep.
  Profile profile_of_steps() {
    Profile made = profile();
    if (number(0, 1) == 0) {
      made.links["nvlink2"].longer = {{1.5 * kUnitBytes, 3 * kUs}, {40.0 * kUnitBytes, 5 * kUs}};
    }
    if (number(0, 1) == 0) made.protocol.lockstep_bytes = number(1, 40) * kUnitBytes;
    if (number(0, 1) == 0) {
      made.protocol.slice_bytes = 2 * kUnitBytes;
      made.protocol.min_slice_bytes = kUnitBytes / 4.0;
      made.protocol.slices_per_op = number(1, 3);
      made.protocol.hop_s[LinkClass::gpu_fabric] = 2 * kUs;
      made.protocol.hold_s[LinkClass::gpu_fabric] = 0.5 * kUs;
    }
    constexpr std::array kModes{ReductionMode::free, ReductionMode::fused, ReductionMode::separate,
                                ReductionMode::reading};
    made.reduction = kModes[static_cast<std::size_t>(number(0, 3))];
    made.reduce_overhead_s = number(0, 2) * kUs;
    made.local_overhead_s = number(0, 2) * kUs;
    return made;
  }

  /// One figure of the last group's links or GPUs becomes another one, so that its lanes are like
  /// those of the others in all else; for some sizes, they may still take as long.
  void make_unlike(Topology& topology, Profile& profile) {
    const int first = kRanks * (groups_ - 1);
    const int what = number(0, 4);
    if (what == 0) profile.links["nvlink2"].longer.push_back({100.0 * kUnitBytes, 6 * kUs});
    profile.links["nvlink3"] = profile.links["nvlink2"];
    if (what == 0) profile.links["nvlink3"].longer.back().s += kUs;
    if (what == 1) profile.links["nvlink3"].overhead_s += 3 * kUs;
    if (what == 1) profile.links["nvlink3"].longer.clear();
    if (what == 2) profile.protocol.hop_more_s["b200"] = kUs;
    if (what == 3) profile.protocol.block_gbps["b200"] = 1;
    for (int gpu = first; gpu < first + kRanks; ++gpu) {
      Link& link = topology.links[static_cast<std::size_t>(gpu)];
      link.kind = "nvlink3";
      if (what == 2 || what == 3) topology.nodes[static_cast<std::size_t>(gpu)].model = "b200";
      if (what == 4) link.latency_s += 2 * kUs;
    }
  }

  /// Links of a group are unlike each other; those of groups are alike.
  Topology topology() {
    Topology topology = switch_machine(kRanks * groups_, 25, kUs);
    for (int rank = 0; rank < kRanks; ++rank) {
      const double gbps = number(1, 3) * 10;
      const double latency_s = number(0, 1) == 0 ? kUs : number(1, 40) * kUs;
      for (int group = 0; group < groups_; ++group) {
        const int gpu = kRanks * group + rank;
        Link& link = topology.links[static_cast<std::size_t>(gpu)];
        link.gbps = gbps;
        link.latency_s = latency_s;
      }
    }
    return topology;
  }

 private:
  static constexpr int kRanks = 4;
  static constexpr int kUnits = 8;

  int number(int from, int to) { return std::uniform_int_distribution(from, to)(random_); }

  std::mt19937& random_;
  const int groups_;
};

}  // namespace espalier
