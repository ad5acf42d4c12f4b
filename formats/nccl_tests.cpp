// SPDX-License-Identifier: Apache-2.0
// The output of nccl-tests and rccl-tests, of all versions, in whatever a log has around it: lines
// of NCCL, of the launcher, prefixes of each line.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/words.h"
#include "formats/format.h"
#include "formats/measured_tables.h"
#include "formats/nccl_tests_parts.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxRows = 1'000'000;
constexpr std::size_t kMaxListed = 100'000;
constexpr std::size_t kMaxCopied = 1'000'000;

using Words = std::vector<std::string_view>;

/// From the first word that is `first` and is followed by `second`; empty where there is none.
Words from(const Words& words, std::string_view first, std::string_view second) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == first && words[i + 1] == second) {
      return {words.begin() + static_cast<std::ptrdiff_t>(i), words.end()};
    }
  }
  return {};
}

bool contains(const Words& words, std::string_view word) {
  return std::ranges::count(words, word) > 0;
}

/// "# nThread 1 nGpus 8 ..." of nccl-tests, "# nThreads: 1 nGpus: 1 ..." of rccl-tests.
bool is_launch(const Words& words) {
  return contains(words, "nThread") || contains(words, "nThreads:");
}

class Reader {
 public:
  explicit Reader(const FormatText& given) : given_(given) {}

  MeasuredTables read() {
    std::size_t begin = 0;
    for (line_ = 1; begin < given_.text.size(); ++line_) {
      const std::size_t end = std::min(given_.text.find('\n', begin), given_.text.size());
      read_line(words_of(given_.text.substr(begin, end - begin)));
      begin = end + 1;
    }
    finish();
    const bool has_rows = std::ranges::any_of(
        read_.tables, [](const MeasuredTable& table) { return !table.rows.empty(); });
    if (!has_rows) refuse();
    read_.file = given_.file;
    return std::move(read_);
  }

 private:
  void read_line(const Words& words) {
    if (words.empty()) return;
    if (read_introduction(words) || read_facts(words)) return;
    if (const auto columns = parse_columns(words)) {
      if (has_heading_ || !table_.rows.empty()) next_table(true);
      columns_ = *columns;
      has_heading_ = true;
      in_list_ = false;
      return;
    }
    if (words.back() == "..." && words.size() <= 3) {
      if (in_list_) is_shortened_ = true;
      if (!table_.rows.empty()) note("rows are left out here");
      return;
    }
    if (has_heading_ && contains(words, "(elements)")) {
      if (contains(words, "(us)")) columns_.time_unit_s = 1e-6;
      if (contains(words, "(ms)")) columns_.time_unit_s = 1e-3;
      return;
    }
    if (auto read = parse_row(words, columns_)) add_row(std::move(*read));
  }

  /// Lines that begin another run.
  bool read_introduction(const Words& words) {
    if (const Words at = from(words, "test", "starting:"); at.size() > 2) {
      if (has_begun()) next_table();
      begin_table();
      table_.test = at[2];
      table_.collective = collective_of_test(table_.test);
      return true;
    }
    for (const std::string_view name : {"nccl-tests", "rccl-tests"}) {
      if (const Words at = from(words, name, "version"); at.size() > 2) {
        if (has_begun() || !table_.tests.empty()) next_table();
        begin_table();
        table_.tests = fmt::format("{} {}", name, at[2].substr(0, 40));
        read_linked_library(at);
        return true;
      }
    }
    if (is_launch(words)) {
      if (table_.threads >= 0) next_table();
      begin_table();
      parse_launch(words, table_);
      return true;
    }
    if (!from(words, "Using", "devices").empty()) {
      if (!table_.listed.empty()) next_table();
      begin_table();
      in_list_ = true;
      return true;
    }
    return false;
  }

