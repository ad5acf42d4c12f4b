// SPDX-License-Identifier: Apache-2.0
#include "sim/block_map.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/hash.h"

namespace espalier {
namespace {

std::uint64_t key_of(PlaceId place, std::uint16_t lane) {
  return mix64(static_cast<std::uint64_t>(place) << 16 | lane);
}

/// What an op of a block's load costs beside its units, as part of the units of a message: keeps
/// lanes of many small ops apart. Loads are counted in this part of a unit, so that sums of them
/// are exact and those of a program with smaller units are multiples of them: lanes that carry
/// alike then are alike.
constexpr double kPartsOfUnit = 0x1p20;

}  // namespace

struct BlockMap::Lane {
  std::uint16_t lane = 0;
  bool computes = false;
  double load = 0;
  PlaceId peer = -1;  ///< the other end of its first transfer
  int via = -1;
};

BlockMap::BlockMap(const Program& program, const OpGraph& graph, const Target& target,
                   const BlockUse& use)
    : use_(use), is_host_(static_cast<std::size_t>(program.places()), false) {
  const Profile& profile = target.router->profile();
  const int blocks = profile.blocks;
  has_blocks_ = blocks > 0;
  if (!has_blocks_) return;
  for (PlaceId place = 0; place < program.places(); ++place) {
    const bool is_host = place_number(program, place).kind == PlaceKind::host;
    is_host_[static_cast<std::size_t>(place)] = is_host;
    const int lanes = is_host ? 0 : static_cast<int>(graph.moving_lanes(place));
    const int in_use = lanes == 0 || !profile.splits_lanes ? std::min(lanes, blocks) : blocks;
    most_in_use_ = std::max(most_in_use_, in_use);
  }
  if (use.launched > 0) most_in_use_ = use.launched;
  if (use.one_per_lane) return;
  const int groups = groups_run(program, target.rotation);
  std::vector<std::map<std::uint16_t, Lane>> lanes(is_host_.size());
  for (const Op& op : program.ops) {
    if (is_host_[static_cast<std::size_t>(op.at)]) continue;
    const bool is_full = graph.moving_lanes(op.at) > static_cast<std::uint32_t>(blocks);
    if (!is_full && !profile.splits_lanes) continue;
    Lane& lane = lanes[static_cast<std::size_t>(op.at)][op.lane];
    lane.lane = op.lane;
    if (op.kind == OpKind::compute) lane.computes = true;
    if (op.kind != OpKind::combine) continue;
    int transfers = 0;  // all of them pass the lane's blocks: a sum from several peers, each part
    for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
      ++transfers;
      if (lane.peer >= 0) return;
      lane.peer = from == op.at ? to : from;
      lane.via = op.via;
    });
    lane.load += std::max(transfers, 1) * op.length * kPartsOfUnit +
                 static_cast<double>(program.contract.units);
  }
  for (PlaceId place = 0; place < program.places(); ++place) {
    std::vector<Lane> moving;
    auto number = static_cast<std::uint16_t>(blocks);
    const bool is_full = graph.moving_lanes(place) > static_cast<std::uint32_t>(blocks);
    for (const auto& [unused, lane] : lanes[static_cast<std::size_t>(place)]) {
      if (!lane.computes) {
        moving.push_back(lane);
      } else if (is_full) {
        sharing_lanes_.number(key_of(place, lane.lane));
        shared_.push_back({kNone, number++});
      }
    }
    if (moving.empty()) continue;
    if (static_cast<int>(moving.size()) > blocks) {
      share(place, std::move(moving), blocks);
    } else {
      split(program, groups, place, moving, blocks);
    }
  }
}

