// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/edge_splitting.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "planner/graph/max_flow.h"

namespace espalier {

std::int64_t RankGraph::trees(int from, int to) const {
  std::int64_t sum = 0;
  for (const Strand& strand : strands(from, to)) sum += strand.trees;
  return sum;
}

namespace {

class Splitter {
 public:
  Splitter(const CapacityGraph& graph, const std::vector<std::int64_t>& arc_trees,
           const Supply& supply, const Topology& topology, WorkBudget& budget)
      : graph_(graph),
        topology_(topology),
        supply_(supply),
        budget_(budget),
        wanted_(std::accumulate(supply.begin(), supply.end(), std::int64_t{0})),
        size_(graph.vertices()),
        trees_(static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_), 0),
        removed_(static_cast<std::size_t>(size_), false) {
    for (std::size_t i = 0; i < graph.arcs.size(); ++i) {
      if (arc_trees[i] == 0) continue;
      const CapacityGraph::Arc& arc = graph.arcs[i];
      at(arc.from, arc.to) = arc_trees[i];
      strands_[key(arc.from, arc.to)] = {{{}, arc_trees[i]}};
    }
  }

  std::optional<RankGraph> run() {
    if (!remove_each(order())) return std::nullopt;
    RankGraph result(graph_.ranks);
    for (auto& [pair, strands] : strands_) {
      const int from = static_cast<int>(pair / static_cast<std::size_t>(size_));
      const int to = static_cast<int>(pair % static_cast<std::size_t>(size_));
      // Short ways first.
      std::stable_sort(strands.begin(), strands.end(), [](const Strand& a, const Strand& b) {
        return a.path.size() < b.path.size();
      });
      result.strands(from, to) = std::move(strands);
    }
    return result;
  }

 private:
  /// Part of the arcs u -> vertex -> t, to become u -> t; u = t: to be given up.
  struct Move {
    int u = 0;
    int t = 0;
    std::int64_t trees = 0;
  };

  std::size_t key(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
           static_cast<std::size_t>(to);
  }
  std::int64_t& at(int from, int to) { return trees_[key(from, to)]; }

  NodeKind kind(int vertex) const {
    const NodeId node = graph_.node[vertex];
    return node < 0 ? NodeKind::pcie_switch : topology_.node(node).kind;
  }

  bool is_relay(int vertex) const {
    return vertex >= graph_.ranks && vertex < graph_.ranks + graph_.relays;
  }

  std::vector<int> into(int vertex) const {
    std::vector<int> tails;
    for (int u = 0; u < size_; ++u) {
      if (trees_[key(u, vertex)] > 0) tails.push_back(u);
    }
    return tails;
  }
  std::vector<int> out_of(int vertex) const {
    std::vector<int> heads;
    for (int t = 0; t < size_; ++t) {
      if (trees_[key(vertex, t)] > 0) heads.push_back(t);
    }
    return heads;
  }

  /// Relays last, since paths may pass anything before and after them; networks between hosts
  /// before these, so that no path visits one twice; otherwise those with the fewest neighbours
  /// first, which leaves the fewest arcs.
  std::vector<int> order() const {
    std::vector<int> vertices;
    for (int v = graph_.ranks; v < size_; ++v) vertices.push_back(v);
    std::vector<std::size_t> degree(static_cast<std::size_t>(size_));
    for (const int v : vertices) degree[v] = into(v).size() + out_of(v).size();
    std::stable_sort(vertices.begin(), vertices.end(), [&](int a, int b) {
      const int a_stage = is_relay(a) ? 2 : kind(a) == NodeKind::fabric ? 1 : 0;
      const int b_stage = is_relay(b) ? 2 : kind(b) == NodeKind::fabric ? 1 : 0;
      return a_stage != b_stage ? a_stage < b_stage : degree[a] < degree[b];
    });
    return vertices;
  }

  /// What comes from a network between hosts ends in a memory: hosts don't relay between networks.
  bool allowed(int u, int vertex, int t) const {
    return !(kind(u) == NodeKind::fabric && kind(t) == NodeKind::fabric &&
             kind(vertex) != NodeKind::fabric && !is_relay(vertex));
  }

