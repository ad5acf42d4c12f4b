// SPDX-License-Identifier: Apache-2.0
#include "algorithms/forest_program.h"

#include <algorithm>
#include <utility>

#include "algorithms/schedules.h"
#include "core/check.h"
#include "ir/unfold.h"

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

void ForestWriter::send_down(std::span<const Laid> alike) {
  for (std::size_t step = 0; step < alike.front().tree.edges.size(); ++step) {
    for (const Laid& laid : alike) {
      const TreeEdge& edge = laid.tree.edges[step];
      if (!builder_.builds(edge.parent)) continue;
      const std::string path = via(edge.parent, edge.child, edge.path);
      builder_.copy(laid.held[edge.child], laid.held[edge.parent],
                    {.lane = new_lane(edge.parent), .via = path});
    }
  }
}

ForestWriter::Children ForestWriter::children_of(const PlannedTree& tree) const {
  Children children(lanes_.size());
  for (const TreeEdge& edge : tree.edges) {
    std::vector<NodeId> path(edge.path.rbegin(), edge.path.rend());
    std::vector<Way>& ways = children[edge.parent];
    std::string taken = via(edge.child, edge.parent, path);
    auto known = std::ranges::find(ways, taken, &Way::path);
    if (known == ways.end()) known = ways.insert(known, {std::move(taken), {}});
    known->children.push_back(edge.child);
  }
  return children;
}

/// Children that come the same way are combined at once.
void ForestWriter::combine(const Laid& laid, const Children& children, int parent) {
  if (!builder_.builds(parent)) return;
  const Slice& result = laid.held[parent];
  std::vector<Slice> combined;
  if (laid.own[parent].length > 0) combined.push_back(laid.own[parent]);
  for (const auto& [path, group] : children[parent]) {
    std::vector<Slice> sources = combined;
    for (const int child : group) {
      sources.push_back(children[child].empty() ? laid.own[child] : laid.held[child]);
    }
    builder_.combine(result, sources, {.lane = new_lane(parent), .at = result.place, .via = path});
    combined = {result};
  }
}

