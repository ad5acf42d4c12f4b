// SPDX-License-Identifier: Apache-2.0
#include "planner/cells/cell_problem.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace espalier {
namespace {

class ProblemMaker {
 public:
  ProblemMaker(const PackingProblem& whole, const Cells& cells, int uses)
      : whole_(whole), cells_(cells), uses_(uses) {
    PackingProblem& problem = result_.problem;
    problem.use = whole.use;
    problem.upper_unit = whole.upper_unit;
    problem.lower_unit = whole.lower_unit;
    for (const int resource : cells.resources.front()) {
      own_resource_.emplace(resource, static_cast<int>(problem.resources.size()));
      problem.resources.push_back(whole.resources[static_cast<std::size_t>(resource)]);
    }
    for (int rank = 0; rank < cells.ranks; ++rank) add_vertex(members()[at(rank)]);
    result_.others = result_.onward = add_vertex(kNone);
    if (whole.use == EdgeUse::one_way) result_.onward = add_vertex(kNone);
    problem.ranks = static_cast<int>(problem.arcs_from.size());
  }

  CellProblem take() {
    for (const int from : members()) {
      for (const PackingProblem::Arc& arc : whole_.arcs_from[at(from)]) {
        if (cells_.in_hub(arc.to)) {
          add(copy_of(from, Layer::out), copy_of(arc.to, Layer::out), arc.resource, uses_);
        } else {
          add(copy_of(from, Layer::inside), copy_of(arc.to, Layer::inside), arc.resource, 1);
          if (!is_rank(arc.to)) {
            add(copy_of(from, Layer::out), copy_of(arc.to, Layer::out), arc.resource, uses_);
          }
          if (!is_rank(from)) {
            add(copy_of(from, Layer::in), copy_of(arc.to, Layer::in), arc.resource, uses_);
          }
        }
      }
    }
    for (std::size_t from = 0; from < whole_.arcs_from.size(); ++from) {
      const int hub = static_cast<int>(from);
      if (!cells_.in_hub(hub)) continue;
      for (const PackingProblem::Arc& arc : whole_.arcs_from[from]) {
        if (cells_.cell[at(arc.to)] != 0) continue;
        add(copy_of(hub, Layer::in), copy_of(arc.to, Layer::in), arc.resource, uses_);
      }
    }
    return std::move(result_);
  }

 private:
  static constexpr int kNone = -1;
  enum class Layer : std::uint8_t { inside, out, in };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  const std::vector<int>& members() const { return cells_.vertices.front(); }
  bool is_rank(int vertex) const { return vertex < whole_.ranks; }

  int add_vertex(int origin) {
    PackingProblem& problem = result_.problem;
    problem.node.push_back(origin < 0 ? NodeId{-1} : whole_.node[at(origin)]);
    problem.arcs_from.emplace_back();
    result_.origin.push_back(origin);
    return static_cast<int>(problem.arcs_from.size()) - 1;
  }

  /// Ranks are in no layer. The hub leads on to the other cells, and they lead to it.
  int copy_of(int vertex, Layer layer) {
    if (is_rank(vertex)) return cells_.position[at(vertex)];
    const auto [known, fresh] = copies_.emplace(std::pair(vertex, layer), 0);
    if (fresh) {
      known->second = add_vertex(vertex);
      if (cells_.in_hub(vertex) && layer == Layer::out) {
        result_.problem.arcs_from[at(known->second)].push_back({result_.onward, kNone});
      } else if (cells_.in_hub(vertex)) {
        result_.problem.arcs_from[at(result_.others)].push_back({known->second, kNone});
      }
    }
    return known->second;
  }

  /// An arc that uses its resource so many times is as many arcs.
  void add(int from, int to, int resource, int uses) {
    const int own = resource < 0 ? kNone : own_resource_.at(resource);
    for (int use = 1; use < uses && own >= 0; ++use) {
      const int middle = add_vertex(kNone);
      result_.problem.arcs_from[at(from)].push_back({middle, own});
      from = middle;
    }
    result_.problem.arcs_from[at(from)].push_back({to, own});
  }

  const PackingProblem& whole_;
  const Cells& cells_;
  const int uses_;
  std::map<int, int> own_resource_;
  std::map<std::pair<int, Layer>, int> copies_;
  CellProblem result_;
};

}  // namespace

CellProblem cell_problem(const PackingProblem& whole, const Cells& cells, int uses) {
  return ProblemMaker(whole, cells, uses).take();
}

}  // namespace espalier
