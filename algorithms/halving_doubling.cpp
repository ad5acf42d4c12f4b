// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling: Rabenseifner, "Optimization of collective reduction operations",
// ICCS 2004; Thakur, Rabenseifner and Gropp, IJHPCA 2005.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// p = 2^m ranks that exchange in m steps. In step j, partners differ in bit masks[j] of their
/// position; halving keeps the upper half of a position's range where that bit is set, and doubling
/// goes through the steps backwards.
struct Exchange {
  std::vector<int> ranks;  ///< by position
  std::vector<int> masks;

  int rank(int position) const { return ranks[static_cast<std::size_t>(position)]; }
  int positions() const { return static_cast<int>(ranks.size()); }

  struct Range {
    std::int64_t begin;
    std::int64_t length;
  };
  /// The units a position answers for after `steps` steps of halving.
  Range range(int position, std::size_t steps) const {
    Range kept{0, positions()};
    for (std::size_t j = 0; j < steps; ++j) {
      kept.length /= 2;
      if ((position & masks[j]) != 0) kept.begin += kept.length;
    }
    return kept;
  }
};

/// Near partners first, so that the largest messages travel least (Rabenseifner's order), or far
/// ones first, which leaves position i with unit i (what reducescatter and allgather need).
Exchange make_exchange(std::vector<int> ranks, bool near_first) {
  Exchange exchange{std::move(ranks), {}};
  for (int mask = 1; mask < exchange.positions(); mask *= 2) exchange.masks.push_back(mask);
  if (!near_first) std::reverse(exchange.masks.begin(), exchange.masks.end());
  return exchange;
}

/// `partial(rank, begin, length, step)` holds what a rank has combined before step `step`.
template <typename Partial>
void halving_stage(Builder& builder, const Exchange& exchange, Partial partial) {
  for (std::size_t step = 0; step < exchange.masks.size(); ++step) {
    for (int position = 0; position < exchange.positions(); ++position) {
      const int partner = position ^ exchange.masks[step];
      const auto [begin, length] = exchange.range(position, step + 1);
      const int rank = exchange.rank(position);
      const int low = exchange.rank(std::min(position, partner));
      const int high = exchange.rank(std::max(position, partner));
      builder.combine(partial(rank, begin, length, step + 1),
                      {partial(low, begin, length, step), partial(high, begin, length, step)});
    }
  }
}

/// `held(rank, begin, length, first)` is what a rank passes on; `first` in the first of these
/// steps.
template <typename Held>
void doubling_stage(Builder& builder, const Exchange& exchange, Held held) {
  const std::size_t steps = exchange.masks.size();
  for (std::size_t step = steps; step-- > 0;) {
    for (int position = 0; position < exchange.positions(); ++position) {
      const int rank = exchange.rank(position);
      const int partner = exchange.rank(position ^ exchange.masks[step]);
      const auto [begin, length] = exchange.range(position, step + 1);
      builder.copy(builder.output(partner, begin, length),
                   held(rank, begin, length, step + 1 == steps));
    }
  }
}

/// With n = p + extra ranks, each of the first `extra` pairs is one position: its even rank adds
/// the odd one's message to its own first and hands it the result at the end.
void build_allreduce(Builder& builder, int p) {
  const int extra = builder.ranks() - p;
  std::vector<int> ranks;
  for (int position = 0; position < p; ++position) {
    ranks.push_back(position < extra ? 2 * position : position + extra);
  }
  for (int rank = 0; rank < 2 * extra; rank += 2) {
    builder.combine(builder.output(rank, 0, p),
                    {builder.input(rank, 0, p), builder.input(rank + 1, 0, p)});
  }
  const Exchange exchange = make_exchange(std::move(ranks), true);
  halving_stage(
      builder, exchange, [&](int rank, std::int64_t begin, std::int64_t length, std::size_t step) {
        const bool untouched = step == 0 && rank >= 2 * extra;
        return untouched ? builder.input(rank, begin, length) : builder.output(rank, begin, length);
      });
  doubling_stage(builder, exchange, [&](int rank, std::int64_t begin, std::int64_t length, bool) {
    return builder.output(rank, begin, length);
  });
  for (int rank = 0; rank < 2 * extra; rank += 2) {
    builder.copy(builder.output(rank + 1, 0, p), builder.output(rank, 0, p));
  }
}

std::vector<int> all_ranks(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void build_reducescatter(Builder& builder) {
  const Exchange exchange = make_exchange(all_ranks(builder.ranks()), false);
  const std::size_t steps = exchange.masks.size();
  halving_stage(
      builder, exchange, [&](int rank, std::int64_t begin, std::int64_t length, std::size_t step) {
        if (step == steps) return builder.output(rank, 0, 1);
        // In place the rank's own message may be written over.
        return step == 0 || builder.contract().in_place ? builder.input(rank, begin, length)
                                                        : builder.tmp(rank, begin, length);
      });
}

void build_allgather(Builder& builder) {
  const Exchange exchange = make_exchange(all_ranks(builder.ranks()), false);
  // What a rank passes on after its first step is in its output: its own block must get there too.
  for (int rank = 0; rank < builder.ranks(); ++rank) {
    builder.copy(builder.output(rank, rank, 1), builder.input(rank, 0, 1), {.lane = 1});
  }
  doubling_stage(builder, exchange,
                 [&](int rank, std::int64_t begin, std::int64_t length, bool first) {
                   return first ? builder.input(rank, 0, 1) : builder.output(rank, begin, length);
                 });
}

Program build_halving_doubling(const BuildRequest& request) {
  const int n = request.ranks;
  const auto p = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  Builder builder("halving_doubling", request.contract(p));
  if (n == 1) {
    keep_own(builder, 0, 0, 1, 0);
  } else if (request.collective == Collective::allreduce) {
    build_allreduce(builder, p);
  } else if (request.collective == Collective::reducescatter) {
    build_reducescatter(builder);
  } else {
    build_allgather(builder);
  }
  return builder.finish();
}

std::optional<std::string> needs_power_of_two(const BuildRequest& request) {
  if (request.collective == Collective::allreduce ||
      std::has_single_bit(static_cast<unsigned>(request.ranks))) {
    return std::nullopt;
  }
  return fmt::format("{} needs a power of two as the number of ranks, not {}",
                     to_string(request.collective), request.ranks);
}

}  // namespace

const Algorithm& halving_doubling_algorithm() {
  static const Algorithm algorithm = {
      .name = "halving_doubling",
      .summary = "pairs of ranks exchange halves, quarters, ... and then back again",
      .constraints = "allreduce: any number of ranks; reducescatter, allgather: a power of two",
      .paper = "Rabenseifner, ICCS 2004; Thakur et al., IJHPCA 2005",
      .collectives = {Collective::allreduce, Collective::reducescatter, Collective::allgather},
      .of_ranks_alone = true,
      .max_ranks = 4096,  // n messages in n parts each: more would be too much to verify
      .unsupported = needs_power_of_two,
      .build = build_halving_doubling};
  return algorithm;
}

}  // namespace espalier
