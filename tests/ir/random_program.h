// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"

namespace espalier {

struct RandomProgramOptions {
  std::int64_t max_units = 12;
  std::size_t max_ops = 40;
  bool extra_dependencies = true;
};

/// A program that the builder accepts, but that computes nothing meaningful: copies and combines of
/// one to three sources between random places, computes, several lanes, carriers, nodes on the way.
inline Program random_program(std::mt19937_64& random, const RandomProgramOptions& options = {}) {
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  static const std::vector<std::string> kNames = {"ring", "k-nomial:k=3", "two words",
                                                  "a\"b\\c#\x01", ""};
  static const std::vector<std::string> kVias = {"plx0", "node 1/switch", "nic#2"};
  const Collective collective = all_collectives()[pick(0, 8)].id;
  const int ranks = static_cast<int>(pick(1, 5));
  const std::int64_t units =
      info(collective).blocked ? ranks * pick(1, options.max_units) : pick(1, options.max_units);
  const Contract contract{collective, ranks,
                          info(collective).rooted ? static_cast<int>(pick(0, ranks - 1)) : 0, units,
                          pick(0, 1) == 1};
  Builder builder(kNames[pick(0, 4)], contract);
  const int hosts = static_cast<int>(pick(0, 2));
  for (int host = 0; host < hosts; ++host) builder.add_host();

  const std::int64_t block = block_units(contract);
  const auto random_slice = [&](std::int64_t phase, std::int64_t length) {
    const auto place = static_cast<PlaceId>(pick(0, ranks + hosts - 1));
    Slice slice{place, static_cast<Buffer>(pick(0, 2)), 0, length};
    if (place >= ranks) slice.buffer = Buffer::tmp;
    slice.begin = phase + block * pick(0, info(collective).blocked ? ranks - 1 : 0);
    if (slice.buffer != Buffer::tmp &&
        slice.begin + length > buffer_units(contract, place, slice.buffer)) {
      slice.buffer = Buffer::tmp;
    }
    return slice;
  };
  const auto overlaps = [](const Slice& a, const Slice& b) {
    return a.place == b.place && a.buffer == b.buffer && a.begin < b.begin + b.length &&
           b.begin < a.begin + a.length;
  };

  const std::int64_t count = pick(0, static_cast<std::int64_t>(options.max_ops));
  for (std::int64_t i = 0; i < count; ++i) {
    OpOptions how{.lane = static_cast<int>(pick(0, 2))};
    OpId op = 0;
    if (pick(0, 9) == 0) {
      const double seconds = std::uniform_real_distribution<double>(0, 1e-3)(random);
      op = builder.compute(static_cast<PlaceId>(pick(0, ranks + hosts - 1)), seconds, how);
    } else {
      const std::int64_t phase = pick(0, block - 1);
      const std::int64_t length = pick(1, block - phase);
      const Slice dst = random_slice(phase, length);
      std::vector<Slice> srcs;
      const std::int64_t wanted = pick(1, 3);
      for (std::int64_t k = 0; k < wanted; ++k) {
        const Slice src = random_slice(phase, length);
        if (src == dst || !overlaps(src, dst)) srcs.push_back(src);
      }
      if (srcs.empty()) srcs.push_back(dst);
      if (pick(0, 2) == 0) how.at = srcs[pick(0, static_cast<std::int64_t>(srcs.size()) - 1)].place;
      if (pick(0, 4) == 0) how.via = kVias[pick(0, 2)];
      op = builder.combine(dst, srcs, how);
    }
    if (options.extra_dependencies && op > 0 && pick(0, 4) == 0) {
      builder.after(op, static_cast<OpId>(pick(0, op - 1)));
    }
  }
  return builder.finish();
}

/// happens[b][a]: op a comes before op b, by dependencies and lanes. Obvious and slow: O(n^3).
inline std::vector<std::vector<bool>> happens_before(const Program& program) {
  const std::size_t count = program.ops.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  for (std::size_t b = 0; b < count; ++b) {
    const auto add = [&](std::size_t a) {
      before[b][a] = true;
      for (std::size_t i = 0; i < count; ++i) {
        if (before[a][i]) before[b][i] = true;
      }
    };
    for (const OpId dependency : program.dependencies_of(program.ops[b])) add(dependency);
    for (std::size_t a = 0; a < b; ++a) {
      if (program.ops[a].at == program.ops[b].at && program.ops[a].lane == program.ops[b].lane) {
        add(a);
      }
    }
  }
  return before;
}

/// Units both ops touch, one of them writing; by looking at every unit.
inline bool touch_same_units(const Program& program, const Op& a, const Op& b) {
  const auto overlap = [&](const Operand& x, const Operand& y) {
    for (std::uint32_t i = 0; i < a.length; ++i) {
      for (std::uint32_t j = 0; j < b.length; ++j) {
        if (x.place == y.place && x.buffer == y.buffer && x.begin + i == y.begin + j) return true;
      }
    }
    return false;
  };
  if (a.kind == OpKind::compute || b.kind == OpKind::compute) return false;
  bool found = overlap(a.dst, b.dst);
  for (const Operand& src : program.sources_of(b)) found = found || overlap(a.dst, src);
  for (const Operand& src : program.sources_of(a)) found = found || overlap(src, b.dst);
  return found;
}

}  // namespace espalier
