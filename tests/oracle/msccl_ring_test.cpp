// SPDX-License-Identifier: Apache-2.0
// MSCCL's interpreter against times measured on 8 MI300X: allgather rings of 1 to 8 channels and 1
// or 2 instances, three protocols, 1 KiB to 4 GiB. The constants of profile msccl_amd were fitted
// on these very rows, so this shows that one mechanism with one set of constants per protocol
// explains all of them, and not how well others are predicted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "scenarios/study.h"
#include "sim/simulator.h"
#include "tests/msccl_ring.h"
#include "tests/oracle/msccl_ring_times.h"
#include "tests/temp_file.h"

namespace espalier::oracle {
namespace {

struct Band {
  const char* name;
  std::int64_t below;  ///< sizes up to this
  double median;       ///< of what deviations may be at most, absolute
};

constexpr std::array<Band, 4> kBands = {{{"up to 32 KiB", 32 << 10, 0.15},
                                         {"to 1 MiB", 1 << 20, 0.08},
                                         {"to 16 MiB", 16 << 20, 0.06},
                                         {"above", std::int64_t{1} << 40, 0.05}}};

std::size_t band_of(std::int64_t size_bytes) {
  std::size_t band = 0;
  while (size_bytes > kBands[band].below) ++band;
  return band;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Outcome simulated(Study& study, const std::string& path, std::int64_t size_bytes) {
  Query query;
  query.topology = "mi300x";
  query.profile = "msccl";
  query.collective = Collective::allgather;
  query.in_place = true;
  query.algorithm = path;
  query.size_bytes = size_bytes;
  query.judge = size_bytes == kMeasuredSizes.back();
  Outcome outcome = study.ask(query);
  EXPECT_FALSE(outcome.skipped) << outcome.skipped.value_or("");
  EXPECT_TRUE(outcome.verified) << path;
  EXPECT_TRUE(outcome.program_note.empty()) << outcome.program_note;
  EXPECT_LE(outcome.fraction, 1) << path;  // nothing beats what no schedule can beat
  return outcome;
}

/// The deviations of one protocol, or of all, by band.
using ByBand = std::array<std::vector<double>, kBands.size()>;

std::string head_row() {
  std::string row = "| file |";
  for (const std::int64_t bytes : kMeasuredSizes) row += fmt::format(" {} |", describe_size(bytes));
  row += "\n|---|";
  for (std::size_t i = 0; i < kMeasuredSizes.size(); ++i) row += "---|";
  return row + "\n";
}

std::string median_row(const std::string& title, const ByBand& deviations) {
  std::string row = fmt::format("| {} |", title);
  for (const auto& of_band : deviations) row += fmt::format(" {:.1f} |", 100 * median(of_band));
  return row + "\n";
}

/// What stands in docs/validation.md between two marks.
std::string page_part(const std::string& page) {
  const std::string begin = "<!-- written by tests/oracle/msccl_ring_test.cpp -->\n";
  const std::size_t first = page.find(begin);
  if (first == std::string::npos) return {};
  const std::size_t from = first + begin.size();
  return page.substr(from, page.find("<!-- end -->\n", from) - from);
}

/// ESPALIER_UPDATE=1 writes them.
void expect_on_page(const std::string& tables) {
  const std::string path = std::string(ESPALIER_SOURCE_DIR) + "/docs/validation.md";
  std::string page = read_file(path);
  const std::string old = page_part(page);
  ASSERT_FALSE(old.empty()) << path;
  const char* update = std::getenv("ESPALIER_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") {
    write_file(path, page.replace(page.find(old), old.size(), tables));
  }
  EXPECT_EQ(page_part(read_file(path)), tables) << "ESPALIER_UPDATE=1 writes it";
}

TEST(MscclRing, MeetsWhatWasMeasured) {
  Simulator simulator;
  Study study(simulator, &simulator);
  std::vector<std::pair<std::string, ByBand>> by_protocol;
  ByBand all;
  std::array<double, kBands.size()> stated{};  // errors, which are those of the band
  std::string tables = head_row();
  for (const MeasuredRing& ring : kMeasuredRings) {
    const std::string path =
        temp_file(fmt::format("{}_{}_{}.xml", ring.protocol, ring.channels, ring.instances));
    write_file(path, msccl_allgather_ring(ring.protocol, 8, ring.channels, ring.instances));
    if (by_protocol.empty() || by_protocol.back().first != ring.protocol) {
      by_protocol.emplace_back(ring.protocol, ByBand());
    }
    tables += fmt::format("| {}, {}, {} |", ring.protocol,
                          counted(static_cast<std::size_t>(ring.channels), "channel"),
                          counted(static_cast<std::size_t>(ring.instances), "instance"));
    for (std::size_t i = 0; i < kMeasuredSizes.size(); ++i) {
      const Outcome outcome = simulated(study, path, kMeasuredSizes[i]);
      const double off = outcome.report.time_s * 1e6 / ring.times_us[i] - 1;
      const std::size_t band = band_of(kMeasuredSizes[i]);
      all[band].push_back(std::abs(off));
      by_protocol.back().second[band].push_back(std::abs(off));
      EXPECT_FALSE(outcome.error->is_estimate) << outcome.error->from;
      stated[band] = outcome.error->relative;
      EXPECT_LT(std::abs(off), 0.25) << path << ", " << kMeasuredSizes[i] << " bytes";
      const double percent = std::round(100 * off) + 0.0;  // not "-0"
      tables += fmt::format(" {:.8g} ({:+.0f}) |", ring.times_us[i], percent);
    }
    tables += "\n";
  }
  tables += "\n| median of the absolute deviation in percent |";
  std::string limits = "| limit |";
  for (const Band& band : kBands) {
    tables += fmt::format(" {} |", band.name);
    limits += fmt::format(" {:.0f} |", 100 * band.median);
  }
  tables += "\n|---|---|---|---|---|\n" + limits + "\n";
  for (const auto& [protocol, deviations] : by_protocol) tables += median_row(protocol, deviations);
  tables += median_row("all", all);
  for (std::size_t band = 0; band < kBands.size(); ++band) {
    EXPECT_LE(median(all[band]), kBands[band].median) << kBands[band].name;
    EXPECT_LE(median(all[band]), stated[band]) << kBands[band].name;
  }
  expect_on_page(tables);
}

}  // namespace
}  // namespace espalier::oracle
