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
#include <vector>

#include "core/file.h"
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

/// With ESPALIER_PRINT_RESIDUALS set, every deviation is printed, as docs/validation.md has them.
TEST(MscclRing, MeetsWhatWasMeasured) {
  Simulator simulator;
  Study study(simulator, &simulator);
  const bool prints = std::getenv("ESPALIER_PRINT_RESIDUALS") != nullptr;
  std::array<std::vector<double>, kBands.size()> deviations;
  std::array<double, kBands.size()> stated{};  // errors, which are those of the band
  for (const MeasuredRing& ring : kMeasuredRings) {
    const std::string path =
        temp_file(fmt::format("{}_{}_{}.xml", ring.protocol, ring.channels, ring.instances));
    write_file(path, msccl_allgather_ring(ring.protocol, 8, ring.channels, ring.instances));
    if (prints) fmt::print("{}_{}_{}", ring.protocol, ring.channels, ring.instances);
    for (std::size_t i = 0; i < kMeasuredSizes.size(); ++i) {
      const Outcome outcome = simulated(study, path, kMeasuredSizes[i]);
      const double off = outcome.report.time_s * 1e6 / ring.times_us[i] - 1;
      deviations[band_of(kMeasuredSizes[i])].push_back(std::abs(off));
      EXPECT_FALSE(outcome.error->is_estimate) << outcome.error->from;
      stated[band_of(kMeasuredSizes[i])] = outcome.error->relative;
      EXPECT_LT(std::abs(off), 0.25) << path << ", " << kMeasuredSizes[i] << " bytes";
      if (prints) fmt::print(" | {:+.1f}", 100 * off);
    }
    if (prints) fmt::print("\n");
  }
  for (std::size_t band = 0; band < kBands.size(); ++band) {
    EXPECT_LE(median(deviations[band]), kBands[band].median) << kBands[band].name;
    EXPECT_LE(median(deviations[band]), stated[band]) << kBands[band].name;
    if (prints) fmt::print("{}: {:.1f} %\n", kBands[band].name, 100 * median(deviations[band]));
  }
}

}  // namespace
}  // namespace espalier::oracle
