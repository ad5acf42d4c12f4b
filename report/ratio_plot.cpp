// SPDX-License-Identifier: Apache-2.0
#include "report/ratio_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "core/check.h"
#include "core/units.h"

namespace espalier {
namespace {

// The picture, in pixels.
constexpr double kWidth = 900, kHeight = 420;  // without the legend
constexpr double kLeft = 70, kRight = 25, kTop = 45, kBottom = 60;
constexpr double kLegendRow = 20, kLegendMark = 40;
constexpr double kMarkRadius = 3.5;

/// Ratios are drawn at least up to these, so that small deviations look small.
constexpr double kLeastRatio = 0.8, kMostRatio = 1.25;
constexpr std::array kRatioTicks = {0.01, 0.02, 0.05, 0.1,  0.2,  0.3,  0.4,  0.5,
                                    0.6,  0.7,  0.8,  0.9,  1.0,  1.1,  1.25, 1.5,
                                    2.0,  3.0,  5.0,  10.0, 20.0, 50.0, 100.0};
constexpr double kTickDistance = 14;  // of labels on the vertical axis, at least
constexpr int kMostSizeTicks = 11;

// Colours that people with any kind of colour vision tell apart: Okabe and Ito, Color Universal
// Design, 2008.
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#000000"};
constexpr int kMarks = 4;

/// A logarithmic axis from one figure to another, which lie at two places of the picture.
struct Axis {
  double low, high;
  double low_at, high_at;

  double at(double value) const {
    const double share = std::log(value / low) / std::log(high / low);
    return low_at + share * (high_at - low_at);
  }
};

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string words(double x, double y, std::string_view style, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(text));
}

/// The mark of a series: a circle, a square, or a triangle that points up or down.
std::string mark(std::size_t series, double x, double y) {
  constexpr double r = kMarkRadius;
  const std::string_view colour = kColours[series % kColours.size()];
  switch (series % kMarks) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x, y, r,
                         colour);
    case 1:
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x - r,
          y - r, 2 * r, 2 * r, colour);
    default: {
      const double tip = series % kMarks == 2 ? -r : r;
      return fmt::format(
          "<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"{}\"/>\n", x,
          y + tip, x - r, y - tip, x + r, y - tip, colour);
    }
  }
}

std::pair<Axis, Axis> axes_of(const RatioPlot& plot) {
  double least_bytes = 0, most_bytes = 0;
  double least = kLeastRatio, most = kMostRatio;
  for (const RatioSeries& series : plot.series) {
    for (const auto& [bytes, ratio] : series.points) {
      CHECK(bytes > 0 && ratio > 0);
      const auto size = static_cast<double>(bytes);
      least_bytes = least_bytes > 0 ? std::min(least_bytes, size) : size;
      most_bytes = std::max(most_bytes, size);
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
  }
  CHECK(most_bytes > 0);
  const double margin = std::numbers::sqrt2;  // half a power of two to either side
  return {{least_bytes / margin, most_bytes * margin, kLeft, kWidth - kRight},
          {least / 1.03, most * 1.03, kHeight - kBottom, kTop}};
}

std::string size_ticks(const Axis& sizes) {
  const int first = static_cast<int>(std::ceil(std::log2(sizes.low)));
  const int last = static_cast<int>(std::floor(std::log2(sizes.high)));
  const int step = std::max(1, (last - first + kMostSizeTicks - 1) / kMostSizeTicks);
  std::string text;
  for (int power = first; power <= last; power += step) {
    const std::int64_t bytes = std::int64_t{1} << power;
    const double x = sizes.at(static_cast<double>(bytes));
    text += line(x, kTop, x, kHeight - kBottom, "stroke=\"#e5e5e5\"");
    text += words(x, kHeight - kBottom + 18, "text-anchor=\"middle\"", format_bytes(bytes));
  }
  return text;
}

std::string ratio_ticks(const Axis& ratios) {
  std::string text;
  double previous = ratios.low_at + kTickDistance;
  const double one_at = ratios.at(1);
  for (const double tick : kRatioTicks) {
    if (tick < ratios.low || tick > ratios.high) continue;
    const double y = ratios.at(tick);
    // The line of 1 has its label whatever is near it.
    const bool is_one = tick == 1;
    const bool has_room =
        previous - y >= kTickDistance && (std::abs(y - one_at) >= kTickDistance || tick > 1);
    if (!is_one && !has_room) continue;
    previous = y;
    text += line(kLeft, y, kWidth - kRight, y,
                 is_one ? "stroke=\"#666666\" stroke-width=\"1.5\"" : "stroke=\"#e5e5e5\"");
    text += words(kLeft - 8, y + 4, "text-anchor=\"end\"", fmt::format("{:g}", tick));
  }
  return text;
}

std::string series_shape(const RatioSeries& series, std::size_t index, const Axis& sizes,
                         const Axis& ratios) {
  std::string points, marks;
  for (const auto& [bytes, ratio] : series.points) {
    const double x = sizes.at(static_cast<double>(bytes)), y = ratios.at(ratio);
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x, y);
    marks += mark(index, x, y);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n",
                     points, kColours[index % kColours.size()]) +
         marks;
}

}  // namespace

std::string ratio_plot_svg(const RatioPlot& plot) {
  const auto [sizes, ratios] = axes_of(plot);
  const double height = kHeight + kLegendRow * static_cast<double>(plot.series.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, height);
  const double middle_x = (kLeft + kWidth - kRight) / 2;
  const double middle_y = (kTop + kHeight - kBottom) / 2;
  text += words(middle_x, 25, "text-anchor=\"middle\" font-size=\"15\"", plot.title);
  text += size_ticks(sizes) + ratio_ticks(ratios);
  text += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#333333\"/>\n",
      kLeft, kTop, kWidth - kLeft - kRight, kHeight - kTop - kBottom);
  text += words(middle_x, kHeight - kBottom + 40, "text-anchor=\"middle\"", plot.size_label);
  text += words(0, 0,
                fmt::format("text-anchor=\"middle\" transform=\"translate(20 {:.1f}) rotate(-90)\"",
                            middle_y),
                plot.ratio_label);
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    text += series_shape(plot.series[i], i, sizes, ratios);
    const double y = kHeight + kLegendRow * static_cast<double>(i);
    text += line(kLeft, y, kLeft + kLegendMark - 10, y,
                 fmt::format("stroke=\"{}\" stroke-width=\"1.5\"", kColours[i % kColours.size()]));
    text += mark(i, kLeft + kLegendMark / 2 - 5, y);
    text += words(kLeft + kLegendMark, y + 4, "text-anchor=\"start\"", plot.series[i].label);
  }
  return text + "</svg>\n";
}

}  // namespace espalier
