// SPDX-License-Identifier: Apache-2.0
#include "sim/least_time.h"

#include <algorithm>
#include <limits>

namespace espalier {
namespace {

/// Sums in another order, amounts that are rounded and dates that are one instant make simulations
/// shorter than bounds by less than this part.
constexpr double kRounding = 1e-6;

}  // namespace

LeastTime::LeastTime(const Program& program, const OpGraph& graph, OpFlows& flows, double limit_s)
    : limit_s_(limit_s * (1 + kRounding)), flows_(flows), tails_s_(program.ops.size()) {
  // Ops come after what they wait for. Where one of them does not, as in a file, whatever comes
  // before it is taken to wait for nothing else: the bound is lower.
  for (OpId id = static_cast<OpId>(program.ops.size()); id-- > 0;) {
    double rest_s = 0;
    for (const OpId next : graph.successors(id)) rest_s = std::max(rest_s, tails_s_[next]);
    const OpId next = graph.next_in_lane(id);
    if (next != OpGraph::kNone) rest_s = std::max(rest_s, tails_s_[next]);
    const double reduced_s = flows_.reduces_separately(id) ? least_s(flows_.reduce(id)) : 0;
    tails_s_[id] = least_s(flows_.begin(id)) + reduced_s + rest_s;
    for_each_load(id, [&](double& left_s, double busy_s) { left_s += busy_s; });
  }
}

bool LeastTime::is_too_slow(OpId id, double now_s, double start_s) {
  bool is = start_s + tails_s_[id] > limit_s_;
  for_each_load(id, [&](double& left_s, double busy_s) {
    is = is || now_s + left_s > limit_s_;
    left_s -= busy_s;
  });
  return is;
}

double LeastTime::least_s(const FlowList& list) const {
  double least_s = 0;
  for (const FlowList::Flow& flow : list.flows) {
    double bytes_per_s = flow.alone == kNoResource ? std::numeric_limits<double>::infinity()
                                                   : flows_.bytes_per_s(flow.alone);
    for (const ResourceId one : list.resources_of(flow)) {
      bytes_per_s = std::min(bytes_per_s, flows_.bytes_per_s(one));
    }
    least_s = std::max(least_s, std::max(flow.latency_s, 0.0) + flow.bytes / bytes_per_s);
  }
  return least_s;
}

/// Calls `visit(left_s, busy_s)` for all that the flows of an op use, as often as they do.
template <class Visit>
void LeastTime::for_each_load(OpId id, Visit&& visit) {
  const auto visit_all = [&](const FlowList& list) {
    for (const FlowList::Flow& flow : list.flows) {
      for (const ResourceId one : list.resources_of(flow)) {
        if (one >= left_s_.size()) left_s_.resize(one + 1);
        visit(left_s_[one], flow.bytes / flows_.bytes_per_s(one));
      }
    }
  };
  visit_all(flows_.begin(id));
  if (flows_.reduces_separately(id)) visit_all(flows_.reduce(id));
}

}  // namespace espalier
