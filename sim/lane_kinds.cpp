// SPDX-License-Identifier: Apache-2.0
#include "sim/lane_kinds.h"

#include <algorithm>
#include <bit>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/interruption.h"
#include "ir/lane_numbers.h"

namespace espalier {
namespace {

using Hash = std::uint64_t;

/// To find kinds and to do without the other lanes takes a part of the time of a simulation.
constexpr double kWorthwhile = 0.75;
/// Kinds are not looked for any longer: what is alike is found at once, or lies far apart.
constexpr int kMostRounds = 64;

enum class Why : Hash { waits = 1, takes_out, uses, is_used, shares };

Hash bits(double value) { return std::bit_cast<Hash>(value); }
Hash salted(Hash hash, Why why) { return mix64(hash ^ static_cast<Hash>(why) << 56); }

/// Numbers for colours, in the order in which they come.
std::vector<std::uint32_t> numbered(const std::vector<Hash>& colours) {
  HashNumbers numbers;
  std::vector<std::uint32_t> all;
  all.reserve(colours.size());
  for (const Hash colour : colours) all.push_back(numbers.number(colour));
  return all;
}

std::size_t count(const std::vector<Hash>& colours) {
  HashNumbers numbers;
  for (const Hash colour : colours) numbers.number(colour);
  return numbers.size();
}

}  // namespace

/// Sums of what ties two together.
class LaneKinds::Ties {
 public:
  void add(std::uint32_t lane, std::uint32_t other, Hash how) {
    const std::uint32_t number = numbers_.number(mix64(Hash{lane} << 32 | other));
    if (number == all_.size()) all_.push_back({lane, other, 0});
    all_[number].how += how;
  }
  std::vector<Tie> take() { return std::move(all_); }

 private:
  HashNumbers numbers_;
  std::vector<Tie> all_;
};

LaneKinds::LaneKinds(const Ops& ops, const MachineResources& machine) {
  look_at_ops(ops);
  are_few_ = refine(machine);
  if (!are_few_) return;
  kind_of_lane_ = numbered(lane_colours_);
  kind_of_resource_ = numbered(resource_colours_);
}

void LaneKinds::look_at_ops(const Ops& ops) {
  const Program& program = ops.program;
  const ShapeNumbers& shapes = ops.shapes.numbers();
  constexpr std::uint32_t kNew = ~std::uint32_t{0};
  std::vector<std::uint32_t> number_on_lane(shapes.examples().size(), kNew);  // by shape
  LaneNumbers numbers;
  Ties uses;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    const std::uint32_t lane = numbers.number(op.at, op.lane);
    if (lane == lanes_.size()) {
      lanes_.push_back({op.at, op.lane, ops.blocks.shared_block(op.at, op.lane)});
      lane_colours_.push_back(mix64(ops.blocks.width(op.at, op.lane)));
    }
    Hash& colour = lane_colours_[lane];
    std::uint32_t& shape = number_on_lane[shapes.of(id)];
    if (shape == kNew) {
      shape = lanes_[lane].shapes++;
      colour = mix64(colour ^ look_at_shape(ops, id, lane, shape, uses));
    }
    colour = mix64(colour + shape);
    lane_.push_back(lane);
    index_.push_back(lanes_[lane].ops++);
  }
  uses_ = uses.take();
  Ties waits;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const auto pair = [&](OpId one, OpId other) { return Hash{index_[one]} << 32 | index_[other]; };
    ops.awaited.for_each(id, [&](const Awaited& awaited) {
      const Hash how = salted(pair(id, awaited.op), Why::waits);
      waits.add(lane_[id], lane_[awaited.op], mix64(how + static_cast<Hash>(awaited.what)));
    });
    // Who reads what an op has sent gives its steps back.
    ops.sent.for_each_read(id, [&](OpId sent) {
      waits.add(lane_[sent], lane_[id], salted(pair(sent, id), Why::takes_out));
    });
  }
  waits_ = waits.take();
  sharing_.resize(ops.blocks.shared_blocks());
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].block != BlockMap::kNone) sharing_[lanes_[lane].block].push_back(lane);
  }
  for (auto& lanes : sharing_) {
    std::ranges::sort(lanes, {}, [&](std::uint32_t lane) { return lanes_[lane].number; });
  }
}

