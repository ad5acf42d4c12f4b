// SPDX-License-Identifier: Apache-2.0
#include "sim/least_time.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/interruption.h"

namespace espalier {
namespace {

/// Sums in another order, amounts that are rounded and dates that are one instant make simulations
/// shorter than bounds by less than this part.
constexpr double kRounding = 1e-6;

/// Of the flow that takes longest alone: its start-up with hardly any bytes, and how long its bytes
/// take.
std::pair<double, double> longest_of(const OpFlows& flows, const FlowList& list,
                                     const FlowList& of_a_byte) {
  const bool is_same = of_a_byte.flows.size() == list.flows.size();
  std::pair<double, double> longest;
  for (std::size_t i = 0; i < list.flows.size(); ++i) {
    const FlowList::Flow& flow = list.flows[i];
    const double start_up_s =
        is_same ? std::clamp(of_a_byte.flows[i].latency_s, 0.0, std::max(flow.latency_s, 0.0)) : 0;
    const double flowing_s = flow.bytes / narrowest_bytes_per_s(flows, list, flow);
    if (start_up_s + flowing_s > longest.first + longest.second) longest = {start_up_s, flowing_s};
  }
  return longest;
}

}  // namespace

double busiest_link_s(const Program& program, MachineResources& machine, double message_bytes,
                      double enough_s) {
  const double bytes_per_unit = message_bytes / static_cast<double>(program.contract.units);
  std::vector<double> busy_s;  // by resource
  double most_s = 0;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    if (op.in_switch) continue;
    for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
      for (const ResourceId one : machine.path(from, to, op.via).resources) {
        if (one >= busy_s.size()) busy_s.resize(one + 1);
        busy_s[one] += op.length * bytes_per_unit / machine.bytes_per_s(one);
        if (machine.is_link(one)) most_s = std::max(most_s, busy_s[one]);
      }
    });
    if (most_s > enough_s * (1 + kRounding)) break;
  }
  return most_s / (1 + kRounding);
}

LeastOfPieces::LeastOfPieces(const Program& program, OpFlows& flows, OpFlows& of_a_byte,
                             const BlockMap& blocks, const MachineResources& machine,
                             double message_bytes, double enough_s) {
  std::vector<double> busy_s;                                                   // by resource
  std::map<std::tuple<PlaceId, std::uint16_t, std::uint32_t>, AlikeOps> alike;  // and by length
  const auto carry = [&](const FlowList& list) {
    for (const FlowList::Flow& flow : list.flows) {
      for (const ResourceId one : list.resources_of(flow)) {
        if (one >= busy_s.size()) busy_s.resize(one + 1);
        busy_s[one] += flow.bytes / flows.bytes_per_s(one);
        double& most_s = machine.is_link(one) ? links_s_ : all_s_;
        most_s = std::max(most_s, busy_s[one]);
      }
    }
  };
  const double bytes_per_unit = message_bytes / static_cast<double>(program.contract.units);
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    AlikeOps& ops = alike[{op.at, op.lane, op.length}];
    if (ops.bytes == 0) {
      const bool shares = blocks.shared_block(op.at, op.lane) != BlockMap::kNone;
      ops.place = op.at;
      ops.lane = op.lane;
      ops.shared_blocks = shares ? blocks.blocks_shared_at(op.at) : 0;
      ops.bytes = op.length * bytes_per_unit;
    }
    const auto take = [&](const FlowList& list, const FlowList& short_list) {
      carry(list);
      // Whichever flow takes longest, the op takes as long.
      const auto [start_up_s, flowing_s] = longest_of(flows, list, short_list);
      ops.start_ups_s += start_up_s;
      ops.flowing_s += flowing_s;
    };
    take(flows.begin(id), of_a_byte.begin(id));
    if (flows.reduces_separately(id)) take(flows.reduce(id), of_a_byte.reduce(id));
    if (links_s_ > enough_s * (1 + kRounding)) break;
  }
  links_s_ /= 1 + kRounding;
  all_s_ = std::max(all_s_ / (1 + kRounding), links_s_);
  for (const auto& [key, ops] : alike) ops_.push_back(ops);
}

