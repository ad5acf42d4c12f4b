// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

/// Ratios by size of a message, in ascending order of sizes.
struct RatioSeries {
  std::string label;
  std::vector<std::pair<std::int64_t, double>> points;  ///< bytes and ratio, both above 0
};

struct RatioPlot {
  std::string title;
  std::string size_label;   ///< of the horizontal axis
  std::string ratio_label;  ///< of the vertical axis
  std::vector<RatioSeries> series;
};

/// A picture in SVG 1.1: both axes are logarithmic, a line stands for 1, each series has a colour
/// and a mark of its own, and the legend is below. Deterministic. \pre there is a point
std::string ratio_plot_svg(const RatioPlot& plot);

}  // namespace espalier
