// SPDX-License-Identifier: Apache-2.0
#include "report/page/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "report/page/gpu_block.h"

namespace espalier {

namespace {

/// Machines with more hosts and more nodes than this are folded, down to so many hosts.
constexpr int kMostHosts = 4;
constexpr std::size_t kMostNodes = 80;
constexpr int kShownHosts = 3;
constexpr int kHostsPerRow = 8;

constexpr double kRow = 1.15;  ///< between rows of nodes
constexpr double kAboveGpus = 1.5;
constexpr double kApart = 0.25;  ///< between neighbours of a row above the GPUs
constexpr double kMargin = 0.8;  ///< around the nodes of a host
constexpr double kGap = 0.8;     ///< between frames

struct Size {
  double width = 0;
  double height = 0;
};
constexpr Size kFoldSize{1.8, 0.8};

/// Of a node as it is drawn.
Size size_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return {0.92, 0.54};
    case NodeKind::cpu:
      return {1.05, 0.5};
    case NodeKind::pcie_switch:
      return {0.95, 0.42};
    case NodeKind::nvswitch:
      return {1.02, 0.46};
    case NodeKind::nic:
      return {0.85, 0.4};
    case NodeKind::fabric:
      return {1.7, 0.5};
  }
  CHECK(false);
}

using Neighbours = std::map<NodeId, std::vector<NodeId>>;

Neighbours neighbours_over(const Topology& machine, bool fabric) {
  Neighbours found;
  for (const Link& link : machine.links) {
    if ((link.link_class == LinkClass::gpu_fabric) != fabric) continue;
    found[link.a].push_back(link.b);
    found[link.b].push_back(link.a);
  }
  return found;
}

/// Steps from the nearest of `from`, inside the set of nodes.
std::map<NodeId, int> distances(const std::vector<NodeId>& from, const std::set<NodeId>& inside,
                                const Neighbours& neighbours) {
  std::map<NodeId, int> found;
  std::vector<NodeId> reached;
  for (const NodeId node : from) {
    if (found.emplace(node, 0).second) reached.push_back(node);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto next = neighbours.find(reached[i]);
    if (next == neighbours.end()) continue;
    for (const NodeId node : next->second) {
      if (inside.contains(node) && found.emplace(node, found[reached[i]] + 1).second) {
        reached.push_back(node);
      }
    }
  }
  return found;
}

/// A row of nodes, each as near to the column where it should stand as the others allow.
void place_row(const Topology& machine, std::vector<std::pair<double, NodeId>> row, double y,
               Points& points) {
  if (row.empty()) return;
  std::ranges::sort(row);
  std::vector<double> at;
  double off = 0;
  double end = 0;  // of the one before
  for (const auto& [column, node] : row) {
    const double half = size_of(machine.node(node).kind).width / 2;
    at.push_back(at.empty() ? column : std::max(column, end + kApart + half));
    end = at.back() + half;
    off += at.back() - column;
  }
  off /= static_cast<double>(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) points[row[i].second] = {at[i] - off, y};
}

/// Moves everything so that the least coordinates are 0; what is the size of it then.
Point to_corner(Points& points) {
  Point least{1e300, 1e300};
  Point most{-1e300, -1e300};
  for (const auto& [node, point] : points) {
    least = {std::min(least.x, point.x), std::min(least.y, point.y)};
    most = {std::max(most.x, point.x), std::max(most.y, point.y)};
  }
  for (auto& [node, point] : points) point = {point.x - least.x, point.y - least.y};
  return {most.x - least.x, most.y - least.y};
}

