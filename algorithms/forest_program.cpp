// SPDX-License-Identifier: Apache-2.0
#include "algorithms/forest_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "algorithms/schedules.h"
#include "core/check.h"

namespace espalier {

ForestWriter::ForestWriter(Builder& builder, const Router& router, const Placement& placement)
    : builder_(builder),
      router_(router),
      placement_(placement),
      lanes_(placement.ranks.size() + placement.relays.size(), 0) {}

/// Nothing where the router takes that way anyway.
std::string ForestWriter::via(int from, int to, const std::vector<NodeId>& path) const {
  const NodeId start = site_node(placement_, from);
  const Route* usual = router_.route(start, site_node(placement_, to));
  if (usual == nullptr) return path_text(router_.topology(), path);
  std::vector<NodeId> usual_path;
  NodeId at = start;
  for (const Hop& hop : usual->hops) {
    const Link& link = router_.topology().link(hop.link);
    at = at == link.a ? link.b : link.a;
    usual_path.push_back(at);
  }
  usual_path.pop_back();
  return usual_path == path ? std::string() : path_text(router_.topology(), path);
}

int ForestWriter::new_lane(PlaceId place) { return lanes_[static_cast<std::size_t>(place)]++; }

void ForestWriter::send_down(const PlannedTree& tree, const Slices& held) {
  for (const TreeEdge& edge : tree.edges) {
    const std::string path = via(edge.parent, edge.child, edge.path);
    builder_.copy(held[edge.child], held[edge.parent],
                  {.lane = new_lane(edge.parent), .via = path});
  }
}

void ForestWriter::combine_up(const PlannedTree& tree, const Slices& own, const Slices& partial) {
  // By parent and way: children that come the same way are combined at once.
  std::vector<std::map<std::string, std::vector<int>>> children(own.size());
  for (const TreeEdge& edge : tree.edges) {
    std::vector<NodeId> path(edge.path.rbegin(), edge.path.rend());
    children[edge.parent][via(edge.child, edge.parent, path)].push_back(edge.child);
  }
  const auto combine = [&](int parent) {
    std::vector<Slice> combined;
    if (own[parent].length > 0) combined.push_back(own[parent]);
    for (const auto& [path, group] : children[parent]) {
      std::vector<Slice> sources = combined;
      for (const int child : group) {
        sources.push_back(children[child].empty() ? own[child] : partial[child]);
      }
      builder_.combine(partial[parent], sources,
                       {.lane = new_lane(parent), .at = partial[parent].place, .via = path});
      combined = {partial[parent]};
    }
  };
  // Edges stand parents first, so that backwards every child is done before its parent.
  std::vector<bool> is_done(own.size(), false);
  for (auto edge = tree.edges.rbegin(); edge != tree.edges.rend(); ++edge) {
    if (children[edge->child].empty() || is_done[edge->child]) continue;
    is_done[edge->child] = true;
    combine(edge->child);
  }
  if (!tree.edges.empty()) combine(tree.root);
}

int add_relays(Builder& builder, const BuildRequest& request, const Forest& forest) {
  const bool needed = std::ranges::any_of(
      forest.trees, [&](const PlannedTree& tree) { return tree.uses_relays(request.ranks); });
  const int relays = needed ? static_cast<int>(request.placement->relays.size()) : 0;
  for (int relay = 0; relay < relays; ++relay) builder.add_relay();
  return relays;
}

namespace {

/// Where each site keeps a tree's stretch of the message on the way.
class Layout {
 public:
  /// `block_units`: of a root's part of the message.
  Layout(const Builder& builder, std::int64_t block_units, int relays)
      : builder_(builder), block_units_(block_units), relays_(relays) {}

  /// `begin` counts from the start of the root's part of the message.
  ForestWriter::Slices held(const PlannedTree& tree, std::int64_t begin) const {
    ForestWriter::Slices slices;
    for (int rank = 0; rank < builder_.ranks(); ++rank) {
      slices.push_back(rank == tree.root
                           ? builder_.input(rank, begin, tree.weight)
                           : builder_.output(rank, in_message(tree, begin), tree.weight));
    }
    add_scratch(slices, tree, begin);
    return slices;
  }

