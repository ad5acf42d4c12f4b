// SPDX-License-Identifier: Apache-2.0
#include "topologies/expected_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/median.h"

namespace espalier {
namespace {

/// Whether a row is about messages that such GPUs, links and ops move.
bool fits_message(const ComparedError& row, const Compared& what) {
  const bool is_model = std::ranges::any_of(row.models, [&](const std::string& start) {
    return start == "other" || what.model.starts_with(start);
  });
  return is_model && row.in_switch == what.in_switch && (what.in_fabric || !row.in_fabric) &&
         (row.above_bytes <= 0 || what.bytes > row.above_bytes) && what.bytes <= row.up_to_bytes;
}

/// Whether a row is about what is done with them.
bool fits_call(const ComparedError& row, const Compared& what) {
  const auto lists = [](const auto& all, const auto& one) {
    return all.empty() || std::ranges::find(all, one) != all.end();
  };
  const bool may_be_forced = std::ranges::all_of(what.forced, [&](const std::string& parameter) {
    return std::ranges::find(row.forced, parameter) != row.forced.end();
  });
  return lists(row.collectives, what.collective) && lists(row.algorithms, what.algorithm) &&
         lists(row.launches, what.launch) && may_be_forced && what.ranks >= row.min_ranks &&
         what.ranks <= row.max_ranks;
}

}  // namespace

const std::vector<SizeBand>& size_bands() {
  constexpr std::int64_t kKib = 1024, kMib = kKib * kKib;
  constexpr std::int64_t kSmall = 32 * kKib, kMiddle = kMib, kLarge = 16 * kMib;
  static const std::vector<SizeBand> bands = {
      {0, kSmall, "up to 32 KiB"},
      {kSmall, kMiddle, "up to 1 MiB"},
      {kMiddle, kLarge, "up to 16 MiB"},
      {kLarge, std::numeric_limits<std::int64_t>::max(), "above"},
  };
  return bands;
}

bool is_in(const SizeBand& band, std::int64_t bytes) {
  return (bytes > band.above_bytes || band.above_bytes == 0) && bytes <= band.up_to_bytes;
}

std::vector<BandDeviations> by_band(const std::vector<Deviation>& deviations) {
  std::vector<BandDeviations> all;
  for (const SizeBand& band : size_bands()) {
    std::vector<double> sizes;
    for (const Deviation& one : deviations) {
      if (is_in(band, one.bytes)) sizes.push_back(std::abs(one.relative));
    }
    if (sizes.empty()) continue;
    all.push_back({&band, sizes.size(), median(sizes), *std::ranges::max_element(sizes)});
  }
  return all;
}

ComparedError restricted_to(ComparedError row, const SizeBand& band) {
  row.above_bytes = std::max(row.above_bytes, static_cast<double>(band.above_bytes));
  if (&band != &size_bands().back()) {
    row.up_to_bytes = std::min(row.up_to_bytes, static_cast<double>(band.up_to_bytes));
  }
  return row;
}

ExpectedError expected_error(const std::vector<ComparedError>& errors, const Compared& what) {
  bool has_such_messages = false;
  for (const ComparedError& row : errors) {
    if (!fits_message(row, what)) continue;
    if (fits_call(row, what)) return {row.relative, row.compared, false};
    has_such_messages = true;
  }
  if (!has_such_messages) {
    return estimated_error("no measured times of such GPUs, links, ops and sizes were compared");
  }
  return estimated_error(
      "measured times of such GPUs, links, ops and sizes were compared, but of other collectives, "
      "algorithms, launches or numbers of ranks, or of a library that chose by itself");
}

ExpectedError estimated_error(std::string why, double relative) {
  return {relative, "estimate: " + std::move(why), true};
}

}  // namespace espalier
