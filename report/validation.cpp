// SPDX-License-Identifier: Apache-2.0
#include "report/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/units.h"
#include "core/words.h"
#include "report/markdown.h"
#include "run/launch.h"
#include "topologies/expected_error.h"

namespace espalier {
namespace {

/// Those of one block, machine and algorithm: neighbours.
std::vector<std::span<const ValidatedTime>> series_of(const std::vector<ValidatedTime>& times) {
  std::vector<std::span<const ValidatedTime>> all;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= times.size(); ++i) {
    const bool is_same = i < times.size() && times[i].block == times[first].block &&
                         times[i].query.topology == times[first].query.topology &&
                         times[i].query.profile == times[first].query.profile &&
                         times[i].query.algorithm == times[first].query.algorithm;
    if (is_same) continue;
    if (i > first) all.push_back(std::span(times).subspan(first, i - first));
    first = i;
  }
  return all;
}

/// The largest medians, in percent and by band, that the project allows itself.
using Limits = std::array<double, 4>;

/// By runtime: tighter where more is known of it. None for one that has no limits.
const Limits* limits_of(std::string_view runtime) {
  static const std::map<std::string_view, Limits> limits = {
      {"nccl", {8, 8, 7, 5}}, {"kernel", {10, 10, 8, 5}}, {"msccl", {15, 8, 6, 5}}};
  const auto found = limits.find(runtime);
  return found == limits.end() ? nullptr : &found->second;
}

std::string runtime_of(const ValidatedTime& time) {
  return profile_word(time.query.profile).runtime;
}

double one_digit(double percent) { return std::round(10 * percent) / 10; }

/// " 3.1 of 8 (6.2) |": median, limit and largest, in percent; a median above its limit is bold.
std::string band_text(const BandDeviations& found, std::optional<double> limit) {
  const double median = one_digit(100 * found.median);
  std::string text = fmt::format("{:.1f}", median);
  if (limit) text += fmt::format(" of {:.0f}", *limit);
  if (limit && median > *limit) text = fmt::format("**{}**", text);
  return fmt::format(" {} ({:.1f}) |", text, 100 * found.largest);
}

/// The cells of all bands; empty without points.
std::string bands_text(std::span<const ValidatedTime> times) {
  std::vector<Deviation> deviations;
  for (const ValidatedTime& time : times) {
    deviations.push_back({time.query.size_bytes, time.error()});
  }
  const std::vector<BandDeviations> known = by_band(deviations);
  const Limits* const limits = limits_of(runtime_of(times.front()));
  std::string text;
  for (std::size_t i = 0; i < size_bands().size(); ++i) {
    const auto found = std::ranges::find(known, &size_bands()[i], &BandDeviations::band);
    if (found == known.end()) {
      text += "  |";
      continue;
    }
    text += band_text(*found, limits == nullptr ? std::nullopt : std::optional(limits->at(i)));
  }
  return text;
}

/// A row of several series of a runtime together; empty for one alone.
std::string pooled_row(std::string_view which, const std::vector<ValidatedTime>& times) {
  const std::size_t series = series_of(times).size();
  if (series < 2) return {};
  return fmt::format("| {} {} series, {} times | | profile `{}` | |{} | |\n", which, series,
                     times.size(), runtime_of(times.front()), bands_text(times));
}

/// Rows of all series of a runtime together, where it has several: what its limits are about. A
/// median of few times is easily moved by one of them. Beneath it those on which nothing was
/// fitted, and of these the ones whose source has no times at all that something was fitted on:
/// other computers, which say most of what to expect of yet others.
std::string pooled_rows(const std::vector<ValidatedTime>& times) {
  std::map<std::string, std::vector<ValidatedTime>> by_runtime;
  for (const ValidatedTime& time : times) by_runtime[runtime_of(time)].push_back(time);
  std::string rows;
  for (const auto& [unused, pooled] : by_runtime) {
    rows += pooled_row("all", pooled);
    std::set<std::string> fitted_sources;
    for (const ValidatedTime& time : pooled) {
      if (!time.fitted.empty()) fitted_sources.insert(time.source);
    }
    if (fitted_sources.empty()) continue;
    std::vector<ValidatedTime> unfitted = pooled;
    std::erase_if(unfitted, [](const ValidatedTime& time) { return !time.fitted.empty(); });
    rows += pooled_row("nothing fitted:", unfitted);
    std::vector<ValidatedTime> others = unfitted;
    std::erase_if(others,
                  [&](const ValidatedTime& time) { return fitted_sources.contains(time.source); });
    if (others.size() < unfitted.size()) {
      rows += pooled_row("nothing fitted, other computers:", others);
    }
  }
  return rows;
}

std::string points_text(std::span<const ValidatedTime> times) {
  std::vector<std::string> points;
  for (const ValidatedTime& time : times) {
    points.push_back(fmt::format("{} {:.4g} / {:.4g} ({:+.0f} %)",
                                 format_bytes(time.query.size_bytes), time.predicted_s * 1e6,
                                 time.measured_s * 1e6, 100 * time.error()));
  }
  return join(points, "; ");
}

}  // namespace

std::string validation_markdown(const std::vector<ValidatedTime>& times) {
  std::string text = "| what | machine | algorithm | launch |";
  for (const SizeBand& band : size_bands()) text += fmt::format(" {} |", band.title);
  text += " fitted on these | source |\n|---|---|---|---|";
  for (std::size_t i = 0; i < size_bands().size(); ++i) text += "---|";
  text += "---|---|\n";
  std::string all = "\n";
  for (const std::span<const ValidatedTime> series : series_of(times)) {
    const ValidatedTime& first = series.front();
    text += fmt::format("| {} | `{}` | `{}` | {} |", markdown_cell(first.block),
                        markdown_cell(first.query.topology), markdown_cell(first.query.algorithm),
                        to_string(first.query.launch));
    text += bands_text(series);
    text +=
        fmt::format(" {} | {} |\n", first.fitted.empty() ? "nothing" : markdown_cell(first.fitted),
                    markdown_cell(first.source));
    all += fmt::format("- {}: {}\n", first.block, points_text(series));
  }
  return text + pooled_rows(times) + all;
}

}  // namespace espalier