/// The nodes of a host, its GPUs at the bottom and above them what leads to the network.
Points place_host(const Topology& machine, const std::vector<NodeId>& nodes,
                  const Neighbours& over_host, const Neighbours& over_fabric) {
  std::vector<NodeId> gpus, fabric_switches, cpus;
  for (const NodeId node : nodes) {
    const NodeKind kind = machine.node(node).kind;
    if (kind == NodeKind::gpu) gpus.push_back(node);
    if (kind == NodeKind::nvswitch) fabric_switches.push_back(node);
    if (kind == NodeKind::cpu) cpus.push_back(node);
  }
  Points points = place_gpus(gpus, fabric_switches, over_fabric);
  const double width = to_corner(points).x;
  // GPUs have columns for what is above them: where they stand, or, of a cube, side by side.
  std::map<NodeId, double> column;
  const bool has_columns = points_are_apart(gpus, points);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const double even =
        gpus.size() > 1 ? width * static_cast<double>(i) / static_cast<double>(gpus.size() - 1) : 0;
    column[gpus[i]] = has_columns ? points.at(gpus[i]).x : even;
  }
  const std::set<NodeId> inside(nodes.begin(), nodes.end());
  const std::map<NodeId, int> depth = distances(cpus, inside, over_host);
  std::map<int, std::vector<std::pair<double, NodeId>>> rows;
  int deepest = 0;
  for (const NodeId node : nodes) {
    const NodeKind kind = machine.node(node).kind;
    if (kind == NodeKind::gpu || kind == NodeKind::nvswitch) continue;
    double sum = 0;
    int count = 0;
    int nearest = 0;
    const std::map<NodeId, int> away = distances({node}, inside, over_host);
    for (const NodeId gpu : gpus) {
      const auto steps = away.find(gpu);
      if (steps == away.end()) continue;
      if (count == 0 || steps->second < nearest) {
        sum = count = 0;
        nearest = steps->second;
      }
      if (steps->second > nearest) continue;
      sum += column[gpu];
      ++count;
    }
    const auto below = depth.find(node);
    const int row = kind == NodeKind::nic   ? -1
                    : kind == NodeKind::cpu ? 0
                    : below == depth.end()  ? 1
                                            : below->second;
    deepest = std::max(deepest, row);
    rows[row].emplace_back(count > 0 ? sum / count : width / 2, node);
  }
  for (const auto& [row, members] : rows)
    place_row(machine, members, kRow * (row - deepest) - kAboveGpus, points);
  return points;
}

std::string label_of(const Topology& machine, NodeId node) {
  const std::string& name = machine.node(node).name;
  const std::string host = fmt::format("n{}.", machine.node(node).host);
  return name.starts_with(host) ? name.substr(host.size()) : name;
}

/// What is put together host by host, and then the network above.
class Sheet {
 public:
  explicit Sheet(const Topology& machine) : machine_(machine) {
    for (NodeId node = 0; node < static_cast<NodeId>(machine.nodes.size()); ++node) {
      const Node& one = machine.node(node);
      if (one.host < 0 || one.kind == NodeKind::fabric) {
        shared_.push_back(node);
      } else {
        by_host_[one.host].push_back(node);
      }
    }
  }

  Drawing draw() {
    const Neighbours over_host = neighbours_over(machine_, false);
    const Neighbours over_fabric = neighbours_over(machine_, true);
    const int hosts = static_cast<int>(by_host_.size());
    const bool folds = hosts > kMostHosts && machine_.nodes.size() > kMostNodes;
    int drawn = 0;
    std::vector<NodeId> folded;
    for (const auto& [host, nodes] : by_host_) {
      if (folds && drawn == kShownHosts) {
        folded.insert(folded.end(), nodes.begin(), nodes.end());
        continue;
      }
      add_host(host, nodes, place_host(machine_, nodes, over_host, over_fabric), hosts > 1);
      ++drawn;
    }
    if (!folded.empty()) add_fold(folded, hosts - drawn);
    add_shared();
    add_links();
    finish();
    return std::move(drawing_);
  }

 private:
  void add_node(const std::string& name, const std::string& label, std::vector<NodeId> nodes,
                NodeKind kind, Point at) {
    for (const NodeId node : nodes) place_[node] = static_cast<int>(drawing_.nodes.size());
    const Size size = nodes.size() > 1 ? kFoldSize : size_of(kind);
    drawing_.nodes.push_back(
        {name, label, std::move(nodes), kind, at.x, at.y, size.width, size.height});
  }

  void begin_frame(const std::string& label, double width, double height) {
    if (in_row_ == kHostsPerRow) {
      in_row_ = 0;
      x_ = 0;
      y_ += row_height_ + kGap;
      row_height_ = 0;
    }
    ++in_row_;
    drawing_.frames.push_back({label, x_, y_, width + 2 * kMargin, height + 2 * kMargin});
  }
  void end_frame() {
    const DrawnFrame& frame = drawing_.frames.back();
    x_ += frame.width + kGap;
    row_height_ = std::max(row_height_, frame.height);
  }

