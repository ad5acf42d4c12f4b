// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/colour_refinement.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace espalier {
namespace {

/// A vertex's colour and, sorted, what it has around it.
using Surroundings = std::vector<std::pair<int, int>>;

/// Colours by the order in which vertices first show them. Returns how many there are.
template <typename Colour>
int number(const std::vector<Colour>& shown, std::vector<int>& colours) {
  std::map<Colour, int> known;
  for (std::size_t v = 0; v < shown.size(); ++v) {
    colours[v] = known.emplace(shown[v], static_cast<int>(known.size())).first->second;
  }
  return static_cast<int>(known.size());
}

}  // namespace

std::vector<int> refine_colours(std::vector<int> colours, const std::vector<LabelledEdge>& edges) {
  std::vector<Surroundings> around(colours.size());
  int before = 0;
  int now = number(std::vector<int>(colours), colours);
  while (now > before) {
    before = now;
    for (std::size_t v = 0; v < colours.size(); ++v) around[v] = {{-1, colours[v]}};
    for (const LabelledEdge& edge : edges) {
      const auto a = static_cast<std::size_t>(edge.a), b = static_cast<std::size_t>(edge.b);
      around[a].emplace_back(2 * edge.label, colours[b]);
      around[b].emplace_back(2 * edge.label + 1, colours[a]);
    }
    for (Surroundings& of_one : around) std::ranges::sort(of_one);
    now = number(around, colours);
  }
  return colours;
}

}  // namespace espalier