  /// "nccl-library=22907" beside the version of the tests. What the library says of itself counts.
  void read_linked_library(const Words& words) {
    constexpr std::string_view kKey = "nccl-library=";
    linked_library_.clear();
    for (const std::string_view word : words) {
      if (!word.starts_with(kKey)) continue;
      const auto number = parse_whole(word.substr(kKey.size()), 1000, 1'000'000);
      if (number) linked_library_ = library_of_number(static_cast<int>(*number));
    }
  }

  /// Lines that say something about the run.
  bool read_facts(const Words& words) {
    if (contains(words, "Rank") && contains(words, "device")) {
      auto rank = parse_rank(words);
      if (rank && !is_over_ && table_.rows.empty() && table_.listed.size() < kMaxListed) {
        begin_table();
        in_list_ = true;
        if (rank->model.ends_with("...")) is_shortened_ = true;
        table_.listed.push_back(std::move(*rank));
        return true;
      }
    }
    for (const std::string_view name : {"NCCL", "RCCL"}) {
      if (const Words at = from(words, name, "version"); at.size() > 2 && table_.library.empty()) {
        if (is_over_) next_table();
        table_.library = fmt::format("{} {}", name, at[2].substr(0, 60));
        return true;
      }
    }
    if (const Words at = from(words, "Out", "of"); at.size() > 5 && at[2] == "bounds") {
      table_.out_of_bounds = parse_whole(at[5], 0, std::int64_t{1} << 62);
      return true;
    }
    if (const Words at = from(words, "bus", "bandwidth"); at.size() > 3 && at[2] == ":") {
      const auto average = parse_figure(at[3]);
      if (average) table_.average_busbw_gbps = average->value;
      is_over_ = true;
      return true;
    }
    return false;
  }

  void add_row(NcclTestsRow read) {
    if (is_over_) next_table();
    begin_table();
    in_list_ = false;
    read.row.line = line_;
    if (!read.torn.empty()) {
      torn_.add({given_.file, line_, 0}, "the row is torn: " + read.torn);
      note("the row is torn: " + read.torn);
      return;
    }
    if (++rows_ > kMaxRows) fail(fmt::format("more than {} rows", kMaxRows));
    table_.rows.push_back(std::move(read.row));
  }

  /// Whether the table at hand has anything that only one run can have.
  bool has_begun() const {
    return is_over_ || has_heading_ || !table_.test.empty() || table_.threads >= 0 ||
           !table_.listed.empty() || !table_.rows.empty();
  }
  [[noreturn]] void fail(std::string message) const {
    throw Error(ErrorKind::input, {{"", std::move(message), "", {given_.file, line_, 0}}});
  }
  void begin_table() {
    if (table_.line == 0) table_.line = line_;
  }
  void note(const std::string& text) {
    table_.notes.push_back(fmt::format("line {}: {}", line_, text));
  }

  /// \p same_run: another heading in the same run, whose launch and ranks are the same.
  void next_table(bool same_run = false) {
    const bool is_same = same_run && !is_over_;
    MeasuredTable next;
    if (is_same) {
      // Ranks are kept once per table.
      copied_ += table_.listed.size();
      if (copied_ > kMaxCopied) fail(fmt::format("more than {} ranks in all tables", kMaxCopied));
      next = table_;
      next.rows.clear();
      next.notes.clear();
      next.average_busbw_gbps.reset();
    }
    const bool was_shortened = is_shortened_;
    finish();
    table_ = std::move(next);
    table_.line = line_;
    columns_ = {};
    has_heading_ = in_list_ = is_over_ = false;
    is_shortened_ = is_same && was_shortened;
  }

  /// Concludes the table at hand, if there is anything in it.
  void finish() {
    const bool has_any = !table_.rows.empty() || !table_.notes.empty() || !table_.listed.empty() ||
                         table_.threads >= 0;
    if (!has_any) return;
    if (table_.library.empty()) table_.library = linked_library_;
    count_ranks();
    if (!has_heading_ && !table_.rows.empty()) {
      table_.notes.push_back("there is no heading: columns are known by their number and figures");
    }
    check_table(table_, columns_.time_unit_s);
    read_.tables.push_back(std::move(table_));
    table_ = {};
  }

