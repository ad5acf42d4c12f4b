// SPDX-License-Identifier: Apache-2.0
// Blink's protocols: "Blink: a fast NVLink-based collective communication library", SysML 2018.
// GPUs fall into one or two groups within which all are joined. Allreduce: within each group every
// GPU combines its part of the message ("internal broadcast" as a reduce-scatter); GPUs with a link
// between the groups exchange their parts, combine both and forward the result within their groups
// ("cross-group forwarding"), all of it piece by piece at the same time. Broadcast, allgather and
// gather likewise; reduce and reducescatter are broadcast and allgather backwards.
// planner/blink/blink_trees.h says which ways data may take, planner/blink_plan.h how the message
// is divided among them.
#include <algorithm>

#include "algorithms/algorithm.h"
#include "planner/blink_plan.h"

namespace espalier {

namespace {

/// A stretch of the message and where each rank keeps it, by rank.
using Slices = std::vector<Slice>;

Slice& at(Slices& slices, int rank) { return slices[static_cast<std::size_t>(rank)]; }
const Slice& at(const Slices& slices, int rank) { return slices[static_cast<std::size_t>(rank)]; }

/// Gives every transfer a lane of its own, so that trees that share a link move side by side.
class Lanes {
 public:
  explicit Lanes(int ranks) : next_(static_cast<std::size_t>(ranks), 0) {}
  int next(int rank) { return next_[static_cast<std::size_t>(rank)]++; }