  /// By how much the worst rank's flow falls short of the supply.
  std::int64_t shortage() {
    flow_.clear(size_ + 1);
    for (int from = 0; from < size_; ++from) {
      if (removed_[from]) continue;
      for (int to = 0; to < size_; ++to) {
        if (const std::int64_t trees = at(from, to); trees > 0) flow_.add(from, to, trees);
      }
    }
    for (int rank = 0; rank < graph_.ranks; ++rank) {
      if (supply_[rank] > 0) flow_.add(size_, rank, supply_[rank]);
    }
    std::int64_t worst = 0;
    for (int rank = 0; rank < graph_.ranks; ++rank) {
      if (budget_.is_spent()) throw OutOfBudget();
      worst = std::max(worst, wanted_ - flow_.run(size_, rank, wanted_));
      budget_.spend(flow_.take_looks());
    }
    return worst;
  }

  /// Capacities only; strands follow when it is settled.
  void apply(int vertex, const Move& move, std::int64_t trees) {
    at(move.u, vertex) -= trees;
    at(vertex, move.t) -= trees;
    if (move.u != move.t) at(move.u, move.t) += trees;
  }

  std::vector<Strand> take(int from, int to, std::int64_t trees) {
    std::vector<Strand>& all = strands_[key(from, to)];
    std::vector<Strand> taken;
    while (trees > 0) {
      CHECK(!all.empty());
      const std::int64_t part = std::min(trees, all.back().trees);
      taken.push_back({all.back().path, part});
      all.back().trees -= part;
      if (all.back().trees == 0) all.pop_back();
      trees -= part;
    }
    return taken;
  }

  void move_strands(int vertex, const Move& move) {
    std::vector<Strand> first = take(move.u, vertex, move.trees);
    std::vector<Strand> second = take(vertex, move.t, move.trees);
    if (move.u == move.t) return;
    std::vector<Strand>& joined = strands_[key(move.u, move.t)];
    std::size_t i = 0, j = 0;
    while (i < first.size()) {
      const std::int64_t part = std::min(first[i].trees, second[j].trees);
      Strand strand{first[i].path, part};
      if (graph_.node[vertex] >= 0) strand.path.push_back(graph_.node[vertex]);
      strand.path.insert(strand.path.end(), second[j].path.begin(), second[j].path.end());
      const auto same = std::find_if(joined.begin(), joined.end(), [&](const Strand& other) {
        return other.path == strand.path;
      });
      if (same == joined.end()) {
        joined.push_back(std::move(strand));
      } else {
        same->trees += part;
      }
      if ((first[i].trees -= part) == 0) ++i;
      if ((second[j].trees -= part) == 0) ++j;
    }
  }

  /// All of the vertex shared out so that every way in gets its part of every way out; the rest, of
  /// rounding, by turns.
  template <typename Eligible>
  std::vector<Move> even_moves(int vertex, Eligible eligible) {
    const std::vector<int> tails = into(vertex), heads = out_of(vertex);
    std::vector<std::int64_t> left_in, left_out;
    for (const int u : tails) left_in.push_back(at(u, vertex));
    for (const int t : heads) left_out.push_back(at(vertex, t));
    std::vector<Move> moves;
    const auto add = [&](std::size_t i, std::size_t j, std::int64_t wanted) {
      const std::int64_t trees = std::min({wanted, left_in[i], left_out[j]});
      if (trees == 0) return;
      left_in[i] -= trees;
      left_out[j] -= trees;
      moves.push_back({tails[i], heads[j], trees});
    };
    for (std::size_t i = 0; i < tails.size(); ++i) {
      std::int64_t reach = 0;
      for (const int t : heads) reach += eligible(tails[i], t) ? at(vertex, t) : 0;
      for (std::size_t j = 0; j < heads.size() && reach > 0; ++j) {
        if (!eligible(tails[i], heads[j])) continue;
        const double share = static_cast<double>(at(vertex, heads[j])) / static_cast<double>(reach);
        add(i, j, static_cast<std::int64_t>(share * static_cast<double>(at(tails[i], vertex))));
      }
    }
    for (std::size_t turn = 1; turn <= heads.size(); ++turn) {
      for (std::size_t i = 0; i < tails.size(); ++i) {
        const std::size_t j = (i + turn) % heads.size();
        if (eligible(tails[i], heads[j])) add(i, j, left_in[i]);
      }
    }
    return moves;
  }

