// SPDX-License-Identifier: Apache-2.0
#include "algorithms/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/check.h"

namespace espalier {

std::vector<KnomialEdge> knomial_edges(int n, int k) {
  CHECK(n >= 1 && k >= 2);
  std::int64_t stride = 1;
  while (stride * k < n) stride *= k;
  std::vector<KnomialEdge> edges;
  edges.reserve(static_cast<std::size_t>(n - 1));
  for (int round = 0; stride >= 1 && n > 1; ++round, stride /= k) {
    for (std::int64_t parent = 0; parent < n; parent += stride * k) {
      for (int branch = 0; branch < k - 1; ++branch) {
        const std::int64_t child = parent + (branch + 1) * stride;
        if (child >= n) break;
        edges.push_back({round, static_cast<int>(parent), static_cast<int>(child), branch,
                         static_cast<int>(std::min(stride, n - child))});
      }
    }
  }
  return edges;
}

Slice accumulator(const Builder& builder, int rank, std::int64_t begin, std::int64_t length) {
  if (output_region(builder.contract(), rank).units > 0) return builder.output(rank, begin, length);
  if (builder.contract().in_place) return builder.input(rank, begin, length);
  return builder.tmp(rank, begin, length);
}

void keep_own(Builder& builder, int rank, std::int64_t begin, std::int64_t length, int lane) {
  builder.copy(builder.output(rank, begin, length), builder.input(rank, begin, length),
               {.lane = lane});
}

void relay(Builder& builder, const std::vector<int>& order, const Slice& first, std::int64_t begin,
           int lane) {
  Slice from = first;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Slice to = builder.output(order[i], begin, first.length);
    builder.copy(to, from, {.lane = lane});
    from = to;
  }
}

AlgorithmParameter at_once_parameter() {
  return {"at_once", "transfers one rank or server has under way at once", 8, 1, 1024, {1, 64}};
}

void reduce_all(Builder& builder, const Slice& dst, int first, std::int64_t begin, int at_once,
                int lane) {
  const int n = builder.ranks();
  std::vector<Slice> sources;
  int remote = 0;
  for (int i = 0; i < n; ++i) {
    sources.push_back(builder.input(wrap(first + i, n), begin, dst.length));
    remote += sources.back().place != dst.place;
    if (remote < at_once && i + 1 < n) continue;
    const OpOptions here = {.lane = lane, .at = dst.place};
    if (sources.size() == 1) {
      builder.copy(dst, sources[0], here);  // nothing when the only rank already has it there
    } else {
      builder.combine(dst, sources, here);
    }
    sources = {dst};
    remote = 0;
  }
}

void reduce_and_hand_out(Builder& builder, int rank, int at_once) {
  const Slice result = builder.output(rank, rank, 1);
  reduce_all(builder, result, rank, rank, at_once, 0);
  push_to_others(builder.ranks(), rank, at_once, 1, [&](int peer, int lane) {
    builder.copy(builder.output(peer, rank, 1), result, {.lane = lane});
  });
}

int host_of(const BuildRequest& request, int rank) {
  return request.host_of_rank.empty() ? 0 : request.host_of_rank[static_cast<std::size_t>(rank)];
}

std::optional<std::string> missing_host(const BuildRequest& request) {
  for (int rank = 0; rank < request.ranks; ++rank) {
    const int host = host_of(request, rank);
    if (host < 0 || host >= request.hosts) {
      return fmt::format("rank {} reaches no host memory", rank);
    }
  }
  return std::nullopt;
}

}  // namespace espalier