double LeastOfPieces::of_chunks_s(std::int64_t chunk_bytes) const {
  double most_s = 0;
  double lane_s = 0;
  double sharing_s = 0;  // of all lanes of a place that share blocks
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const AlikeOps& ops = ops_[i];
    const bool is_new_place = i == 0 || ops.place != ops_[i - 1].place;
    if (is_new_place) sharing_s = 0;
    if (is_new_place || ops.lane != ops_[i - 1].lane) lane_s = 0;
    const double pieces =
        chunk_bytes > 0 ? std::max(1.0, ops.bytes / static_cast<double>(chunk_bytes)) : 1;
    const double ops_s = pieces * ops.start_ups_s + ops.flowing_s;
    lane_s += ops_s;
    most_s = std::max(most_s, lane_s);
    if (ops.shared_blocks == 0) continue;
    sharing_s += ops_s;
    most_s = std::max(most_s, sharing_s / ops.shared_blocks);
  }
  return std::max(all_s_, most_s / (1 + kRounding));
}

LeastTime::LeastTime(const Program& program, const BlockMap& blocks, const ShapeNumbers& numbers,
                     OpFlows& flows, double limit_s)
    : limit_s_(limit_s * (1 + kRounding)),
      numbers_(numbers),
      ops_(program.ops.size()),
      block_left_s_(blocks.shared_blocks()) {
  shapes_.reserve(numbers_.examples().size());
  for (const OpId id : numbers_.examples()) {
    const auto first = static_cast<std::uint32_t>(loads_.size());
    double lasts_s = take(flows, flows.begin(id));
    if (flows.reduces_separately(id)) lasts_s += take(flows, flows.reduce(id));
    const Op& op = program.ops[id];
    shapes_.push_back({lasts_s, first, static_cast<std::uint32_t>(loads_.size()) - first,
                       blocks.shared_block(op.at, op.lane)});
  }
  std::vector<std::size_t> ops_of(shapes_.size());
  for (OpId id = 0; id < ops_; ++id) ++ops_of[numbers_.of(id)];
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const auto ops = static_cast<double>(ops_of[i]);
    for (const Load& load : loads_of(shapes_[i])) left_s_[load.resource] += ops * load.busy_s;
    const std::uint32_t block = shapes_[i].block;
    if (block != BlockMap::kNone) block_left_s_[block] += ops * shapes_[i].lasts_s;
  }
}

bool LeastTime::is_too_slow() const {
  const auto is_more = [&](double left_s) { return left_s > limit_s_; };
  return std::ranges::any_of(left_s_, is_more) || std::ranges::any_of(block_left_s_, is_more);
}

/// Ops come after what they wait for. Where one of them does not, as in a file, whatever comes
/// before it is taken to wait for nothing else: the bound is lower.
void LeastTime::take(const OpGraph& graph) {
  tails_s_.resize(ops_);
  for (auto id = static_cast<OpId>(ops_); id-- > 0;) {
    double rest_s = 0;
    for (const OpId next : graph.successors(id)) rest_s = std::max(rest_s, tails_s_[next]);
    const OpId next = graph.next_in_lane(id);
    if (next != OpGraph::kNone) rest_s = std::max(rest_s, tails_s_[next]);
    tails_s_[id] = shape_of(id).lasts_s + rest_s;
  }
}

bool LeastTime::is_too_slow(OpId id, double now_s, double start_s) {
  bool is = start_s + tails_s_[id] > limit_s_;
  const Shape& shape = shape_of(id);
  if (shape.block != BlockMap::kNone) {
    double& left_s = block_left_s_[shape.block];
    is = is || start_s + left_s > limit_s_;
    left_s -= shape.lasts_s;
  }
  for (const Load& load : loads_of(shape)) {
    double& left_s = left_s_[load.resource];
    is = is || now_s + left_s > limit_s_;
    left_s -= load.busy_s;
  }
  return is;
}

double LeastTime::take(const OpFlows& flows, const FlowList& list) {
  for (const FlowList::Flow& flow : list.flows) {
    for (const ResourceId one : list.resources_of(flow)) {
      if (one >= left_s_.size()) left_s_.resize(one + 1);
      loads_.push_back({one, flow.bytes / flows.bytes_per_s(one)});
    }
  }
  return least_s(flows, list);
}

}  // namespace espalier
