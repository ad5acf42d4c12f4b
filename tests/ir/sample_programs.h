// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/builder.h"

// Small right programs of every shape, for tests of the verifier and the interpreter. They are
// written here once more, without the algorithms room, so that neither leans on the other.
namespace espalier {

inline Program ring_allreduce(int n, bool in_place) {
  Builder b("ring", {Collective::allreduce, n, 0, n, in_place});
  const auto unit = [n](int rank, int step) { return ((rank - step) % n + n) % n; };
  for (int step = 0; step < n - 1; ++step) {
    for (int r = 0; r < n; ++r) {
      const int next = (r + 1) % n;
      const int u = unit(r, step);
      const Slice sum = step == 0 ? b.input(r, u, 1) : b.output(r, u, 1);
      b.combine(b.output(next, u, 1), {sum, b.input(next, u, 1)});
    }
  }
  for (int step = 0; step < n - 1; ++step) {
    for (int r = 0; r < n; ++r) {
      const int u = unit(r + 1, step);
      b.copy(b.output((r + 1) % n, u, 1), b.output(r, u, 1));
    }
  }
  return b.finish();
}

/// Recursive halving, then doubling; n a power of two. The lower rank's data stands left on both.
inline Program halving_doubling_allreduce(int n) {
  Builder b("halving_doubling", {Collective::allreduce, n, 0, n, true});
  std::vector<int> begin(static_cast<std::size_t>(n), 0);
  for (int half = n / 2; half >= 1; half /= 2) {
    for (int r = 0; r < n; ++r) {
      if (r & half) begin[static_cast<std::size_t>(r)] += half;
    }
    // Partners exchange halves; what comes in is put in scratch first, since it is also being read.
    for (int r = 0; r < n; ++r) {
      const int mine = begin[static_cast<std::size_t>(r)];
      b.copy(b.tmp(r, mine, half), b.output(r ^ half, mine, half));
    }
    for (int r = 0; r < n; ++r) {
      const int mine = begin[static_cast<std::size_t>(r)];
      b.combine(b.output(r, mine, half), {b.output(r, mine, half), b.tmp(r, mine, half)});
    }
  }
  for (int half = 1; half < n; half *= 2) {
    for (int r = 0; r < n; ++r) {
      b.copy(b.output(r ^ half, begin[static_cast<std::size_t>(r)], half),
             b.output(r, begin[static_cast<std::size_t>(r)], half));
    }
    for (int r = 0; r < n; ++r) {
      if (r & half) begin[static_cast<std::size_t>(r)] -= half;
    }
  }
  return b.finish();
}

/// Binomial tree, the message in `units` pipelined parts.
inline Program tree_broadcast(int n, int root, std::int64_t units) {
  Builder b("tree", {Collective::broadcast, n, root, units, false});
  for (std::int64_t u = 0; u < units; ++u) {
    b.copy(b.output(root, u, 1), b.input(root, u, 1), {.lane = 1});
    for (int reach = 1; reach < n; reach *= 2) {
      for (int r = 0; r < reach && r + reach < n; ++r) {
        const int from = (root + r) % n;
        const int to = (root + r + reach) % n;
        const Slice source = r == 0 ? b.input(root, u, 1) : b.output(from, u, 1);
        b.copy(b.output(to, u, 1), source);
      }
    }
  }
  return b.finish();
}

inline Program direct_alltoall(int n) {
  const std::int64_t units = 2 * n;
  Builder b("direct", {Collective::alltoall, n, 0, units, false});
  for (int shift = 0; shift < n; ++shift) {
    for (int r = 0; r < n; ++r) {
      const int to = (r + shift) % n;
      b.copy(b.output(to, 2 * r, 2), b.input(r, 2 * to, 2), {.lane = shift % 2});
    }
  }
  return b.finish();
}

/// Every rank pushes to a host memory, which adds up and hands out. One fold for all ranks.
inline Program parameter_server(int n) {
  Builder b("parameter_server", {Collective::allreduce, n, 0, 2, false});
  const PlaceId server = b.add_host();
  for (std::int64_t u = 0; u < 2; ++u) {
    std::vector<Slice> parts;
    for (int r = 0; r < n; ++r) {
      parts.push_back(b.tmp(server, 2 * r + u, 1));
      b.copy(parts.back(), b.input(r, u, 1));
    }
    b.combine(parts[0], parts);
    for (int r = 0; r < n; ++r) b.copy(b.output(r, u, 1), parts[0], {.at = r});
  }
  return b.finish();
}

inline Program ring_reducescatter(int n, bool in_place) {
  Builder b("ring", {Collective::reducescatter, n, 0, 2 * n, in_place});
  for (int r = 0; r < n; ++r) {
    // Block r travels from r + 1 around to r.
    Slice sum = b.input((r + 1) % n, 2 * r, 2);
    for (int hop = 2; hop <= n; ++hop) {
      const int at = (r + hop) % n;
      const Slice dst = hop == n ? b.output(r, 0, 2) : b.tmp(at, 2 * r, 2);
      b.combine(dst, {sum, b.input(at, 2 * r, 2)});
      sum = dst;
    }
  }
  return b.finish();
}

inline Program ring_allgather(int n, bool in_place) {
  Builder b("ring", {Collective::allgather, n, 0, n, in_place});
  for (int r = 0; r < n; ++r) b.copy(b.output(r, r, 1), b.input(r, 0, 1));
  for (int step = 0; step < n - 1; ++step) {
    for (int r = 0; r < n; ++r) {
      const int block = (r - step + n) % n;
      b.copy(b.output((r + 1) % n, block, 1), b.output(r, block, 1));
    }
  }
  return b.finish();
}

inline Program gather_and_scatter_sample(Collective collective, int n, int root, bool in_place) {
  Builder b("direct", {collective, n, root, n, in_place});
  for (int r = 0; r < n; ++r) {
    if (collective == Collective::gather) b.copy(b.output(root, r, 1), b.input(r, 0, 1));
    if (collective == Collective::scatter) b.copy(b.output(r, 0, 1), b.input(root, r, 1));
  }
  return b.finish();
}

inline Program star_reduce(int n, int root) {
  Builder b("star", {Collective::reduce, n, root, 3, true});
  for (int r = 0; r < n; ++r) {
    if (r == root) continue;
    b.combine(b.output(root, 0, 3), {b.output(root, 0, 3), b.input(r, 0, 3)});
  }
  return b.finish();
}

/// Every rank sends to the next through scratch, since in place it still has to read what it holds.
inline Program shift(int n) {
  Builder b("shift", {Collective::sendrecv, n, 0, 2, true});
  for (int r = 0; r < n; ++r) b.copy(b.tmp((r + 1) % n, 0, 2), b.input(r, 0, 2));
  for (int r = 0; r < n; ++r) b.copy(b.output(r, 0, 2), b.tmp(r, 0, 2));
  return b.finish();
}

inline std::vector<Program> sample_programs() {
  std::vector<Program> all;
  all.push_back(ring_allreduce(4, false));
  all.push_back(ring_allreduce(5, true));
  all.push_back(halving_doubling_allreduce(8));
  all.push_back(tree_broadcast(6, 2, 3));
  all.push_back(direct_alltoall(4));
  all.push_back(parameter_server(3));
  all.push_back(ring_reducescatter(4, false));
  all.push_back(ring_reducescatter(3, true));
  all.push_back(ring_allgather(4, false));
  all.push_back(ring_allgather(3, true));
  all.push_back(star_reduce(4, 1));
  all.push_back(shift(4));
  for (const bool in_place : {false, true}) {
    all.push_back(gather_and_scatter_sample(Collective::gather, 4, 2, in_place));
    all.push_back(gather_and_scatter_sample(Collective::scatter, 4, 2, in_place));
  }
  return all;
}

}  // namespace espalier
