// SPDX-License-Identifier: Apache-2.0
#include "algorithms/path_program.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/schedules.h"
#include "core/check.h"

namespace espalier {
namespace {

/// Scratch of the sites, in stretches that lie within a block as they do in the message.
class Scratch {
 public:
  Scratch(Builder& builder, int sites)
      : builder_(builder),
        block_(block_units(builder.contract())),
        taken_(static_cast<std::size_t>(sites)) {}

  /// `begin`: from the start of the block.
  Slice take(int site, std::int64_t begin, std::int64_t length) {
    std::vector<std::vector<bool>>& blocks = taken_[static_cast<std::size_t>(site)];
    for (std::size_t i = 0;; ++i) {
      if (i == blocks.size()) blocks.emplace_back(static_cast<std::size_t>(block_), false);
      const auto first = blocks[i].begin() + begin;
      if (std::find(first, first + length, true) != first + length) continue;
      std::fill(first, first + length, true);
      return builder_.tmp(site, static_cast<std::int64_t>(i) * block_ + begin, length);
    }
  }

 private:
  Builder& builder_;
  const std::int64_t block_;
  std::vector<std::vector<std::vector<bool>>> taken_;  ///< by site, block, unit
};

/// A path from sender to receiver: a gather's stand the other way.
PlannedTree sender_first(const PlannedTree& path, Collective collective) {
  if (collective != Collective::gather) return path;
  PlannedTree turned{path.edges.back().child, path.weight, {}};
  for (auto edge = path.edges.rbegin(); edge != path.edges.rend(); ++edge) {
    turned.edges.push_back({edge->child, edge->parent, {edge->path.rbegin(), edge->path.rend()}});
  }
  return turned;
}

class PathWriter {
 public:
  PathWriter(Builder& builder, const BuildRequest& request, int relays)
      : builder_(builder),
        writer_(builder, *request.router, *request.placement),
        sites_(request.ranks + relays),
        scratch_(builder, sites_),
        block_(block_units(builder.contract())) {}

  /// To be called for all strips before any is sent.
  void place(PlannedTree strip) {
    const int from = strip.root;
    const int to = strip.edges.back().child;
    std::int64_t& at = next_[{from, to}];
    ForestWriter::Slices held(static_cast<std::size_t>(sites_));
    Slice& sent = held[static_cast<std::size_t>(from)];
    sent = source(from, to, at, strip.weight);
    if (overwrites_input()) {
      const Slice saved = scratch_.take(from, at, strip.weight);
      builder_.copy(saved, sent, {.lane = writer_.new_lane(from)});
      sent = saved;
    }
    for (const TreeEdge& edge : strip.edges) {
      held[static_cast<std::size_t>(edge.child)] =
          edge.child == to ? result(from, to, at, strip.weight)
                           : scratch_.take(edge.child, at, strip.weight);
    }
    longest_ = std::max(longest_, strip.weight);
    at += strip.weight;
    placed_.push_back({std::move(strip), {}, std::move(held)});
  }

  void send() {
    for (const ForestWriter::Laid& strip : placed_) writer_.send_down(strip);
  }

  /// Ranks that have a part of their own result keep it, in pieces as long as the longest strip.
  void keep_own_blocks() {
    const Contract& contract = builder_.contract();
    if (contract.collective == Collective::sendrecv) return;
    for (int rank = 0; rank < contract.ranks; ++rank) {
      if (info(contract.collective).rooted && rank != contract.root) continue;
      const int lane = writer_.new_lane(rank);
      for (std::int64_t at = 0; at < block_; at += longest_) {
        const std::int64_t length = std::min(longest_, block_ - at);
        builder_.copy(result(rank, rank, at, length), source(rank, rank, at, length),
                      {.lane = lane});
      }
    }
  }

 private:
  /// Units of the block that goes from a rank to another, where the sender has them.
  Slice source(int from, int to, std::int64_t begin, std::int64_t length) const {
    const Collective collective = builder_.contract().collective;
    const bool has_many = collective == Collective::scatter || collective == Collective::alltoall;
    return builder_.input(from, (has_many ? to * block_ : 0) + begin, length);
  }

  /// The same units where the receiver needs them.
  Slice result(int from, int to, std::int64_t begin, std::int64_t length) const {
    const Collective collective = builder_.contract().collective;
    const bool has_many = collective == Collective::gather || collective == Collective::alltoall;
    return builder_.output(to, (has_many ? from * block_ : 0) + begin, length);
  }

  /// In place, results of others come where the inputs are.
  bool overwrites_input() const {
    const Contract& contract = builder_.contract();
    return contract.in_place && (contract.collective == Collective::alltoall ||
                                 contract.collective == Collective::sendrecv);
  }

  Builder& builder_;
  ForestWriter writer_;
  const int sites_;
  Scratch scratch_;
  const std::int64_t block_;
  std::int64_t longest_ = 1;
  std::map<std::pair<int, int>, std::int64_t> next_;  ///< unit of the block, by pair
  std::vector<ForestWriter::Laid> placed_;
};

}  // namespace

Program path_program(std::string name, const BuildRequest& request, const Forest& forest,
                     const Strips& strips) {
  CHECK(forest.collective == request.collective && has_paths(forest.collective));
  Builder builder(std::move(name), contract_of_trees(request, forest, strips));
  PathWriter writer(builder, request, add_relays(builder, request, forest));
  for_each_strip(forest, strips, [&](const PlannedTree& strip) {
    writer.place(sender_first(strip, forest.collective));
  });
  writer.send();
  writer.keep_own_blocks();
  return builder.finish();
}

}  // namespace espalier