void ForestWriter::combine_up(std::span<const Laid> alike) {
  const std::vector<TreeEdge>& edges = alike.front().tree.edges;
  if (edges.empty()) return;
  std::vector<Children> children;
  for (const Laid& laid : alike) children.push_back(children_of(laid.tree));
  // Edges stand parents first, so that backwards every child is done before its parent.
  std::vector<bool> is_done(lanes_.size(), false);
  for (std::size_t step = edges.size(); step-- > 0;) {
    const int site = edges[step].child;
    if (children.front()[site].empty() || is_done[site]) continue;
    is_done[site] = true;
    for (std::size_t i = 0; i < alike.size(); ++i) {
      combine(alike[i], children[i], alike[i].tree.edges[step].child);
    }
  }
  for (std::size_t i = 0; i < alike.size(); ++i) {
    combine(alike[i], children[i], alike[i].tree.root);
  }
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

int groups_of_trees(const Forest& forest, int ranks) {
  const std::vector<PlannedTree>& trees = forest.trees;
  const auto has_relays = [&](const PlannedTree& tree) { return tree.uses_relays(ranks); };
  if (std::ranges::any_of(trees, has_relays)) return 1;
  for (int groups = ranks; groups > 1; --groups) {
    if (ranks % groups != 0 || trees.size() % static_cast<std::size_t>(groups) != 0) continue;
    const auto each = static_cast<std::ptrdiff_t>(trees.size()) / groups;
    const auto moved = [&](int rank) { return (rank + ranks / groups) % ranks; };
    const auto is_next = [&](const PlannedTree& next, const PlannedTree& tree) {
      const auto is_moved = [&](const TreeEdge& edge, const TreeEdge& of_tree) {
        return edge.parent == moved(of_tree.parent) && edge.child == moved(of_tree.child);
      };
      return next.root == moved(tree.root) && next.weight == tree.weight &&
             std::ranges::equal(next.edges, tree.edges, is_moved);
    };
    if (std::equal(trees.begin() + each, trees.end(), trees.begin(), is_next)) return groups;
  }
  return 1;
}

std::vector<Fold> folds_of_trees(const Contract& contract, const Forest& forest) {
  if (info(contract.collective).rooted) return {};
  return all_turned_by_blocks(contract, groups_of_trees(forest, contract.ranks));
}

Contract contract_of_trees(const BuildRequest& request, const Forest& forest,
                           const Strips& strips) {
  return request.contract(strips.per_unit * forest.units);
}

namespace {

/// Calls write(strips) for all strips of the first group's trees, each with those of the others
/// that are alike; lay(strip, group) says where one is.
template <typename Lay, typename Write>
void for_each_alike(const Forest& forest, int groups, const Strips& strips, Lay lay, Write write) {
  const std::size_t each = forest.trees.size() / static_cast<std::size_t>(groups);
  for_each_strip(forest, each, strips, [&](std::size_t first, std::int64_t weight) {
    std::vector<ForestWriter::Laid> alike;
    for (int group = 0; group < groups; ++group) {
      PlannedTree strip = forest.trees[first + static_cast<std::size_t>(group) * each];
      strip.weight = weight;
      alike.push_back(lay(std::move(strip), group));
    }
    write(alike);
  });
}

}  // namespace

Program forest_program(std::string name, const BuildRequest& request, const Forest& forest,
                       const Strips& strips) {
  const CollectiveInfo& collective = info(request.collective);
  CHECK(forest.collective == request.collective);
  const Contract contract = contract_of_trees(request, forest, strips);
  const std::int64_t block = collective.blocked ? contract.units / request.ranks : contract.units;
  Builder builder(std::move(name), contract, request.fold);
  ForestWriter writer(builder, *request.router, *request.placement);
  const Layout layout(builder, block, add_relays(builder, request, forest));
  const int groups = collective.blocked ? groups_of_trees(forest, request.ranks) : 1;
  std::vector<std::int64_t> begin(static_cast<std::size_t>(request.ranks), 0);  // by root
  const auto lay = [&](PlannedTree strip, int) {
    std::int64_t& at = begin[strip.root];
    ForestWriter::Laid laid;
    if (collective.reduces) laid.own = layout.own(strip, at);
    laid.held = collective.reduces ? layout.partial(strip, at) : layout.held(strip, at);
    at += strip.weight;
    laid.tree = std::move(strip);
    return laid;
  };
  for_each_alike(forest, groups, strips, lay, [&](std::span<const ForestWriter::Laid> alike) {
    if (collective.reduces) {
      writer.combine_up(alike);
      return;
    }
    writer.send_down(alike);
    // What a root has belongs into its result, too.
    for (const auto& [strip, own, held] : alike) {
      const int root = strip.root;
      if (!builder.builds(root)) continue;
      const std::int64_t at = (collective.blocked ? root * block : 0) + begin[root] - strip.weight;
      builder.copy(builder.output(root, at, strip.weight), held[root],
                   {.lane = writer.new_lane(root)});
    }
  });
  return builder.finish();
}

Program allreduce_program(std::string name, const BuildRequest& request, const Forest& forest,
                          const Strips& strips) {
  CHECK(forest.collective == Collective::allreduce && request.collective == Collective::allreduce);
  Builder builder(std::move(name), contract_of_trees(request, forest, strips), request.fold);
  ForestWriter writer(builder, *request.router, *request.placement);
  const int relays = add_relays(builder, request, forest);
  const int groups = groups_of_trees(forest, request.ranks);
  std::vector<std::int64_t> begin;  // by group
  for (int group = 0; group < groups; ++group) {
    begin.push_back(builder.contract().units / groups * group);
  }
  const auto lay = [&](PlannedTree strip, int group) {
    std::int64_t& at = begin[static_cast<std::size_t>(group)];
    ForestWriter::Laid laid;
    for (int rank = 0; rank < request.ranks; ++rank) {
      laid.own.push_back(builder.input(rank, at, strip.weight));
      laid.held.push_back(builder.output(rank, at, strip.weight));
    }
    for (int relay = 0; relay < relays; ++relay) {
      laid.own.emplace_back();
      laid.held.push_back(builder.tmp(request.ranks + relay, at, strip.weight));
    }
    at += strip.weight;
    laid.tree = std::move(strip);
    return laid;
  };
  for_each_alike(forest, groups, strips, lay, [&](std::span<const ForestWriter::Laid> alike) {
    writer.combine_up(alike);
    writer.send_down(alike);
  });
  return builder.finish();
}

}  // namespace espalier