  ForestWriter::Slices own(const PlannedTree& tree, std::int64_t begin) const {
    ForestWriter::Slices slices;
    for (int rank = 0; rank < builder_.ranks(); ++rank) {
      slices.push_back(builder_.input(rank, in_message(tree, begin), tree.weight));
    }
    slices.resize(slices.size() + static_cast<std::size_t>(relays_));
    return slices;
  }

  ForestWriter::Slices partial(const PlannedTree& tree, std::int64_t begin) const {
    ForestWriter::Slices slices;
    const std::int64_t at = in_message(tree, begin);
    for (int rank = 0; rank < builder_.ranks(); ++rank) {
      if (rank == tree.root) {
        slices.push_back(builder_.output(rank, begin, tree.weight));
      } else {
        // In place a rank's own copy is not needed again.
        slices.push_back(builder_.contract().in_place ? builder_.input(rank, at, tree.weight)
                                                      : builder_.tmp(rank, at, tree.weight));
      }
    }
    add_scratch(slices, tree, begin);
    return slices;
  }

 private:
  void add_scratch(ForestWriter::Slices& slices, const PlannedTree& tree,
                   std::int64_t begin) const {
    for (int relay = 0; relay < relays_; ++relay) {
      const PlaceId place = builder_.ranks() + relay;
      slices.push_back(builder_.tmp(place, in_message(tree, begin), tree.weight));
    }
  }

  std::int64_t in_message(const PlannedTree& tree, std::int64_t begin) const {
    return info(builder_.contract().collective).blocked ? tree.root * block_units_ + begin : begin;
  }

  const Builder& builder_;
  const std::int64_t block_units_;
  const int relays_;
};

}  // namespace

Program forest_program(std::string name, const BuildRequest& request, const Forest& forest,
                       const Strips& strips) {
  const CollectiveInfo& collective = info(request.collective);
  CHECK(forest.collective == request.collective);
  const std::int64_t units = strips.per_unit * forest.units;
  const std::int64_t block = collective.blocked ? units / request.ranks : units;
  Builder builder(std::move(name), request.contract(units));
  ForestWriter writer(builder, *request.router, *request.placement);
  const Layout layout(builder, block, add_relays(builder, request, forest));
  std::vector<std::int64_t> begin(static_cast<std::size_t>(request.ranks), 0);  // by root
  for_each_strip(forest, strips, [&](const PlannedTree& strip) {
    std::int64_t& at = begin[strip.root];
    if (collective.reduces) {
      writer.combine_up(strip, layout.own(strip, at), layout.partial(strip, at));
    } else {
      const ForestWriter::Slices held = layout.held(strip, at);
      writer.send_down(strip, held);
      // What a root has belongs into its result, too.
      const std::int64_t first = collective.blocked ? strip.root * block : 0;
      builder.copy(builder.output(strip.root, first + at, strip.weight), held[strip.root],
                   {.lane = writer.new_lane(strip.root)});
    }
    at += strip.weight;
  });
  return builder.finish();
}

Program allreduce_program(std::string name, const BuildRequest& request, const Forest& forest,
                          const Strips& strips) {
  CHECK(forest.collective == Collective::allreduce && request.collective == Collective::allreduce);
  Builder builder(std::move(name), request.contract(strips.per_unit * forest.units));
  ForestWriter writer(builder, *request.router, *request.placement);
  const int relays = add_relays(builder, request, forest);
  std::int64_t begin = 0;
  for_each_strip(forest, strips, [&](const PlannedTree& strip) {
    ForestWriter::Slices inputs, results;
    for (int rank = 0; rank < request.ranks; ++rank) {
      inputs.push_back(builder.input(rank, begin, strip.weight));
      results.push_back(builder.output(rank, begin, strip.weight));
    }
    for (int relay = 0; relay < relays; ++relay) {
      inputs.emplace_back();
      results.push_back(builder.tmp(request.ranks + relay, begin, strip.weight));
    }
    writer.combine_up(strip, inputs, results);
    writer.send_down(strip, results);
    begin += strip.weight;
  });
  return builder.finish();
}

}  // namespace espalier