 private:
  std::vector<int> next_;
};

/// From `held[root]` to `held` of everybody else in the tree.
void send_down(Builder& builder, Lanes& lanes, const PlannedTree& tree, const Slices& held) {
  for (const TreeEdge& edge : tree.edges) {
    builder.copy(at(held, edge.child), at(held, edge.parent), {.lane = lanes.next(edge.parent)});
  }
}

/// Every rank combines its own data with what its children have combined, in `partial`; a rank
/// without children passes on its own.
void combine_up(Builder& builder, Lanes& lanes, const PlannedTree& tree, const Slices& own,
                const Slices& partial) {
  std::vector<std::vector<Slice>> sources(own.size());
  std::vector<int> parents;  // each before those below it
  for (const TreeEdge& edge : tree.edges) {
    std::vector<Slice>& combined = sources[static_cast<std::size_t>(edge.parent)];
    if (!combined.empty()) continue;
    parents.push_back(edge.parent);
    combined.push_back(at(own, edge.parent));
  }
  for (const TreeEdge& edge : tree.edges) {
    const bool combines = !sources[static_cast<std::size_t>(edge.child)].empty();
    sources[static_cast<std::size_t>(edge.parent)].push_back(
        at(combines ? partial : own, edge.child));
  }
  for (auto parent = parents.rbegin(); parent != parents.rend(); ++parent) {
    builder.combine(at(partial, *parent), sources[static_cast<std::size_t>(*parent)],
                    {.lane = lanes.next(*parent)});
  }
}

/// The tree without what hangs below `top`, or that part alone.
PlannedTree part_of(const PlannedTree& tree, int top, bool below) {
  std::vector<int> inside = {top};
  PlannedTree part{below ? top : tree.root, tree.weight, {}};
  for (const TreeEdge& edge : tree.edges) {  // parents first
    const auto is_inside = [&](int rank) {
      return std::find(inside.begin(), inside.end(), rank) != inside.end();
    };
    const bool hangs_below = is_inside(edge.parent);
    if (hangs_below) inside.push_back(edge.child);
    if (below ? hangs_below : !hangs_below && edge.child != top) part.edges.push_back(edge);
  }
  return part;
}

/// Combines a group's inputs at the root of its part of a tree. Gives where the result is: in
/// scratch, because it is still read when the root writes its output.
Slice group_result(Builder& builder, Lanes& lanes, const PlannedTree& group, const Slices& own,
                   Slices partial) {
  const Slice& input = at(own, group.root);
  if (group.edges.empty() && !builder.contract().in_place) return input;
  Slice& result = at(partial, group.root);
  result = builder.tmp(group.root, input.begin, input.length);
  if (group.edges.empty()) {
    builder.copy(result, input, {.lane = lanes.next(group.root)});
  } else {
    combine_up(builder, lanes, group, own, partial);
  }
  return result;
}

/// Each group combines for itself; the two ends of the link between exchange and add up the results
/// at the same time, in the same order, so that they agree to the last bit.
void exchange(Builder& builder, Lanes& lanes, const PlannedTree& tree, const Slices& own,
              const Slices& result) {
  const PlannedTree groups[] = {part_of(tree, tree.partner, false),
                                part_of(tree, tree.partner, true)};
  std::vector<Slice> results;
  for (const PlannedTree& group : groups) {
    results.push_back(group_result(builder, lanes, group, own, result));
  }
  for (const PlannedTree& group : groups) {
    builder.combine(at(result, group.root), results, {.lane = lanes.next(group.root)});
  }
  for (const PlannedTree& group : groups) send_down(builder, lanes, group, result);
}

/// A tree's stretch of the message. It begins at unit `begin` of the root's part of the message, at
/// unit `in_message` of the whole: both are the same unless every rank has a block of its own.
struct Stretch {
  const PlannedTree& tree;
  std::int64_t begin;
  std::int64_t in_message;
};

void add_tree(Builder& builder, Lanes& lanes, const Stretch& stretch) {
  const auto& [tree, begin, in_message] = stretch;
  const Contract& contract = builder.contract();
  const bool reduces = info(contract.collective).reduces;
  Slices own, result, partial;
  for (int rank = 0; rank < builder.ranks(); ++rank) {
    const bool is_root = rank == tree.root;
    if (reduces || is_root) {
      own.push_back(builder.input(rank, reduces ? in_message : begin, tree.weight));
    } else {
      own.push_back(builder.output(rank, in_message, tree.weight));
    }
    if (contract.collective == Collective::allreduce || is_root) {
      partial.push_back(builder.output(rank, begin, tree.weight));
    } else if (reduces) {  // in place a rank's own data is not needed again
      partial.push_back(contract.in_place ? builder.input(rank, in_message, tree.weight)
                                          : builder.tmp(rank, in_message, tree.weight));
    }
  }
  if (!reduces) {
    send_down(builder, lanes, tree, own);
  } else if (tree.partner >= 0) {
    exchange(builder, lanes, tree, own, partial);
  } else {
    combine_up(builder, lanes, tree, own, partial);
    if (contract.collective == Collective::allreduce) send_down(builder, lanes, tree, partial);
  }
}

/// Gather: along a path, which stands from the root to the owner of the data.
void add_path(Builder& builder, Lanes& lanes, const Stretch& stretch) {
  const PlannedTree& path = stretch.tree;
  Slice held = builder.input(path.edges.back().child, stretch.begin, path.weight);
  for (auto edge = path.edges.rbegin(); edge != path.edges.rend(); ++edge) {
    const Slice next = edge->parent == path.root
                           ? builder.output(path.root, stretch.in_message, path.weight)
                           : builder.tmp(edge->parent, stretch.in_message, path.weight);
    builder.copy(next, held, {.lane = lanes.next(edge->child)});
    held = next;
  }
}

/// Ranks that have a part of the message beforehand also need it in their result.
void keep_parts(Builder& builder, Lanes& lanes, std::int64_t part) {
  const Contract& contract = builder.contract();
  const CollectiveInfo& collective = info(contract.collective);
  if (collective.reduces && contract.ranks > 1) return;
  for (int rank = 0; rank < contract.ranks; ++rank) {
    if (collective.rooted && rank != contract.root) continue;
    builder.copy(builder.output(rank, collective.blocked ? rank * part : 0, part),
                 builder.input(rank, 0, part), {.lane = lanes.next(rank)});
  }
}

BlinkShares shares_of(const BuildRequest& request) {
  return request.parameter("printed") == 1 ? BlinkShares::printed : BlinkShares::best;
}

Forest plan_trees(const BuildRequest& request) {
  if (request.ranks == 1) return nothing_to_send(request.collective);
  return plan_blink(request.collective, request.root, *request.router, *request.placement,
                    shares_of(request));
}

Program write_blink(const BuildRequest& request, const Forest& forest) {
  Builder builder("blink", request.contract(forest.units));
  Lanes lanes(request.ranks);
  const bool blocked = info(request.collective).blocked;
  const std::int64_t part = forest.units / (blocked ? request.ranks : 1);
  std::vector<std::int64_t> next(static_cast<std::size_t>(request.ranks), 0);
  for (const PlannedTree& tree : forest.trees) {
    if (tree.edges.empty()) continue;  // a single rank
    const bool is_path = request.collective == Collective::gather;
    const int owner = is_path ? tree.edges.back().child : tree.root;
    std::int64_t& begin = next[static_cast<std::size_t>(blocked ? owner : 0)];
    const Stretch stretch{tree, begin, begin + (blocked ? owner * part : 0)};
    if (is_path) {
      add_path(builder, lanes, stretch);
    } else {
      add_tree(builder, lanes, stretch);
    }
    begin += tree.weight;
  }
  keep_parts(builder, lanes, part);
  return builder.finish();
}

std::optional<std::string> why_not(const BuildRequest& request) {
  if (request.ranks == 1) return std::nullopt;
  const std::string why_not =
      no_blink_plan(request.collective, *request.router, *request.placement, shares_of(request));
  if (why_not.empty()) return std::nullopt;
  return why_not;
}

}  // namespace

const Algorithm& blink_algorithm() {
  static const Algorithm algorithm = {
      .name = "blink",
      .summary =
          "within groups of fully connected GPUs, GPUs combine parts, exchange them across, "
          "forward them within",
      .constraints = "1 to 16 ranks in one or two groups that the GPU fabric connects fully",
      .paper = "Blink, SysML 2018",
      .collectives = {Collective::broadcast, Collective::gather, Collective::allgather,
                      Collective::allreduce, Collective::reduce, Collective::reducescatter},
      .parameters = {{"printed",
                      "1: the protocols that the paper prints, with equal parts; 0: all ways that "
                      "they leave open, and the best shares",
                      0,
                      0,
                      1,
                      {1}}},
      .pipelined = true,
      .needs_machine = true,
      .max_ranks = kMaxBlinkRanks,
      .unsupported = why_not,
      .plan = plan_trees,
      .write = write_blink};
  return algorithm;
}

}  // namespace espalier
