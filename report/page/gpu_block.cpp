// SPDX-License-Identifier: Apache-2.0
#include "report/page/gpu_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>

namespace espalier {

namespace {

constexpr std::size_t kRowOfSwitched = 8;  ///< GPUs on NVSwitches stand in rows of so many
constexpr std::size_t kRowOfOthers = 16;   ///< and GPUs without a fabric
constexpr double kGpuPitch = 1.2;          ///< of neighbours

/// Which GPUs the fabric joins directly, by their places among the GPUs of the host.
class Joined {
 public:
  Joined(const std::vector<NodeId>& gpus,
         const std::map<NodeId, std::vector<NodeId>>& over_fabric) {
    std::map<NodeId, int> place;
    for (const NodeId gpu : gpus) place.emplace(gpu, static_cast<int>(place.size()));
    for (const NodeId gpu : gpus) {
      const auto found = over_fabric.find(gpu);
      if (found == over_fabric.end()) continue;
      for (const NodeId other : found->second) {
        const auto at = place.find(other);
        if (at != place.end()) pairs_.emplace(place.at(gpu), at->second);
      }
    }
  }

  bool operator()(int a, int b) const { return pairs_.contains({a, b}); }
  bool none() const { return pairs_.empty(); }
  /// Whether `allowed(a, b)` holds for every pair.
  template <class Allowed>
  bool all(const Allowed& allowed) const {
    return std::ranges::all_of(pairs_, [&](const auto& pair) {
      return allowed(std::min(pair.first, pair.second), std::max(pair.first, pair.second));
    });
  }

 private:
  std::set<std::pair<int, int>> pairs_;  ///< both ways
};

using Cube = std::array<int, 8>;  ///< a quad, then the other one in the order of their edges

/// The GPUs as the corners of a cube, if the quad of these four and the other one make a hybrid
/// cube mesh: both complete and joined corner by corner, as far as no more than one link is missing
/// of each.
std::optional<Cube> cube_of(const std::array<int, 4>& quad, const Joined& joined) {
  std::array<int, 4> others{};
  std::size_t count = 0;
  for (int gpu = 0; gpu < 8; ++gpu) {
    if (std::ranges::find(quad, gpu) == quad.end()) others[count++] = gpu;
  }
  for (const auto& four : {quad, others}) {
    int missing = 0;
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < i; ++k) {
        missing += !joined(four[static_cast<std::size_t>(i)], four[static_cast<std::size_t>(k)]);
      }
    }
    if (missing > 1) return std::nullopt;
  }
  Cube cube{};
  std::set<int> left(others.begin(), others.end());
  std::optional<std::size_t> lonely;
  for (std::size_t corner = 0; corner < 4; ++corner) {
    cube[corner] = quad[corner];
    std::vector<int> partners;
    for (const int other : others) {
      if (joined(quad[corner], other)) partners.push_back(other);
    }
    if (partners.size() > 1) return std::nullopt;
    if (partners.empty()) {
      if (lonely) return std::nullopt;
      lonely = corner;
    } else if (left.erase(partners.front()) == 0) {
      return std::nullopt;
    } else {
      cube[corner + 4] = partners.front();
    }
  }
  if (lonely) cube[*lonely + 4] = *left.begin();
  return cube;
}

std::optional<Cube> as_cube(std::size_t gpus, const Joined& joined) {
  if (gpus != 8) return std::nullopt;
  for (int a = 1; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) {
      for (int c = b + 1; c < 8; ++c) {
        if (const auto cube = cube_of({0, a, b, c}, joined)) return cube;
      }
    }
  }
  return std::nullopt;
}

/// How many columns a grid has whose neighbours alone the fabric joins, ends of rows and of columns
/// included (a torus).
std::optional<int> columns_of_grid(int gpus, const Joined& joined) {
  for (int columns = 3; columns <= gpus / 2; ++columns) {
    if (gpus % columns != 0 || gpus / columns < 2) continue;
    const bool is_grid = joined.all([&](int a, int b) {
      const bool in_row = a / columns == b / columns;
      const int step = b - a;
      return in_row ? step == 1 || step == columns - 1 : step == columns || step == gpus - columns;
    });
    // A ring would do for a grid that lacks most of its links.
    if (is_grid && joined(0, columns) && joined(1, columns + 1)) return columns;
  }
  return std::nullopt;
}

/// Columns and rows of the planes of a torus in three dimensions, whose neighbours alone the fabric
/// joins, ends included.
struct Planes {
  int columns = 0;
  int rows = 0;
};
std::optional<Planes> planes_of_grid(int gpus, const Joined& joined) {
  for (int columns = 2; columns <= gpus / 4; ++columns) {
    for (int rows = 2; columns * rows * 2 <= gpus; ++rows) {
      const int plane = columns * rows;
      if (gpus % plane != 0) continue;
      const int planes = gpus / plane;
      const auto is_step = [](int a, int b, int length) {
        return b - a == 1 || (length > 2 && b - a == length - 1);
      };
      const bool is_grid = joined.all([&](int a, int b) {
        const int x = a % columns, y = a / columns % rows, z = a / plane;
        const int other_x = b % columns, other_y = b / columns % rows, other_z = b / plane;
        if (y == other_y && z == other_z) return is_step(x, other_x, columns);
        if (x == other_x && z == other_z) return is_step(y, other_y, rows);
        return x == other_x && y == other_y && is_step(z, other_z, planes);
      });
      if (is_grid && joined(0, 1) && joined(0, columns) && joined(0, plane)) {
        return Planes{columns, rows};
      }
    }
  }
  return std::nullopt;
}