  /// The vertices in their order. Whether all ranks can afford it takes a flow to every rank, so
  /// many vertices are shared out evenly before that is asked. Where it fails, halves are: what is
  /// removed after a failure only makes it worse, so that this comes to what one by one does.
  bool remove_each(const std::vector<int>& vertices) {
    if (vertices.empty()) return true;
    if (vertices.size() == 1) return remove(vertices.front());
    const auto trees = trees_;
    const auto strands = strands_;
    for (const int vertex : vertices) {
      const std::vector<Move> moves = first_moves(vertex);
      for (const Move& move : moves) apply(vertex, move, move.trees);
      drop(vertex, moves);
    }
    if (shortage() == 0) return true;
    trees_ = trees;
    strands_ = strands;
    for (const int vertex : vertices) removed_[vertex] = false;
    const auto middle = vertices.begin() + static_cast<std::ptrdiff_t>(vertices.size() / 2);
    return remove_each({vertices.begin(), middle}) && remove_each({middle, vertices.end()});
  }

  /// Settles moves that were applied and drops what is left of the vertex.
  void drop(int vertex, const std::vector<Move>& moves) {
    for (int other = 0; other < size_; ++other) at(vertex, other) = at(other, vertex) = 0;
    for (const Move& move : moves) move_strands(vertex, move);
    for (int other = 0; other < size_; ++other) {
      strands_.erase(key(vertex, other));
      strands_.erase(key(other, vertex));
    }
    removed_[vertex] = true;
  }

  /// Does all the moves and drops what is left, if every rank can afford that.
  bool try_all(int vertex, const std::vector<Move>& moves) {
    const std::vector<std::int64_t> before = trees_;
    for (const Move& move : moves) apply(vertex, move, move.trees);
    for (int other = 0; other < size_; ++other) at(vertex, other) = at(other, vertex) = 0;
    if (shortage() > 0) {
      trees_ = before;
      return false;
    }
    drop(vertex, moves);
    return true;
  }

  /// Does as much of the move as every rank can afford. A cut of the graph loses what is moved or
  /// nothing, so what is short after all of it is exactly what was too much.
  void try_some(int vertex, Move move) {
    move.trees = std::min({move.trees, at(move.u, vertex), at(vertex, move.t)});
    if (move.trees == 0) return;
    apply(vertex, move, move.trees);
    const std::int64_t excess = std::min(move.trees, shortage());
    if (excess > 0) apply(vertex, move, -excess);
    move.trees -= excess;
    if (move.trees > 0) move_strands(vertex, move);
  }

  bool past(int u, int vertex, int t) const { return u != t && allowed(u, vertex, t); }
  /// A network is for what goes to other hosts.
  bool abroad(int u, int vertex, int t) const {
    const auto host = [&](int v) {
      return graph_.node[v] < 0 ? -1 : topology_.node(graph_.node[v]).host;
    };
    return past(u, vertex, t) && host(u) != host(t);
  }
  bool joins_hosts(int vertex) const {
    return kind(vertex) == NodeKind::fabric && topology_.hosts > 1;
  }

  std::vector<Move> moves_past(int vertex) {
    return even_moves(vertex, [&](int u, int t) { return past(u, vertex, t); });
  }
  std::vector<Move> moves_abroad(int vertex) {
    return even_moves(vertex, [&](int u, int t) { return abroad(u, vertex, t); });
  }
  std::vector<Move> first_moves(int vertex) {
    return joins_hosts(vertex) ? moves_abroad(vertex) : moves_past(vertex);
  }

  bool remove(int vertex) {
    const std::vector<Move> first = first_moves(vertex);
    if (try_all(vertex, first)) return true;
    const std::vector<Move> even = joins_hosts(vertex) ? moves_past(vertex) : first;
    if (joins_hosts(vertex) && try_all(vertex, even)) return true;
    if (joins_hosts(vertex)) {
      for (const Move& move : first) try_some(vertex, move);
    }
    for (const Move& move : even) try_some(vertex, move);
    for (const int u : into(vertex)) {
      for (const int t : out_of(vertex)) {
        if (past(u, vertex, t)) try_some(vertex, {u, t, at(u, vertex)});
      }
    }
    return try_all(vertex, {});
  }

  const CapacityGraph& graph_;
  const Topology& topology_;
  const Supply& supply_;
  WorkBudget& budget_;
  const std::int64_t wanted_;
  const int size_;
  std::vector<std::int64_t> trees_;  ///< by from x size + to
  std::vector<bool> removed_;
  std::unordered_map<std::size_t, std::vector<Strand>> strands_;
  MaxFlow flow_;
};

}  // namespace

std::optional<RankGraph> split_off_switches(const CapacityGraph& graph,
                                            const std::vector<std::int64_t>& arc_trees,
                                            const Supply& supply, const Topology& topology,
                                            WorkBudget& budget) {
  return Splitter(graph, arc_trees, supply, topology, budget).run();
}

}  // namespace espalier