  void count_ranks() {
    if (table_.listed.empty()) return;
    const int group = table_.listed.front().group;
    std::size_t ranks = 0, others = 0;
    for (const MeasuredRank& one : table_.listed) ++(one.group == group ? ranks : others);
    if (others > 0) {
      table_.notes.push_back(fmt::format(
          "{} ranks are in other groups than the first, whose times these are", others));
    }
    if (is_shortened_) {
      table_.notes.push_back("the list of ranks is shortened");
    } else {
      table_.ranks = static_cast<int>(ranks);
    }
  }

  [[noreturn]] void refuse() const {
    if (!torn_.empty()) {
      std::vector<Diagnostic> all = torn_.all();
      all.back().suggestion =
          "no row is whole: other output is in the middle of each; NCCL_DEBUG_FILE=nccl.%h.%p "
          "keeps NCCL's out of the table";
      throw Error(ErrorKind::input, all);
    }
    throw Error(
        ErrorKind::input,
        {{"",
          "the output of nccl-tests has no rows of results",
          "expected rows such as '1048576  262144  float  sum  -1  41.2  25.4  44.5  0 ...'",
          {given_.file, 0, 0}}});
  }

  const FormatText& given_;
  MeasuredTables read_;
  MeasuredTable table_;  ///< at hand
  std::string linked_library_;
  NcclTestsColumns columns_;
  int line_ = 0;
  std::size_t rows_ = 0;
  std::size_t copied_ = 0;  ///< ranks, from table to table of a run
  bool has_heading_ = false;
  bool in_list_ = false;  ///< of ranks
  bool is_shortened_ = false;
  bool is_over_ = false;  ///< what stands behind a table was there
  DiagnosticList torn_;
};

MeasuredTables read_tables(const FormatText& given) {
  if (given.text.size() > kMaxBytes) {
    throw Error(ErrorKind::input,
                {{"",
                  fmt::format("the text has {} bytes, more than the {} that are read",
                              given.text.size(), kMaxBytes),
                  "",
                  {given.file, 0, 0}}});
  }
  const std::string_view text = trim(given.text);
  if (text.starts_with("{") || text.starts_with("[\n") || text.starts_with("[{")) {
    return read_json_tables(given.text, given.file);
  }
  return Reader(given).read();
}

/// By lines that only these tests print, or by whole rows where a log is cut down to these.
bool looks_like_nccl_tests(std::string_view text) {
  const std::string_view head = text.substr(0, std::min<std::size_t>(text.size(), 1'000'000));
  const std::string_view start = trim(head.substr(0, 4096));
  if (start.starts_with("<")) return false;
  if (start.starts_with("{") || start.starts_with("[{") || start.starts_with("[\n")) {
    for (const std::string_view key : {"\"out_of_place\"", "\"average_bus_bandwidth\"", "\"busBw\"",
                                       "\"espalier.report/", "\"espalier.compare/"}) {
      if (head.find(key) != std::string_view::npos) return true;
    }
    return false;
  }
  for (const std::string_view mark :
       {"# nThread", "Collective test starting: ", "# Avg bus bandwidth"}) {
    if (head.find(mark) != std::string_view::npos) return true;
  }
  if (head.find(" algbw") != std::string_view::npos &&
      head.find(" busbw") != std::string_view::npos) {
    return true;
  }
  std::size_t begin = 0;
  for (int lines = 0; lines < 1000 && begin < head.size(); ++lines) {
    const std::size_t end = std::min(head.find('\n', begin), head.size());
    const std::size_t length = std::min<std::size_t>(end - begin, 1000);
    const auto row = parse_row(words_of(head.substr(begin, length)), {});
    if (row && row->torn.empty()) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

const Format& nccl_tests_format() {
  static const Format format = {
      .name = "nccl-tests",
      .title = "measured times of nccl-tests and rccl-tests, as text or JSON, and our own reports",
      .recognises = looks_like_nccl_tests,
      .read_tables = read_tables};
  return format;
}

}  // namespace espalier
