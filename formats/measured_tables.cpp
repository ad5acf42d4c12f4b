// SPDX-License-Identifier: Apache-2.0
#include "formats/measured_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/units.h"
#include "core/words.h"

namespace espalier {
namespace {

constexpr std::size_t kMostNotes = 40;

std::string name_of(const MeasuredTable& table) {
  std::string name = table.test.empty() ? "a test that is not named" : printable(table.test);
  if (table.collective) name += fmt::format(" ({})", to_string(*table.collective));
  return name;
}

/// "8 ranks on 2 hosts, NVIDIA A100-SXM4-80GB; nccl-tests 2.18.3, NCCL 2.27.7; 20 iterations".
std::string machine_of(const MeasuredTable& table) {
  std::string text = table.ranks == 0 ? "an unknown number of ranks"
                                      : counted(static_cast<std::size_t>(table.ranks), "rank");
  if (table.hosts() > 0) {
    text += " on " + counted(static_cast<std::size_t>(table.hosts()), "host");
  }
  std::set<std::string> models;
  for (const MeasuredRank& one : table.listed) models.insert(printable(one.model));
  for (const std::string& model : models) text += ", " + model;
  for (const std::string* version : {&table.tests, &table.library}) {
    if (!version->empty()) text += "; " + printable(*version);
  }
  if (table.iterations >= 0) {
    text += "; " + counted(static_cast<std::size_t>(table.iterations), "iteration");
  }
  if (table.graph > 0) text += ", in CUDA graphs";
  return text;
}

std::string half_text(const std::optional<MeasuredTime>& half) {
  if (!half) return fmt::format("{:>10}  {:>8}  {:>8}", "-", "-", "-");
  const std::string wrong = half->wrong ? fmt::format("{:g}", *half->wrong) : "-";
  return fmt::format("{:>10}  {:>8}  {:>8}", format_seconds(half->time_s),
                     format_gbps(half->busbw_gbps), wrong);
}

void describe_table(const MeasuredTable& table, std::string& text) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{}: {}\n", name_of(table), machine_of(table));
  if (!table.rows.empty()) {
    const auto [least, most] =
        std::ranges::minmax(table.rows, {}, [](const MeasuredRow& row) { return row.bytes; });
    std::string sizes = describe_size(least.bytes);
    if (most.bytes > least.bytes) sizes += " to " + describe_size(most.bytes);
    fmt::format_to(out, "{} of {}\n", counted(table.rows.size(), "row"), sizes);
    fmt::format_to(out, "{:>10}  {:>28}   {:>28}\n", "", "out of place", "in place");
    fmt::format_to(out, "{:>10}  {:>10}  {:>8}  {:>8}   {:>10}  {:>8}  {:>8}\n", "size", "time",
                   "busbw", "wrong", "time", "busbw", "wrong");
  }
  for (const MeasuredRow& row : table.rows) {
    fmt::format_to(out, "{:>10}  {}   {}\n", format_bytes(row.bytes), half_text(row.out_of_place),
                   half_text(row.in_place));
  }
  if (const auto wrong = table.wrong(); wrong && *wrong > 0) {
    fmt::format_to(out, "{:g} values are wrong\n", *wrong);
  }
  for (std::size_t i = 0; i < std::min(kMostNotes, table.notes.size()); ++i) {
    fmt::format_to(out, "note: {}\n", printable(table.notes[i]));
  }
  if (table.notes.size() > kMostNotes) {
    fmt::format_to(out, "note: {} more notes\n", table.notes.size() - kMostNotes);
  }
}

}  // namespace

int MeasuredTable::hosts() const {
  std::set<std::string> names;
  for (const MeasuredRank& one : listed) {
    if (!one.host.empty()) names.insert(one.host);
  }
  return static_cast<int>(names.size());
}

int MeasuredTable::ranks_per_process() const {
  std::map<std::pair<std::string, std::int64_t>, int> counts;
  for (const MeasuredRank& one : listed) {
    if (one.process >= 0) ++counts[{one.host, one.process}];
  }
  if (counts.empty()) return threads > 0 && gpus_per_thread > 0 ? threads * gpus_per_thread : 0;
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->second;
}

std::optional<double> MeasuredTable::wrong() const {
  std::optional<double> sum;
  for (const MeasuredRow& row : rows) {
    for (const std::optional<MeasuredTime>& half : {row.out_of_place, row.in_place}) {
      if (half && half->wrong) sum = sum.value_or(0) + *half->wrong;
    }
  }
  return sum;
}

std::string describe(const MeasuredTables& measured) {
  std::string text;
  for (const MeasuredTable& table : measured.tables) {
    if (!text.empty()) text += "\n";
    describe_table(table, text);
  }
  return text;
}

}  // namespace espalier