/// One block after the other to the lane whose blocks have most to do. The same in so many groups.
void BlockMap::split(const Program& program, int groups, PlaceId place,
                     const std::vector<Lane>& lanes, int blocks) {
  std::vector<std::size_t> widths(lanes.size(), 1);
  for (int left = blocks - static_cast<int>(lanes.size()); left > 0; --left) {
    std::size_t fullest = 0;
    for (std::size_t i = 1; i < lanes.size(); ++i) {
      const double load = lanes[i].load / static_cast<double>(widths[i]);
      if (load > lanes[fullest].load / static_cast<double>(widths[fullest])) fullest = i;
    }
    ++widths[fullest];
  }
  for (int group = 0; group < groups; ++group) {
    const Fold& fold = program.fold;
    const PlaceId there = groups == 1 ? place : fold.rank_moved(place, group);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const int lane = groups == 1 ? lanes[i].lane : fold.lane_moved(place, lanes[i].lane, group);
      split_lanes_.number(key_of(there, static_cast<std::uint16_t>(lane)));
      widths_.push_back(widths[i]);
    }
  }
}

std::size_t BlockMap::width(PlaceId place, std::uint16_t lane) const {
  if (!has_blocks_ || is_host_[static_cast<std::size_t>(place)]) return 0;
  if (widths_.empty()) return 1;
  const std::uint32_t found = split_lanes_.find(key_of(place, lane));
  return found == HashNumbers::kNone ? 1 : widths_[found];
}

void BlockMap::share(PlaceId place, std::vector<Lane> lanes, int blocks) {
  struct Way {
    std::vector<Lane> lanes;
    double load = 0;
    int blocks = 1;
  };
  // In the order of their lanes, which is the same in all groups of a folded program, as that of
  // peers is not.
  std::vector<Way> ways;
  std::map<std::pair<PlaceId, int>, std::size_t> by_peer;
  for (const Lane& lane : lanes) {
    const auto [known, is_new] = by_peer.try_emplace({lane.peer, lane.via}, ways.size());
    if (is_new) ways.emplace_back();
    Way& way = ways[known->second];
    way.lanes.push_back(lane);
    way.load += lane.load;
  }
  if (static_cast<int>(ways.size()) > blocks) {
    ways.assign(1, {std::move(lanes), 0, blocks});
  } else {
    for (int left = blocks - static_cast<int>(ways.size()); left > 0; --left) {
      Way* fullest = nullptr;
      for (Way& way : ways) {
        if (way.blocks == static_cast<int>(way.lanes.size())) continue;
        if (fullest == nullptr || way.load / way.blocks > fullest->load / fullest->blocks) {
          fullest = &way;
        }
      }
      if (fullest == nullptr) break;
      ++fullest->blocks;
    }
  }
  shared_at_.resize(is_host_.size());
  for (const Way& way : ways) shared_at_[static_cast<std::size_t>(place)] += way.blocks;
  std::uint16_t number = 0;
  for (Way& way : ways) {
    std::ranges::stable_sort(way.lanes, std::greater<>(), &Lane::load);
    std::vector<double> loads(static_cast<std::size_t>(way.blocks), 0);
    for (const Lane& lane : way.lanes) {
      const auto least = std::ranges::min_element(loads);
      *least += lane.load;
      const auto block = static_cast<std::uint16_t>(least - loads.begin());
      sharing_lanes_.number(key_of(place, lane.lane));
      shared_.push_back({shared_blocks_ + block, static_cast<std::uint16_t>(number + block)});
    }
    shared_blocks_ += static_cast<std::uint32_t>(way.blocks);
    number = static_cast<std::uint16_t>(number + way.blocks);
  }
}

std::uint32_t BlockMap::shared_block(PlaceId place, std::uint16_t lane) const {
  if (!shares()) return kNone;
  const std::uint32_t found = sharing_lanes_.find(key_of(place, lane));
  return found == HashNumbers::kNone ? kNone : shared_[found].block;
}

std::uint16_t BlockMap::lane_on_block(PlaceId place, std::uint16_t lane) const {
  if (!shares()) return lane;
  const std::uint32_t found = sharing_lanes_.find(key_of(place, lane));
  return found == HashNumbers::kNone ? lane : shared_[found].number;
}

}  // namespace espalier
