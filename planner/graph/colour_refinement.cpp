// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/colour_refinement.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

namespace espalier {
namespace {

/// The vertices, those of a colour side by side.
class Partition {
 public:
  explicit Partition(const std::vector<int>& colours)
      : order_(colours.size()), at_(colours.size()), colours_(colours.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](int v) { return colours[index(v)]; });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const bool is_first = i == 0 || colours[index(order_[i - 1])] != colours[index(order_[i])];
      if (is_first) ranges_.push_back({i, i});
      at_[index(order_[i])] = i;
      colours_[index(order_[i])] = count() - 1;
      ++ranges_.back().end;
    }
  }

  int count() const { return static_cast<int>(ranges_.size()); }
  int colour(int v) const { return colours_[index(v)]; }
  std::span<const int> of(int colour) const {
    const Range& range = ranges_[index(colour)];
    return {order_.data() + range.begin, range.end - range.begin};
  }

  /// Gives groups of the vertices of a colour, and those that are in none, a colour each; the
  /// largest of all keeps the one they had. \pre the vertices are in order of their groups
  void split(int colour, std::span<const std::pair<int, int>> grouped) {
    const Range whole = ranges_[index(colour)];
    std::vector<Range> parts;
    std::size_t end = whole.begin;
    for (std::size_t i = 0; i < grouped.size(); ++i) {
      const auto [group, v] = grouped[i];
      if (i == 0 || grouped[i - 1].first != group) parts.push_back({end, end});
      swap_to(end++, v);
      parts.back().end = end;
    }
    if (end < whole.end) parts.push_back({end, whole.end});
    const auto largest = std::ranges::max_element(parts, {}, &Range::size);
    for (auto part = parts.begin(); part != parts.end(); ++part) {
      if (part == largest) continue;
      for (std::size_t i = part->begin; i < part->end; ++i) {
        colours_[index(order_[i])] = count();
      }
      ranges_.push_back(*part);
    }
    ranges_[index(colour)] = *largest;
  }

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const { return end - begin; }
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void swap_to(std::size_t place, int v) {
    const int other = order_[place];
    std::swap(order_[place], order_[at_[index(v)]]);
    std::swap(at_[index(v)], at_[index(other)]);
  }

  std::vector<int> order_;
  std::vector<std::size_t> at_;  ///< by vertex, in order_
  std::vector<int> colours_;     ///< by vertex
  std::vector<Range> ranges_;    ///< by colour, of order_
};

/// Splits colours until all vertices of one have as many edges of each label to each colour.
class Refinement {
 public:
  Refinement(const std::vector<int>& colours, const std::vector<LabelledEdge>& edges)
      : partition_(colours), first_(colours.size() + 1), ends_(2 * edges.size()) {
    for (const LabelledEdge& edge : edges) {
      ++first_[static_cast<std::size_t>(edge.a)];
      ++first_[static_cast<std::size_t>(edge.b)];
    }
    std::inclusive_scan(first_.begin(), first_.end(), first_.begin());
    for (const LabelledEdge& edge : edges) {
      ends_[--first_[static_cast<std::size_t>(edge.b)]] = {edge.a, 2 * edge.label};
      ends_[--first_[static_cast<std::size_t>(edge.a)]] = {edge.b, 2 * edge.label + 1};
    }
  }

  /// Every colour is used once to split others. When it is split itself, all parts but the largest
  /// are used again: counts of edges to that one are those to the whole less those to the others
  /// (Hopcroft 1971).
  const Partition& run() {
    std::vector<int> waiting(static_cast<std::size_t>(partition_.count()));
    std::iota(waiting.begin(), waiting.end(), 0);
    while (!waiting.empty()) {
      const int colour = waiting.back();
      waiting.pop_back();
      const int before = partition_.count();
      tell_apart_by(colour);
      for (int made = before; made < partition_.count(); ++made) waiting.push_back(made);
    }
    return partition_;
  }

 private:
  struct End {
    int vertex = 0;
    int label = 0;  ///< of the edge, and which end it is
  };
  /// A vertex with edges to a colour.
  struct Seen {
    int colour = 0;
    int vertex = 0;
    std::span<const int> labels;  ///< of these edges, in order
  };

  void tell_apart_by(int colour) {
    found_.clear();
    for (const int v : partition_.of(colour)) {
      const auto at = static_cast<std::size_t>(v);
      for (std::size_t i = first_[at]; i < first_[at + 1]; ++i) found_.push_back(ends_[i]);
    }
    std::ranges::sort(found_, {}, [](const End& end) { return std::pair(end.vertex, end.label); });
    labels_.clear();
    for (const End& end : found_) labels_.push_back(end.label);
    std::vector<Seen> seen;
    for (std::size_t begin = 0, end = 0; begin < found_.size(); begin = end) {
      const int v = found_[begin].vertex;
      while (end < found_.size() && found_[end].vertex == v) ++end;
      seen.push_back({partition_.colour(v), v, {labels_.data() + begin, end - begin}});
    }
    std::ranges::sort(seen, [](const Seen& one, const Seen& other) {
      if (one.colour != other.colour) return one.colour < other.colour;
      return std::ranges::lexicographical_compare(one.labels, other.labels);
    });
    for (std::size_t begin = 0, end = 0; begin < seen.size(); begin = end) {
      while (end < seen.size() && seen[end].colour == seen[begin].colour) ++end;
      split({seen.data() + begin, end - begin});
    }
  }

  /// \pre of one colour
  void split(std::span<const Seen> seen) {
    std::vector<std::pair<int, int>> grouped;
    int group = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (i > 0 && !std::ranges::equal(seen[i - 1].labels, seen[i].labels)) ++group;
      grouped.emplace_back(group, seen[i].vertex);
    }
    const int colour = seen.front().colour;
    if (group > 0 || seen.size() < partition_.of(colour).size()) {
      partition_.split(colour, grouped);
    }
  }

  Partition partition_;
  std::vector<std::size_t> first_;  ///< by vertex: of its ends_
  std::vector<End> ends_;           ///< of the edges at a vertex, the other ones
  std::vector<End> found_;          ///< scratch of tell_apart_by
  std::vector<int> labels_;         ///< same
};

}  // namespace

std::vector<int> refine_colours(std::vector<int> colours, const std::vector<LabelledEdge>& edges) {
  Refinement refinement(colours, edges);
  const Partition& partition = refinement.run();
  // In the order in which vertices first show them.
  std::vector<int> numbers(static_cast<std::size_t>(partition.count()), -1);
  int known = 0;
  for (std::size_t v = 0; v < colours.size(); ++v) {
    int& number = numbers[static_cast<std::size_t>(partition.colour(static_cast<int>(v)))];
    if (number < 0) number = known++;
    colours[v] = number;
  }
  return colours;
}

}  // namespace espalier
