// SPDX-License-Identifier: Apache-2.0
#include "report/page/drawing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "topologies/load.h"

namespace espalier {
namespace {

const DrawnNode& node_of(const Drawing& drawing, const std::string& name) {
  for (const DrawnNode& node : drawing.nodes) {
    if (node.name == name) return node;
  }
  ADD_FAILURE() << "there is no " << name;
  return drawing.nodes.front();
}

std::vector<const DrawnNode*> of_kind(const Drawing& drawing, NodeKind kind) {
  std::vector<const DrawnNode*> found;
  for (const DrawnNode& node : drawing.nodes) {
    if (node.kind == kind) found.push_back(&node);
  }
  return found;
}

TEST(Drawing, MachinesOfTheCatalogueHaveNodesApartAndInside) {
  for (const CatalogueEntry& entry : catalogue()) {
    const Topology machine = load_topology(entry.name);
    const Drawing drawing = draw_machine(machine);
    std::set<NodeId> drawn;
    for (std::size_t i = 0; i < drawing.nodes.size(); ++i) {
      const DrawnNode& node = drawing.nodes[i];
      drawn.insert(node.nodes.begin(), node.nodes.end());
      EXPECT_TRUE(node.x > 0 && node.x < drawing.width && node.y > 0 && node.y < drawing.height)
          << entry.name << ": " << node.name;
      for (std::size_t other = 0; other < i; ++other) {
        const DrawnNode& one = drawing.nodes[other];
        // As wide and as tall as the page draws them.
        const bool apart = std::abs(node.x - one.x) > (node.width + one.width) / 2 ||
                           std::abs(node.y - one.y) > (node.height + one.height) / 2;
        EXPECT_TRUE(apart) << entry.name << ": " << node.name << " lies on " << one.name;
      }
    }
    EXPECT_EQ(drawn.size(), machine.nodes.size()) << entry.name;
  }
}

TEST(Drawing, IsTheSameEveryTime) {
  const Topology machine = load_topology("dgx1-v100");
  const Drawing once = draw_machine(machine);
  const Drawing again = draw_machine(load_topology("dgx1-v100"));
  ASSERT_EQ(once.nodes.size(), again.nodes.size());
  for (std::size_t i = 0; i < once.nodes.size(); ++i) {
    EXPECT_EQ(once.nodes[i].x, again.nodes[i].x);
    EXPECT_EQ(once.nodes[i].y, again.nodes[i].y);
  }
}

/// Both faces are squares, and edges between them lie alike.
void expect_cube(const Drawing& drawing, const std::vector<std::string>& near,
                 const std::vector<std::string>& far) {
  const double side = node_of(drawing, near[1]).x - node_of(drawing, near[0]).x;
  EXPECT_GT(side, 2);
  for (const auto& face : {near, far}) {
    EXPECT_NEAR(node_of(drawing, face[1]).x - node_of(drawing, face[0]).x, side, 1e-9);
    EXPECT_NEAR(node_of(drawing, face[2]).y - node_of(drawing, face[0]).y, side, 1e-9);
    EXPECT_NEAR(node_of(drawing, face[3]).x - node_of(drawing, face[2]).x, side, 1e-9);
  }
  for (std::size_t corner = 0; corner < 4; ++corner) {
    EXPECT_NEAR(node_of(drawing, far[corner]).x - node_of(drawing, near[corner]).x, 1.9, 1e-9);
    EXPECT_NEAR(node_of(drawing, far[corner]).y - node_of(drawing, near[corner]).y, -2.7, 1e-9);
  }
}

TEST(Drawing, HybridCubeMeshIsACube) {
  const Drawing drawing = draw_machine(load_topology("dgx1-v100"));
  expect_cube(drawing, {"gpu0", "gpu1", "gpu2", "gpu3"}, {"gpu4", "gpu5", "gpu6", "gpu7"});
}

TEST(Drawing, CubeMeshWithoutALinkIsACubeStill) {
  for (const char* missing : {"gpu0-gpu3", "gpu0-gpu4", "gpu5-gpu6"}) {
    const Drawing drawing =
        draw_machine(load_topology(std::string("dgx1-v100:without=") + missing));
    expect_cube(drawing, {"gpu0", "gpu1", "gpu2", "gpu3"}, {"gpu4", "gpu5", "gpu6", "gpu7"});
  }
}

TEST(Drawing, GpusOnSwitchesStandInRowsBesideThem) {
  const Drawing drawing = draw_machine(load_topology("dgx2"));
  std::map<double, int> rows;
  for (const DrawnNode* gpu : of_kind(drawing, NodeKind::gpu)) ++rows[gpu->y];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.begin()->second, 8);
  for (const DrawnNode* one : of_kind(drawing, NodeKind::nvswitch)) {
    EXPECT_GT(one->y, rows.begin()->first);
    EXPECT_LT(one->y, rows.rbegin()->first);
  }
}

TEST(Drawing, SocketsStandAboveTheirGpusAndNetworkOnTop) {
  const Drawing drawing = draw_machine(load_topology("dgx1-v100"));
  double top_gpu = 1e9;
  for (const DrawnNode* gpu : of_kind(drawing, NodeKind::gpu)) top_gpu = std::min(top_gpu, gpu->y);
  for (const DrawnNode* cpu : of_kind(drawing, NodeKind::cpu)) {
    EXPECT_LT(cpu->y, top_gpu);
    for (const DrawnNode* nic : of_kind(drawing, NodeKind::nic)) EXPECT_LT(nic->y, cpu->y);
  }
  EXPECT_LT(node_of(drawing, "cpu0").x, node_of(drawing, "cpu1").x);
}

TEST(Drawing, LargeClustersAreFolded) {
  const Topology machine = load_topology("dgx-h100:nodes=16");
  const Drawing drawing = draw_machine(machine);
  std::vector<const DrawnNode*> folds;
  for (const DrawnNode& node : drawing.nodes) {
    if (node.is_fold()) folds.push_back(&node);
  }
  ASSERT_EQ(folds.size(), 1U);
  EXPECT_EQ(folds.front()->label, "13 more hosts");
  EXPECT_EQ(drawing.frames.size(), 4U);
  // Its links to the switches of the network are drawn as one each, and those within it not at all.
  std::size_t links = 0;
  for (const DrawnLink& link : drawing.links) {
    EXPECT_NE(link.a, link.b);
    links = std::max(links, link.links.size());
  }
  EXPECT_GT(links, 12U);
}

TEST(Drawing, SmallHostsAreNotFolded) {
  const Drawing drawing = draw_machine(load_topology("hosts:n=16"));
  for (const DrawnNode& node : drawing.nodes) EXPECT_FALSE(node.is_fold()) << node.name;
}

TEST(Drawing, TorusIsAGridAndRingACircle) {
  const Drawing torus = draw_machine(load_topology("torus:x=4,y=4"));
  std::set<double> columns;
  for (const DrawnNode* gpu : of_kind(torus, NodeKind::gpu)) columns.insert(gpu->x);
  EXPECT_EQ(columns.size(), 4U);

  // In three dimensions: a torus has planes, one behind the other.
  const Drawing planes = draw_machine(load_topology("torus:x=4,y=3,z=2"));
  const auto at = [&](int gpu) { return node_of(planes, "gpu" + std::to_string(gpu)); };
  for (int gpu = 0; gpu < 12; ++gpu) {
    EXPECT_NEAR(at(gpu + 12).x - at(gpu).x, at(12).x - at(0).x, 1e-9);
    EXPECT_NEAR(at(gpu + 12).y - at(gpu).y, at(12).y - at(0).y, 1e-9);
    EXPECT_NEAR(at(gpu).y, at(gpu / 4 * 4).y, 1e-9);
  }
  EXPECT_LT(at(12).y, at(0).y);

  const Drawing ring = draw_machine(load_topology("ring:n=12"));
  double x = 0;
  double y = 0;
  for (const DrawnNode& node : ring.nodes) x += node.x / 12, y += node.y / 12;
  const double radius = std::hypot(ring.nodes[0].x - x, ring.nodes[0].y - y);
  for (const DrawnNode& node : ring.nodes) {
    EXPECT_NEAR(std::hypot(node.x - x, node.y - y), radius, 1e-9);
  }
}

}  // namespace
}  // namespace espalier