  void add_host(int host, const std::vector<NodeId>& nodes, Points points, bool is_named) {
    const Point size = to_corner(points);
    begin_frame(is_named ? fmt::format("n{}", host) : "", size.x, size.y);
    for (const NodeId node : nodes) {
      const Point& at = points.at(node);
      add_node(machine_.node(node).name, label_of(machine_, node), {node}, machine_.node(node).kind,
               {x_ + kMargin + at.x, y_ + kMargin + at.y});
    }
    end_frame();
  }

  void add_fold(const std::vector<NodeId>& nodes, int hosts) {
    const double height = drawing_.frames.back().height - 2 * kMargin;
    begin_frame("", 2, height);
    add_node(fmt::format("n{} ... n{}", machine_.node(nodes.front()).host,
                         machine_.node(nodes.back()).host),
             fmt::format("{} more hosts", hosts), nodes, NodeKind::gpu,
             {x_ + kMargin + 1, y_ + kMargin + height / 2});
    end_frame();
  }

  /// Level by level, each above what it joins.
  void add_shared() {
    std::map<NodeId, int> level;
    for (int above = 1; level.size() < shared_.size(); ++above) {
      std::vector<std::pair<double, NodeId>> row;
      for (const NodeId node : shared_) {
        if (level.contains(node)) continue;
        std::set<int> below;
        for (const Link& link : machine_.links) {
          if (link.a != node && link.b != node) continue;
          const auto other = place_.find(link.a == node ? link.b : link.a);
          if (other != place_.end()) below.insert(other->second);
        }
        double sum = 0;
        for (const int other : below) sum += drawing_.nodes[static_cast<std::size_t>(other)].x;
        if (!below.empty()) row.emplace_back(sum / static_cast<double>(below.size()), node);
      }
      if (row.empty()) {  // what nothing joins
        for (const NodeId node : shared_) {
          if (!level.contains(node)) row.emplace_back(0, node);
        }
      }
      Points points;
      place_row(machine_, row, -kRow * above, points);
      for (const auto& [column, node] : row) {
        level[node] = above;
        const Node& one = machine_.node(node);
        add_node(one.name, one.name, {node}, one.kind, points.at(node));
      }
    }
  }

  void add_links() {
    std::map<std::pair<int, int>, std::size_t> known;
    for (LinkId id = 0; id < static_cast<LinkId>(machine_.links.size()); ++id) {
      const Link& link = machine_.link(id);
      const int a = place_.at(link.a);
      const int b = place_.at(link.b);
      if (a == b) continue;  // within a fold
      const auto [at, is_new] = known.emplace(std::minmax(a, b), drawing_.links.size());
      if (is_new) drawing_.links.push_back({a, b, {}});
      drawing_.links[at->second].links.push_back(id);
    }
  }

  void finish() {
    Point least{0, 0};
    Point most{0, 0};
    for (const DrawnFrame& one : drawing_.frames) {
      most = {std::max(most.x, one.x + one.width), std::max(most.y, one.y + one.height)};
    }
    for (const DrawnNode& one : drawing_.nodes) {
      const double side = std::max(kMargin, one.width / 2 + kApart);
      least = {std::min(least.x, one.x - side), std::min(least.y, one.y - kMargin)};
      most = {std::max(most.x, one.x + side), std::max(most.y, one.y + kMargin)};
    }
    for (DrawnFrame& one : drawing_.frames) one.x -= least.x, one.y -= least.y;
    for (DrawnNode& one : drawing_.nodes) one.x -= least.x, one.y -= least.y;
    drawing_.width = most.x - least.x;
    drawing_.height = most.y - least.y;
  }

  const Topology& machine_;
  std::map<int, std::vector<NodeId>> by_host_;
  std::vector<NodeId> shared_;
  std::map<NodeId, int> place_;  ///< index of the drawn node
  Drawing drawing_;
  double x_ = 0;
  double y_ = 0;
  double row_height_ = 0;
  int in_row_ = 0;
};

}  // namespace

Drawing draw_machine(const Topology& machine) { return Sheet(machine).draw(); }

}  // namespace espalier