/// What the ops of a shape cost, which is number so much on their lane.
std::uint64_t LaneKinds::look_at_shape(const Ops& ops, OpId id, std::uint32_t lane,
                                       std::uint32_t number, Ties& uses) {
  const Op& op = ops.program.ops[id];
  const Hash features = Hash{op.length} << 8 | Hash{is_sent(op)} << 4 | Hash{op.in_switch} << 3 |
                        static_cast<Hash>(op.kind);
  Hash hash = mix64(mix64(features) ^ ops.costs[ops.shapes.numbers().of(id)]);
  const auto take = [&](const FlowList& list) {
    for (const FlowList::Flow& flow : list.flows) {
      const double alone = flow.alone == kNoResource ? 0 : ops.shapes.bytes_per_s(flow.alone);
      hash = mix64(hash ^ bits(alone));
      for (const ResourceId one : list.resources_of(flow)) {
        if (one >= resource_colours_.size()) resource_colours_.resize(one + 1);
        resource_colours_[one] = bits(ops.shapes.bytes_per_s(one));
        uses.add(lane, one, salted(hash ^ number, Why::uses));
      }
    }
  };
  take(ops.shapes.begin(id));
  if (ops.shapes.reduces_separately(id)) take(ops.shapes.reduce(id));
  return hash;
}

bool LaneKinds::are_orderly(const Program& program, const BlockMap& blocks, OpShapes& shapes,
                            const Profile& profile) {
  HashNumbers fifos;
  std::vector<OpId> first;  // by FIFO
  for (const OpId id : shapes.numbers().examples()) {
    const Op& op = program.ops[id];
    const bool shares = blocks.shared_block(op.at, op.lane) != BlockMap::kNone;
    if (shares && !(least_s(shapes, shapes.begin(id)) > 0)) return false;
    if (profile.fifo_steps == 0 || !is_sent(op)) continue;
    const Hash block = blocks.lane_on_block(op.at, op.lane);
    const Hash ends =
        Hash{static_cast<std::uint32_t>(op.at)} << 32 | static_cast<std::uint32_t>(op.dst.place);
    const std::uint32_t fifo = fifos.number(mix64(mix64(ends) ^ block));
    if (fifo == first.size()) first.push_back(id);
    if (program.ops[first[fifo]].lane != op.lane) return false;
  }
  return true;
}

/// False: too few are alike.
bool LaneKinds::refine(const MachineResources& machine) {
  for (ResourceId id = 0; id < resource_colours_.size(); ++id) {
    resource_colours_[id] = mix64(resource_colours_[id] + (machine.is_link(id) ? 1 : 0));
  }
  std::size_t known = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    check_interruption();
    if (!is_worthwhile()) return false;
    const std::size_t kinds = count(lane_colours_) + count(resource_colours_);
    if (kinds == known) return true;
    known = kinds;
    refine_once();
  }
  return false;
}

void LaneKinds::refine_once() {
  std::vector<Hash> lanes = lane_colours_;
  std::vector<Hash> resources = resource_colours_;
  for (const Tie& tie : waits_) {
    lanes[tie.lane] += mix64(tie.how ^ mix64(lane_colours_[tie.other]));
  }
  for (const Tie& tie : uses_) {
    lanes[tie.lane] += salted(tie.how ^ resource_colours_[tie.other], Why::uses);
    resources[tie.other] += salted(tie.how ^ lane_colours_[tie.lane], Why::is_used);
  }
  for (const auto& sharing : sharing_) {
    Hash block = 0;
    for (const std::uint32_t lane : sharing) block = mix64(block ^ lane_colours_[lane]);
    for (std::size_t i = 0; i < sharing.size(); ++i) {
      lanes[sharing[i]] += salted(block + i, Why::shares);
    }
  }
  for (Hash& colour : lanes) colour = mix64(colour);
  for (Hash& colour : resources) colour = mix64(colour);
  lane_colours_ = std::move(lanes);
  resource_colours_ = std::move(resources);
}

bool LaneKinds::is_worthwhile() const {
  HashNumbers kinds;
  std::size_t ops = 0;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const std::uint32_t known = kinds.size();
    if (kinds.number(lane_colours_[lane]) == known) ops += lanes_[lane].ops;
  }
  return static_cast<double>(ops) <= kWorthwhile * static_cast<double>(lane_.size());
}

}  // namespace espalier
