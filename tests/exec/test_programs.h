// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/program.h"

namespace espalier {

inline Contract test_contract(Collective collective, int ranks, std::int64_t units,
                              bool in_place = false) {
  return {.collective = collective, .ranks = ranks, .units = units, .in_place = in_place};
}

/// Ring allreduce: every unit goes round once to be summed up, and once more to be spread. Partial
/// results are kept in scratch, so that it serves in place too.
inline Program ring_program(int ranks, bool in_place) {
  Builder builder("ring", test_contract(Collective::allreduce, ranks, ranks, in_place));
  for (int r = 0; r < ranks; ++r)
    builder.copy(builder.tmp(r, 0, ranks), builder.input(r, 0, ranks));
  for (int step = 0; step + 1 < ranks; ++step) {
    for (int r = 0; r < ranks; ++r) {
      const int to = (r + 1) % ranks;
      const std::int64_t unit = (r - step + ranks) % ranks;
      builder.combine(builder.tmp(to, unit, 1),
                      {builder.tmp(r, unit, 1), builder.tmp(to, unit, 1)});
    }
  }
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t unit = (r + 1) % ranks;
    for (int to = 0; to < ranks; ++to) {
      builder.copy(builder.output(to, unit, 1), builder.tmp(r, unit, 1));
    }
  }
  return builder.finish();
}

/// Binary tree: reduced towards rank 0, sent back down; children pull on a lane of their own.
inline Program tree_program(int ranks, bool in_place) {
  Builder builder("tree", test_contract(Collective::allreduce, ranks, 1, in_place));
  for (int r = ranks - 1; r >= 0; --r) {
    std::vector<Slice> parts{builder.input(r, 0, 1)};
    for (const int child : {2 * r + 1, 2 * r + 2}) {
      if (child < ranks) parts.push_back(builder.output(child, 0, 1));
    }
    if (parts.size() == 1) {
      builder.copy(builder.output(r, 0, 1), parts[0]);
    } else {
      builder.combine(builder.output(r, 0, 1), parts);
    }
  }
  for (int r = 1; r < ranks; ++r) {
    builder.copy(builder.output(r, 0, 1), builder.output((r - 1) / 2, 0, 1), {.lane = 1, .at = r});
  }
  return builder.finish();
}

/// Every rank sums up one unit of all inputs in host memory, and all ranks fetch the sums from
/// there.
inline Program flat_program(int ranks, bool in_place) {
  Builder builder("flat", test_contract(Collective::allreduce, ranks, ranks, in_place));
  const PlaceId host = builder.add_host();
  for (int r = 0; r < ranks; ++r) {
    std::vector<Slice> parts;
    for (int from = 0; from < ranks; ++from) parts.push_back(builder.input(from, r, 1));
    builder.combine(builder.tmp(host, r, 1), parts, {.lane = r % 3, .at = r});
  }
  for (int r = 0; r < ranks; ++r) {
    builder.copy(builder.output(r, 0, ranks), builder.tmp(host, 0, ranks), {.at = r});
  }
  return builder.finish();
}

/// Every rank fetches what each of the others has for it: blocks of any size, so that the operands
/// of a copy begin anywhere. \pre the collective is allgather or alltoall
inline Program fetch_program(Collective collective, int ranks) {
  Builder builder("fetch", test_contract(collective, ranks, ranks));
  const bool all_alike = collective == Collective::allgather;
  for (int to = 0; to < ranks; ++to) {
    for (int from = 0; from < ranks; ++from) {
      builder.copy(builder.output(to, from, 1), builder.input(from, all_alike ? 0 : to, 1),
                   {.lane = from % 2, .at = to});
    }
  }
  return builder.finish();
}

/// Every rank sums up its unit of all inputs.
inline Program reduce_scatter_program(int ranks) {
  Builder builder("scatter", test_contract(Collective::reducescatter, ranks, ranks));
  for (int r = 0; r < ranks; ++r) {
    std::vector<Slice> parts;
    for (int from = 0; from < ranks; ++from) parts.push_back(builder.input(from, r, 1));
    builder.combine(builder.output(r, 0, 1), parts);
  }
  return builder.finish();
}

/// Appends an op of no duration, for tests of order alone.
inline void add_marker(Program& program, PlaceId at, const std::vector<OpId>& dependencies,
                       double duration_s = 0) {
  Op op;
  op.kind = OpKind::compute;
  op.dst.begin = static_cast<std::uint32_t>(program.durations_s.size());
  program.durations_s.push_back(duration_s);
  op.at = at;
  op.dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
  op.dep_count = static_cast<std::uint32_t>(dependencies.size());
  program.dependencies.insert(program.dependencies.end(), dependencies.begin(), dependencies.end());
  program.ops.push_back(op);
}

}  // namespace espalier
