// SPDX-License-Identifier: Apache-2.0
#include "ir/op_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "core/check.h"
#include "core/interruption.h"
#include "ir/lane_numbers.h"

namespace espalier {
namespace {

constexpr OpId kNone = LaneChains::kNone;

/// Calls body(OpId) for every op that `op` waits for.
template <class Body>
void for_each_predecessor(const Program& program, const LaneChains& lanes, OpId op, Body&& body) {
  for (const OpId earlier : program.dependencies_of(program.ops[op])) body(earlier);
  if (lanes.previous[op] != kNone) body(lanes.previous[op]);
}

bool points_back_only(const Program& program) {
  for (OpId op = 0; op < program.ops.size(); ++op) {
    for (const OpId earlier : program.dependencies_of(program.ops[op])) {
      if (earlier >= op) return false;
    }
  }
  return true;
}

/// Kahn's algorithm with a heap of the ops that can run.
std::vector<OpId> sort_topologically(const Program& program, const LaneChains& lanes) {
  const std::size_t count = program.ops.size();
  std::vector<std::uint32_t> waiting(count, 0);
  std::vector<std::uint64_t> begin(count + 1, 0);  // successors of op i: [begin[i], begin[i + 1])
  for (OpId op = 0; op < count; ++op) {
    for_each_predecessor(program, lanes, op, [&](OpId earlier) {
      ++waiting[op];
      ++begin[earlier + 1];
    });
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<OpId> successors(begin.back());
  std::vector<std::uint64_t> next(begin.begin(), begin.end() - 1);
  for (OpId op = 0; op < count; ++op) {
    for_each_predecessor(program, lanes, op,
                         [&](OpId earlier) { successors[next[earlier]++] = op; });
  }

  std::priority_queue<OpId, std::vector<OpId>, std::greater<>> ready;
  for (OpId op = 0; op < count; ++op) {
    if (waiting[op] == 0) ready.push(op);
  }
  std::vector<OpId> order;
  order.reserve(count);
  while (!ready.empty()) {
    check_interruption_at(order.size());
    const OpId op = ready.top();
    ready.pop();
    order.push_back(op);
    for (std::uint64_t i = begin[op]; i < begin[op + 1]; ++i) {
      if (--waiting[successors[i]] == 0) ready.push(successors[i]);
    }
  }
  return order;
}

}  // namespace

LaneChains lane_chains(const Program& program) {
  const std::size_t count = program.ops.size();
  LaneChains lanes;
  lanes.chain.resize(count);
  lanes.position.resize(count);
  lanes.previous.resize(count);
  LaneNumbers numbers;
  std::vector<OpId> last;             // by chain
  std::vector<std::uint32_t> length;  // by chain
  for (OpId i = 0; i < count; ++i) {
    const Op& op = program.ops[i];
    const std::uint32_t chain = numbers.number(op.at, op.lane);
    if (chain == last.size()) {
      last.push_back(kNone);
      length.push_back(0);
    }
    lanes.chain[i] = chain;
    lanes.position[i] = length[chain]++;
    lanes.previous[i] = std::exchange(last[chain], i);
  }
  lanes.count = static_cast<std::uint32_t>(last.size());
  return lanes;
}

std::vector<OpId> run_order(const Program& program, const LaneChains& lanes) {
  if (!points_back_only(program)) return sort_topologically(program, lanes);
  std::vector<OpId> order(program.ops.size());
  std::iota(order.begin(), order.end(), OpId{0});
  return order;
}

std::vector<OpId> find_cycle(const Program& program, const LaneChains& lanes,
                             const std::vector<OpId>& order) {
  const std::size_t count = program.ops.size();
  if (order.size() == count) return {};
  std::vector<bool> stuck(count, true);
  for (const OpId op : order) stuck[op] = false;

  // Every stuck op waits for a stuck op: walking on must come back to an op of a cycle.
  auto op = static_cast<OpId>(std::find(stuck.begin(), stuck.end(), true) - stuck.begin());
  std::vector<bool> seen(count, false);
  while (!seen[op]) {
    seen[op] = true;
    OpId next = kNone;
    for_each_predecessor(program, lanes, op, [&](OpId earlier) {
      if (stuck[earlier] && next == kNone) next = earlier;
    });
    CHECK(next != kNone);
    op = next;
  }

  // The shortest cycle through it, breadth first.
  const OpId start = op;
  std::vector<OpId> reached_from(count, kNone);
  std::queue<OpId> queue({start});
  OpId last = kNone;
  while (last == kNone) {
    CHECK(!queue.empty());
    const OpId at = queue.front();
    queue.pop();
    for_each_predecessor(program, lanes, at, [&](OpId earlier) {
      if (!stuck[earlier] || last != kNone) return;
      if (earlier == start) {
        last = at;
      } else if (reached_from[earlier] == kNone) {
        reached_from[earlier] = at;
        queue.push(earlier);
      }
    });
  }
  std::vector<OpId> cycle;
  for (OpId at = last; at != start; at = reached_from[at]) cycle.push_back(at);
  cycle.push_back(start);
  std::reverse(cycle.begin(), cycle.end());
  // Told from its lowest op on.
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

bool conflict(const Program& program, const Op& a, const Op& b) {
  if (a.kind != OpKind::combine || b.kind != OpKind::combine) return false;
  const auto meet = [&](const Operand& of_a, const Operand& of_b) {
    return overlap(slice(in_first_group(program.fold, of_a, a.length), a.length),
                   slice(in_first_group(program.fold, of_b, b.length), b.length));
  };
  bool found = false;
  for_each_destination(program, a, [&](const Operand& written) {
    for_each_destination(program, b,
                         [&](const Operand& other) { found = found || meet(written, other); });
    for (const Operand& read : program.sources_of(b)) found = found || meet(written, read);
  });
  for_each_destination(program, b, [&](const Operand& written) {
    for (const Operand& read : program.sources_of(a)) found = found || meet(read, written);
  });
  return found;
}

std::string describe_cycle(const Program& program, const LaneChains& lanes,
                           const std::vector<OpId>& cycle) {
  constexpr std::size_t kMaxNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (cycle.size() > kMaxNamed && i + 1 == kMaxNamed) {
      return text + fmt::format(", and so on over {} more ops back to op {}",
                                cycle.size() - kMaxNamed + 1, cycle.front());
    }
    const Op& op = program.ops[cycle[i]];
    const OpId next = cycle[(i + 1) % cycle.size()];
    const auto dependencies = program.dependencies_of(op);
    const bool by_lane =
        std::find(dependencies.begin(), dependencies.end(), next) == dependencies.end();
    CHECK(!by_lane || lanes.previous[cycle[i]] == next);
    text += fmt::format("{}op {} waits for op {}", i == 0 ? "" : ", ", cycle[i], next);
    if (by_lane) text += fmt::format(" (before it on lane {})", op.lane);
  }
  return text;
}

}  // namespace espalier
