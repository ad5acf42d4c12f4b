// SPDX-License-Identifier: Apache-2.0
#include "report/ratio_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::Not;

RatioPlot plot() {
  return {"a < b & c",
          "size",
          "ratio",
          {{"first", {{1 << 10, 1.0}, {1 << 20, 2.0}}}, {"second", {{1 << 15, 0.9}}}}};
}

/// From half a power of two below 1 KiB to half of one above 1 MiB there are 11 powers on 805
/// pixels, so 1 KiB is at 70 + 805 / 22 = 106.6 and 1 MiB at 875 - 36.6 = 838.4. Ratios go from
/// 0.8 / 1.03 to 2 * 1.03 on 315 pixels, upwards from 360: 1 is at
/// 360 - 315 ln(1.03 / 0.8) / ln(2.06 * 1.03 / 0.8) = 278.4, and 2 at
/// 45 + 315 ln(1.03) / ln(2.06 * 1.03 / 0.8) = 54.5.
TEST(RatioPlots, HaveTwoLogarithmicAxes) {
  const std::string svg = ratio_plot_svg(plot());
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"106.6\" cy=\"278.4\""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"838.4\" cy=\"54.5\""));
  EXPECT_THAT(svg, HasSubstr("points=\"106.6,278.4 838.4,54.5\""));
  for (const char* label : {">1KiB<", ">32KiB<", ">1MiB<", ">1<", ">2<", ">size<", ">ratio<"}) {
    EXPECT_THAT(svg, HasSubstr(label));
  }
}

TEST(RatioPlots, NameTheirSeries) {
  const std::string svg = ratio_plot_svg(plot());
  EXPECT_THAT(svg, HasSubstr(">first</text>"));
  EXPECT_THAT(svg, HasSubstr(">second</text>"));
  EXPECT_THAT(svg, HasSubstr("width=\"7\" height=\"7\""));  // squares are the second's marks
  EXPECT_THAT(svg, HasSubstr(">a &lt; b &amp; c</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("a < b")));
  EXPECT_EQ(svg, ratio_plot_svg(plot()));
}

}  // namespace
}  // namespace espalier
