// SPDX-License-Identifier: Apache-2.0
#include "planner/cells/cells.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace espalier {
namespace {

constexpr int kNone = -1;

/// All that a planner sees of a cell: arcs as (tail, head, resource), resources as (capacity,
/// load). Vertices count within the cell; -1 - v is vertex v of the hub. Resources count in the
/// order in which arcs come to them.
struct Likeness {
  std::vector<NodeKind> kinds;
  std::vector<std::tuple<int, int, int>> arcs;
  std::vector<std::pair<std::int64_t, int>> resources;
  bool operator==(const Likeness&) const = default;
};

class CellFinder {
 public:
  CellFinder(const PackingProblem& problem, const Topology& topology)
      : problem_(problem), topology_(topology), size_(problem.arcs_from.size()) {
    cells_.cell.assign(size_, kNone);
    cells_.position.assign(size_, kNone);
    owner_.assign(problem.resources.size(), kNone);
  }

  std::optional<Cells> run() {
    find_hub();
    if (!take_apart()) return std::nullopt;
    arcs_of_cell_.resize(cells_.vertices.size());
    if (!share_out_arcs()) return std::nullopt;
    std::optional<Likeness> first;
    for (int cell = 0; cell < cells_.count(); ++cell) {
      Likeness one = likeness(cell);
      if (first && one != *first) return std::nullopt;
      if (!first) first = std::move(one);
    }
    return std::move(cells_);
  }

 private:
  void find_hub() {
    const bool any_shared = std::ranges::any_of(
        problem_.node, [&](NodeId node) { return node >= 0 && topology_.node(node).host < 0; });
    is_hub_.assign(size_, false);
    for (std::size_t v = 0; v < size_; ++v) {
      if (problem_.node[v] < 0) continue;
      const Node& node = topology_.node(problem_.node[v]);
      is_hub_[v] = is_switch(node) && (any_shared ? node.host < 0 : topology_.hosts == 1);
    }
  }

  /// Cells are what arcs join without the hub. False unless all have as many ranks and vertices.
  bool take_apart() {
    std::vector<std::vector<int>> beside(size_);
    for (std::size_t from = 0; from < size_; ++from) {
      for (const PackingProblem::Arc& arc : problem_.arcs_from[from]) {
        const auto to = static_cast<std::size_t>(arc.to);
        if (is_hub_[from] || is_hub_[to]) continue;
        beside[from].push_back(arc.to);
        beside[to].push_back(static_cast<int>(from));
      }
    }
    for (std::size_t start = 0; start < size_; ++start) {
      if (is_hub_[start] || cells_.cell[start] != kNone) continue;
      if (static_cast<int>(start) >= problem_.ranks) return false;  // a cell of no rank
      std::vector<int> found{static_cast<int>(start)};
      cells_.cell[start] = cells_.count();
      for (std::size_t next = 0; next < found.size(); ++next) {
        for (const int other : beside[static_cast<std::size_t>(found[next])]) {
          if (cells_.cell[static_cast<std::size_t>(other)] != kNone) continue;
          cells_.cell[static_cast<std::size_t>(other)] = cells_.count();
          found.push_back(other);
        }
      }
      std::ranges::sort(found);
      for (std::size_t i = 0; i < found.size(); ++i) {
        cells_.position[static_cast<std::size_t>(found[i])] = static_cast<int>(i);
      }
      cells_.vertices.push_back(std::move(found));
    }
    const auto ranks_in = [&](const std::vector<int>& cell) {
      return static_cast<int>(std::ranges::lower_bound(cell, problem_.ranks) - cell.begin());
    };
    if (cells_.count() < 2) return false;
    cells_.ranks = ranks_in(cells_.vertices.front());
    return std::ranges::all_of(cells_.vertices, [&](const std::vector<int>& cell) {
      return cell.size() == cells_.vertices.front().size() && ranks_in(cell) == cells_.ranks;
    });
  }

  /// False where something with a capacity is not of one cell alone.
  bool share_out_arcs() {
    for (std::size_t from = 0; from < size_; ++from) {
      for (const PackingProblem::Arc& arc : problem_.arcs_from[from]) {
        const int cell = std::max(cells_.cell[from], cells_.cell[static_cast<std::size_t>(arc.to)]);
        if (cell == kNone) return false;
        if (arc.resource >= 0) {
          int& owner = owner_[static_cast<std::size_t>(arc.resource)];
          if (owner != kNone && owner != cell) return false;
          owner = cell;
        }
        arcs_of_cell_[static_cast<std::size_t>(cell)].push_back(
            {name_of(static_cast<int>(from)), name_of(arc.to), arc.resource});
      }
    }
    return true;
  }

  int name_of(int vertex) const {
    return is_hub_[static_cast<std::size_t>(vertex)]
               ? -1 - vertex
               : cells_.position[static_cast<std::size_t>(vertex)];
  }

  Likeness likeness(int cell) {
    const auto c = static_cast<std::size_t>(cell);
    Likeness result;
    for (const int vertex : cells_.vertices[c]) {
      const NodeId node = problem_.node[static_cast<std::size_t>(vertex)];
      result.kinds.push_back(node < 0 ? NodeKind::pcie_switch : topology_.node(node).kind);
    }
    auto& arcs = arcs_of_cell_[c];
    std::ranges::stable_sort(
        arcs, {}, [](const auto& arc) { return std::pair(std::get<0>(arc), std::get<1>(arc)); });
    std::map<int, int> known;
    std::vector<int>& in_order = cells_.resources.emplace_back();
    for (const auto& [from, to, resource] : arcs) {
      int name = kNone;
      if (resource >= 0) {
        const auto [at, fresh] = known.emplace(resource, static_cast<int>(in_order.size()));
        name = at->second;
        if (fresh) {
          const auto& whole = problem_.resources[static_cast<std::size_t>(resource)];
          in_order.push_back(resource);
          result.resources.emplace_back(whole.capacity, whole.load);
        }
      }
      result.arcs.emplace_back(from, to, name);
    }
    return result;
  }

  const PackingProblem& problem_;
  const Topology& topology_;
  const std::size_t size_;
  std::vector<bool> is_hub_;  ///< by vertex
  std::vector<int> owner_;    ///< cell by resource
  std::vector<std::vector<std::tuple<int, int, int>>> arcs_of_cell_;
  Cells cells_;
};

}  // namespace

std::optional<Cells> find_cells(const PackingProblem& problem, const Topology& topology) {
  CHECK(problem.relays == 0);
  return CellFinder(problem, topology).run();
}

}  // namespace espalier
