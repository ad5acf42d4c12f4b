// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
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

/// Draws the parts of a random program.
class RandomProgram {
 public:
  RandomProgram(std::mt19937_64& random, const RandomProgramOptions& options)
      : random_(random), options_(options), contract_(random_contract()) {}

  Program make() {
    static const std::vector<std::string> kNames = {"ring", "k-nomial:k=3", "two words",
                                                    "a\"b\\c#\x01", ""};
    Builder builder(kNames[pick(0, 4)], contract_);
    hosts_ = static_cast<int>(pick(0, 2));
    for (int host = 0; host < hosts_; ++host) builder.add_host();
    const auto relays = static_cast<int>(pick(0, 2));
    for (int relay = 0; relay < relays; ++relay) builder.add_relay();
    places_ = contract_.ranks + hosts_ + relays;
    const std::int64_t count = pick(0, static_cast<std::int64_t>(options_.max_ops));
    for (std::int64_t i = 0; i < count; ++i) {
      const OpId op = pick(0, 9) == 0 ? add_busy(builder) : add_combine(builder);
      if (options_.extra_dependencies && op > 0 && pick(0, 4) == 0) {
        builder.after(op, static_cast<OpId>(pick(0, op - 1)));
      }
    }
    return builder.finish();
  }

 private:
  std::int64_t pick(std::int64_t minimum, std::int64_t maximum) {
    return std::uniform_int_distribution<std::int64_t>(minimum, maximum)(random_);
  }

  Contract random_contract() {
    const Collective collective = all_collectives()[pick(0, std::ssize(all_collectives()) - 1)].id;
    const auto ranks = static_cast<int>(pick(1, 5));
    const std::int64_t units = (info(collective).blocked ? ranks : 1) * pick(1, options_.max_units);
    const int root = info(collective).rooted ? static_cast<int>(pick(0, ranks - 1)) : 0;
    return {collective, ranks, root, units, pick(0, 1) == 1};
  }

  PlaceId random_place() { return static_cast<PlaceId>(pick(0, places_ - 1)); }

  Slice random_slice(std::int64_t phase, std::int64_t length) {
    const PlaceId place = random_place();
    Slice slice{place, static_cast<Buffer>(pick(0, 2)), 0, length};
    if (place >= contract_.ranks) slice.buffer = Buffer::tmp;
    const int blocks = info(contract_.collective).blocked ? contract_.ranks : 1;
    slice.begin = phase + block_units(contract_) * pick(0, blocks - 1);
    if (slice.buffer != Buffer::tmp &&
        slice.begin + length > buffer_units(contract_, place, slice.buffer)) {
      slice.buffer = Buffer::tmp;
    }
    return slice;
  }

  OpId add_busy(Builder& builder) {
    const double seconds = std::uniform_real_distribution<double>(0, 1e-3)(random_);
    const PlaceId place = random_place();
    const OpKind kind = pick(0, 1) == 0 ? OpKind::compute : OpKind::wait;
    return builder.busy(kind, place, seconds, {.lane = static_cast<int>(pick(0, 2))});
  }

  OpId add_combine(Builder& builder) {
    static const std::vector<std::string> kVias = {"plx0", "node 1/switch", "nic#2"};
    const std::int64_t phase = pick(0, block_units(contract_) - 1);
    const std::int64_t length = pick(1, block_units(contract_) - phase);
    const Slice dst = random_slice(phase, length);
    const auto overlaps_dst = [&](const Slice& src) {
      return src.place == dst.place && src.buffer == dst.buffer &&
             src.begin < dst.begin + dst.length && dst.begin < src.begin + src.length;
    };
    std::vector<Slice> srcs;
    const std::int64_t wanted = pick(1, 3);
    for (std::int64_t k = 0; k < wanted; ++k) {
      const Slice src = random_slice(phase, length);
      if (src == dst || !overlaps_dst(src)) srcs.push_back(src);
    }
    if (srcs.empty()) srcs.push_back(dst);
    if (pick(0, 4) == 0) return add_in_switch(builder, dst, srcs);
    OpOptions how{.lane = static_cast<int>(pick(0, 2))};
    if (pick(0, 2) == 0) how.at = srcs[pick(0, static_cast<std::int64_t>(srcs.size()) - 1)].place;
    if (pick(0, 4) == 0) how.via = kVias[pick(0, 2)];
    return builder.combine(dst, srcs, how);
  }

  /// With the operands that a switch reaches, each place once, and perhaps further destinations.
  OpId add_in_switch(Builder& builder, const Slice& dst, const std::vector<Slice>& srcs) {
    const auto is_gpu = [&](const Slice& slice) {
      return place_number_of(slice.place) != PlaceKind::host;
    };
    const auto add = [&](std::vector<Slice>& slices, const Slice& slice) {
      const bool is_known = std::ranges::any_of(
          slices, [&](const Slice& other) { return other.place == slice.place; });
      if (is_gpu(slice) && !is_known) slices.push_back(slice);
    };
    std::vector<Slice> read, written;
    for (const Slice& src : srcs) add(read, src);
    add(written, dst);
    for (std::int64_t k = pick(0, 3); k > 0; --k) {
      const Slice other = random_slice(dst.begin % block_units(contract_), dst.length);
      const bool clashes = std::ranges::any_of(
          read, [&](const Slice& src) { return !(src == other) && overlap(src, other); });
      if (!clashes) add(written, other);
    }
    if (read.empty() || written.empty()) return builder.combine(dst, srcs);
    OpOptions how{.lane = static_cast<int>(pick(0, 2))};
    if (pick(0, 2) == 0) how.at = written.back().place;
    return builder.in_switch(written, read, how);
  }

  PlaceKind place_number_of(PlaceId place) const {
    if (place < contract_.ranks) return PlaceKind::rank;
    return place < contract_.ranks + hosts_ ? PlaceKind::host : PlaceKind::relay;
  }

  std::mt19937_64& random_;
  const RandomProgramOptions& options_;
  Contract contract_;
  int hosts_ = 0;
  int places_ = 0;
};

/// A program that the builder accepts, but that computes nothing meaningful: copies and combines of
/// one to three sources between random places, some in switches, computes, several lanes, nodes on
/// the way.
inline Program random_program(std::mt19937_64& random, const RandomProgramOptions& options = {}) {
  return RandomProgram(random, options).make();
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
  if (a.kind != OpKind::combine || b.kind != OpKind::combine) return false;
  bool found = false;
  for_each_destination(program, a, [&](const Operand& x) {
    for_each_destination(program, b, [&](const Operand& y) { found = found || overlap(x, y); });
    for (const Operand& src : program.sources_of(b)) found = found || overlap(x, src);
  });
  for_each_destination(program, b, [&](const Operand& y) {
    for (const Operand& src : program.sources_of(a)) found = found || overlap(src, y);
  });
  return found;
}

}  // namespace espalier