/// Planes one behind the other, each to the right of and above the one before it.
Points in_planes(const std::vector<NodeId>& gpus, const Planes& of) {
  constexpr Point kBehind{1.05, -0.7};
  const std::size_t plane =
      static_cast<std::size_t>(of.columns) * static_cast<std::size_t>(of.rows);
  const auto planes = static_cast<double>(gpus.size() / plane);
  // Room for those behind between a GPU and its neighbours.
  const double column = kBehind.x * planes + 0.5;
  const double row = -kBehind.y * planes + 0.5;
  Points points;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::size_t on_plane = i % plane;
    const auto z = static_cast<double>(i / plane);
    const auto columns = static_cast<std::size_t>(of.columns);
    points[gpus[i]] = {column * static_cast<double>(on_plane % columns) + kBehind.x * z,
                       row * static_cast<double>(on_plane / columns) + kBehind.y * z};
  }
  return points;
}

Points in_rows(const std::vector<NodeId>& nodes, std::size_t per_row, double pitch, double row) {
  Points points;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    points[nodes[i]] = {pitch * static_cast<double>(i % per_row),
                        row * static_cast<double>(i / per_row)};
  }
  return points;
}

/// Rows of GPUs, the switches between the first row and the second, or below the only one.
Points on_switches(const std::vector<NodeId>& gpus, const std::vector<NodeId>& switches) {
  Points points = in_rows(gpus, kRowOfSwitched, kGpuPitch, 2.0);
  for (auto& [gpu, point] : points) {
    if (point.y > 0) point.y += 2.0;
  }
  const double width = kGpuPitch * static_cast<double>(std::min(gpus.size(), kRowOfSwitched) - 1);
  const auto count = static_cast<double>(switches.size());
  // As wide as the row, and not so narrow that they touch.
  const double pitch = std::max(count > 1 ? width / count : 0, kGpuPitch);
  for (std::size_t i = 0; i < switches.size(); ++i) {
    points[switches[i]] = {width / 2 + pitch * (static_cast<double>(i) - (count - 1) / 2), 2.0};
  }
  return points;
}

/// The first GPU is in the middle where it is a hub, which all others are joined to and to nothing
/// else.
Points in_circle(std::vector<NodeId> gpus, const Joined& joined) {
  Points points;
  if (joined.all([](int a, int) { return a == 0; })) {
    points[gpus.front()] = {};
    gpus.erase(gpus.begin());
  }
  const auto count = static_cast<double>(gpus.size());
  const double radius = std::max(1.6, kGpuPitch * count / (2 * std::numbers::pi));
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / count;
    points[gpus[i]] = {radius * std::sin(angle), -radius * std::cos(angle)};
  }
  return points;
}

}  // namespace

Points place_gpus(const std::vector<NodeId>& gpus, const std::vector<NodeId>& switches,
                  const std::map<NodeId, std::vector<NodeId>>& over_fabric) {
  const Joined joined(gpus, over_fabric);
  if (gpus.empty()) return in_rows(switches, kRowOfSwitched, kGpuPitch, 2.0);
  if (!switches.empty()) return on_switches(gpus, switches);
  if (const std::optional<Cube> cube = as_cube(gpus.size(), joined)) {
    // The far face is moved so that no corner lies on an edge or a diagonal of the near one.
    constexpr double kSide = 5.4;
    constexpr Point kFar{1.9, -2.7};
    Points points;
    for (std::size_t corner = 0; corner < 8; ++corner) {
      const Point face = corner < 4 ? Point{} : kFar;
      const std::size_t on_face = corner % 4;
      points[gpus[static_cast<std::size_t>((*cube)[corner])]] = {
          face.x + kSide * static_cast<double>(on_face % 2),
          face.y + kSide * static_cast<double>(on_face / 2)};
    }
    return points;
  }
  const bool in_line = joined.all([](int a, int b) { return b == a + 1; });
  if (in_line) return in_rows(gpus, kRowOfOthers, kGpuPitch, 1.5);
  const int count = static_cast<int>(gpus.size());
  if (count <= 4) return in_rows(gpus, 2, 2.4, 2.4);
  if (const std::optional<int> columns = columns_of_grid(count, joined)) {
    return in_rows(gpus, static_cast<std::size_t>(*columns), 1.5, 1.5);
  }
  if (const std::optional<Planes> planes = planes_of_grid(count, joined)) {
    return in_planes(gpus, *planes);
  }
  return in_circle(gpus, joined);
}

bool points_are_apart(const std::vector<NodeId>& nodes, const Points& points) {
  std::vector<double> columns;
  for (const NodeId node : nodes) columns.push_back(points.at(node).x);
  std::ranges::sort(columns);
  for (std::size_t i = 1; i < columns.size(); ++i) {
    if (columns[i] - columns[i - 1] < 0.5) return false;
  }
  return true;
}

}  // namespace espalier
