// SPDX-License-Identifier: Apache-2.0
#include "algorithms/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>

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
  return {"at_once", "transfers that a rank or server has in flight at once", 8, 1, 1024, {1, 64}};
}

void reduce_slices(Builder& builder, const Slice& dst, std::span<const Slice> sources, int at_once,
                   int lane) {
  std::vector<Slice> read;
  int remote = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    read.push_back(sources[i]);
    remote += sources[i].place != dst.place;
    if (remote < at_once && i + 1 < sources.size()) continue;
    const OpOptions here = {.lane = lane, .at = dst.place};
    if (read.size() == 1) {
      builder.copy(dst, read[0], here);  // nothing when the only source is dst
    } else {
      builder.combine(dst, read, here);
    }
    read = {dst};
    remote = 0;
  }
}

void reduce_all(Builder& builder, const Slice& dst, int first, std::int64_t begin, int at_once,
                int lane) {
  std::vector<Slice> inputs;
  for (int i = 0; i < builder.ranks(); ++i) {
    inputs.push_back(builder.input(wrap(first + i, builder.ranks()), begin, dst.length));
  }
  reduce_slices(builder, dst, inputs, at_once, lane);
}

void ring_allreduce(Builder& builder, const std::vector<Slice>& slices, int lane) {
  const auto n = static_cast<int>(slices.size());
  const auto part = [&](int position, int index) {
    Slice slice = slices[static_cast<std::size_t>(wrap(position, n))];
    CHECK(slice.length % n == 0);
    slice.length /= n;
    slice.begin += wrap(index, n) * slice.length;
    return slice;
  };
  std::vector<int> built;
  for (int at = 0; at < n; ++at) {
    if (builder.builds(slices[static_cast<std::size_t>(at)].place)) built.push_back(at);
  }
  for (int step = 1; step < n; ++step) {
    for (const int at : built) {
      const int index = wrap(at - 1 - step, n);
      const Slice sum = part(at, index);
      builder.combine(sum, {part(at - 1, index), sum}, {.lane = lane});
    }
  }
  for (int step = 1; step < n; ++step) {
    for (const int at : built) {
      const int index = wrap(at + 1 - step, n);
      builder.copy(part(at + 1, index), part(at, index), {.lane = lane});
    }
  }
}

Slice saved_input(Builder& builder, int rank, int lane) {
  const Slice input = builder.input(rank, 0, builder.contract().units);
  if (!builder.contract().in_place || builder.ranks() == 1) return input;
  const Slice saved = builder.tmp(rank, 0, input.length);
  builder.copy(saved, input, {.lane = lane});
  return saved;
}

void reduce_and_hand_out(Builder& builder, int rank, std::int64_t unit, int first_lane,
                         int at_once) {
  const Slice result = builder.output(rank, unit, 1);
  reduce_all(builder, result, rank, unit, at_once, first_lane);
  push_to_others(builder.ranks(), rank, at_once, first_lane + 1, [&](int peer, int lane) {
    builder.copy(builder.output(peer, unit, 1), result, {.lane = lane});
  });
}

int host_of(const BuildRequest& request, int rank) {
  return request.host_of_rank.empty() ? 0 : request.host_of_rank[static_cast<std::size_t>(rank)];
}

std::optional<std::string> missing_host(const BuildRequest& request) {
  for (int rank = 0; rank < request.ranks; ++rank) {
    const int host = host_of(request, rank);
    if (host < 0 || host >= request.hosts) {
      return fmt::format("rank {} cannot reach a host memory", rank);
    }
  }
  return std::nullopt;
}

AlgorithmParameter host_share_parameter() {
  return {
      "host_share", "percent of a copy within a socket that goes through host memory", 0, 0, 100,
      {20, 40}};
}

Striping striping_of(const BuildRequest& request, std::int64_t pieces) {
  Striping striping;
  striping.hosts = request.hosts;
  striping.host_percent = request.parameter("host_share");
  striping.pieces = pieces;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const int host = host_of(request, rank);
    striping.host_of_rank.push_back(host < request.hosts ? host : -1);
  }
  return striping;
}

Program striped(const Program& program, const BuildRequest& request, std::int64_t pieces) {
  const Striping striping = striping_of(request, pieces);
  if (striping.host_percent > 0 && request.ranks > 1) {
    if (const auto reason = nothing_to_stripe(program, striping)) {
      request.notes->push_back(
          fmt::format("host_share={} has no effect: {}", striping.host_percent, *reason));
    }
  }
  return stripe(program, striping);
}

std::vector<std::vector<int>> ranks_by_machine(const BuildRequest& request) {
  std::vector<std::vector<int>> machines;
  std::map<int, std::size_t> index_of;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const int machine = request.placement == nullptr
                            ? 0
                            : request.placement->machine_of_rank[static_cast<std::size_t>(rank)];
    const auto [known, is_new] = index_of.try_emplace(machine, machines.size());
    if (is_new) machines.emplace_back();
    machines[known->second].push_back(rank);
  }
  return machines;
}

bool are_numbered_in_order(const std::vector<std::vector<int>>& groups) {
  int next = 0;
  for (const std::vector<int>& ranks : groups) {
    if (ranks.size() != groups.front().size()) return false;
    for (const int rank : ranks) {
      if (rank != next++) return false;
    }
  }
  return true;
}

std::vector<Fold> folds_of_groups(const std::vector<std::vector<int>>& groups) {
  if (!are_numbered_in_order(groups)) return {};
  std::vector<Fold> all;
  const auto count = static_cast<int>(groups.size());
  for (int step = 1; 2 * step <= count; ++step) {
    if (count % step != 0) continue;
    const int each = static_cast<int>(groups.front().size()) * step;
    Fold& fold = all.emplace_back(Fold{.groups = count / step, .each = each, .adjacent = each});
    fold.turns.fill({.most = {.period = count, .step = step}});
  }
  return all;
}

std::vector<NodeId> gpus_of(const BuildRequest& request, const std::vector<int>& ranks) {
  std::vector<NodeId> gpus;
  for (const int rank : ranks) {
    gpus.push_back(request.placement->ranks[static_cast<std::size_t>(rank)]);
  }
  return gpus;
}

}  // namespace espalier
