// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "core/error.h"
#include "core/words.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
/// What the plugin reads of a line at once, and fields that it takes of one.
constexpr std::size_t kMaxLine = 254;
constexpr std::size_t kMinFields = 8;
constexpr std::size_t kMaxFields = 10;
constexpr std::size_t kMaxRows = 10'000;  ///< pairs of which are compared
constexpr int kMaxChannels = 64;
constexpr int kMaxRanks = 1 << 20;

/// Algorithms by the name that the plugin knows, with the version of NCCL that brought each, and
/// the collectives that NCCL uses it for (src/graph/tuning.cc).
struct Algorithm {
  std::string_view name;
  int minor;  ///< 2.minor
  bool allreduce;
  bool blocked;      ///< allgather and reducescatter
  bool rooted;       ///< broadcast and reduce
  bool simple_only;  ///< no other protocol
};
constexpr std::array kAlgorithms = {Algorithm{"tree", 4, true, false, false, false},
                                    Algorithm{"ring", 0, true, true, true, false},
                                    Algorithm{"collnet_direct", 14, true, true, false, true},
                                    Algorithm{"collnet_chain", 14, true, false, false, true},
                                    Algorithm{"nvls", 17, true, true, false, true},
                                    Algorithm{"nvls_tree", 18, true, false, false, true},
                                    Algorithm{"pat", 23, false, true, false, true}};
constexpr std::array<std::string_view, 3> kProtocols = {"ll", "ll128", "simple"};
constexpr std::array kCollectives = {Collective::broadcast, Collective::reduce,
                                     Collective::allgather, Collective::reducescatter,
                                     Collective::allreduce};

const Algorithm* find_algorithm(std::string_view name) {
  const auto found = std::ranges::find(kAlgorithms, name, &Algorithm::name);
  return found == kAlgorithms.end() ? nullptr : &*found;
}

template <class Values, class Name>
std::vector<std::string> names_of(const Values& values, const Name& name) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(name(value));
  return names;
}

bool serves(const Algorithm& algorithm, Collective collective) {
  if (collective == Collective::allreduce) return algorithm.allreduce;
  return info(collective).rooted ? algorithm.rooted : algorithm.blocked;
}

std::int64_t last_byte(const TunerRow& row) {
  return row.max_bytes < 0 ? std::numeric_limits<std::int64_t>::max() : row.max_bytes;
}

/// Whether there is a call to which both rows apply.
bool overlap(const TunerRow& a, const TunerRow& b) {
  const auto meet = [](int x, int y) { return x == -1 || y == -1 || x == y; };
  return a.collective == b.collective && a.min_bytes <= last_byte(b) &&
         b.min_bytes <= last_byte(a) && meet(a.nodes, b.nodes) && meet(a.ranks, b.ranks) &&
         meet(a.pipe_ops, b.pipe_ops) && meet(a.registered, b.registered);
}

/// Rows to which an earlier one leaves only a part of their calls, each with one such, in order.
std::vector<std::pair<std::size_t, std::size_t>> meeting_rows(const std::vector<TunerRow>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple(rows[i].collective, rows[i].min_bytes, i);
  });
  std::map<std::size_t, std::size_t> first_of;
  for (std::size_t a = 0; a < order.size(); ++a) {
    const TunerRow& one = rows[order[a]];
    for (std::size_t b = a + 1; b < order.size(); ++b) {
      const TunerRow& other = rows[order[b]];
      if (other.collective != one.collective || other.min_bytes > last_byte(one)) break;
      if (overlap(one, other)) {
        first_of.try_emplace(std::max(order[a], order[b]), std::min(order[a], order[b]));
      }
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (const auto& [second, first] : first_of) found.emplace_back(first, second);
  return found;
}

std::string line_of(const TunerRow& row) {
  std::string line =
      fmt::format("{},{},{},{},{},{},{},{}", to_string(row.collective), row.min_bytes,
                  last_byte(row), row.algorithm, row.protocol, row.channels, row.nodes, row.ranks);
  if (row.pipe_ops != -1 || row.registered != -1) {
    line += fmt::format(",{},{}", row.pipe_ops, row.registered);
  }
  return line;
}

/// "2.27.3": 27.
int minor_of(const std::string& version) {
  const std::vector<std::string> parts = split(version, '.');
  int minor = -1;
  for (const std::string& part : parts) {
    const bool is_number = !part.empty() && part.size() < 4 &&
                           std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) minor = -2;
  }
  if (minor == -1 && parts.size() >= 2 && parts.size() <= 3 && parts[0] == "2") {
    return std::stoi(parts[1]);
  }
  throw Error(ErrorKind::usage, fmt::format("{} is no version of NCCL 2", quote(version)),
              "write it as 2.27.3");
}

class Checker {
 public:
  Checker(const std::vector<TunerRow>& rows, const std::string& version)
      : rows_(rows), version_(version), minor_(minor_of(version)) {}

  void check() {
    if (rows_.size() > kMaxRows) {
      throw Error(ErrorKind::unsupported, fmt::format("{} are more than the {} of a file",
                                                      counted(rows_.size(), "row"), kMaxRows));
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) check(i);
    check_overlaps();
    problems_.throw_if_any(ErrorKind::unsupported);
  }

 private:
  void problem(std::size_t row, const std::string& text, std::string suggestion = {}) {
    problems_.add({}, fmt::format("row {}: {}", row + 1, text), std::move(suggestion));
  }

  void check_range(std::size_t row, const char* what, int value, int low, int high) {
    if (value == -1 || (value >= low && value <= high)) return;
    problem(row, fmt::format("{} is {}, but must be -1 or from {} to {}", what, value, low, high));
  }

  void check(std::size_t index) {
    const TunerRow& row = rows_[index];
    if (!is_tuned_by_plugin(row.collective)) {
      problem(index, fmt::format("the plugin has no rows for {}", to_string(row.collective)));
      return;
    }
    if (row.min_bytes < 0 || row.min_bytes > last_byte(row)) {
      problem(index, fmt::format("sizes from {} to {} are no range", row.min_bytes, row.max_bytes));
    }
    check_range(index, "the number of channels", row.channels, 1, kMaxChannels);
    check_range(index, "the number of nodes", row.nodes, 1, kMaxRanks);
    check_range(index, "the number of ranks", row.ranks, 1, kMaxRanks);
    check_range(index, "the number of operations", row.pipe_ops, 1, kMaxRanks);
    check_range(index, "whether buffers are registered", row.registered, 0, 1);
    if (row.ranks != -1 && row.nodes > row.ranks) {
      problem(index, fmt::format("{} nodes have no {} ranks", row.nodes, row.ranks));
    }
    check_algorithm(index);
  }

  void check_algorithm(std::size_t index) {
    const TunerRow& row = rows_[index];
    if (std::ranges::count(kProtocols, row.protocol) == 0) {
      problem(index, fmt::format("{} is no protocol of NCCL", quote(row.protocol)),
              "one of: ll, ll128, simple");
    }
    const Algorithm* algorithm = find_algorithm(row.algorithm);
    if (algorithm == nullptr) {
      problem(index, fmt::format("{} is no algorithm of NCCL", quote(row.algorithm)),
              did_you_mean(row.algorithm, names_of(kAlgorithms, [](const Algorithm& one) {
                             return std::string(one.name);
                           })));
      return;
    }
    if (algorithm->minor > minor_) {
      problem(index, fmt::format("{} came with NCCL 2.{}, and {} is older", row.algorithm,
                                 algorithm->minor, version_));
    }
    if (!serves(*algorithm, row.collective)) {
      problem(index,
              fmt::format("NCCL has no {} for {}", row.algorithm, to_string(row.collective)));
    }
    if (algorithm->simple_only && row.protocol != "simple") {
      problem(index,
              fmt::format("{} uses the protocol simple, not {}", row.algorithm, row.protocol));
    }
  }

  /// The plugin takes the first row that applies: an order that the next editor may not keep.
  void check_overlaps() {
    for (const auto& [first, second] : meeting_rows(rows_)) {
      problem(second, fmt::format("it applies to calls that row {} applies to", first + 1));
    }
  }

  const std::vector<TunerRow>& rows_;
  const std::string& version_;
  int minor_;
  DiagnosticList problems_;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  TunerFile parse() {
    if (text_.size() > kMaxBytes) {
      problem(0, fmt::format("the file has {} bytes, more than the {} that are read", text_.size(),
                             kMaxBytes));
      problems_.throw_if_any();
    }
    int line = 0;
    for (const std::string& whole : split(text_, '\n')) {
      ++line;
      const std::string_view content = trim(whole);
      if (whole.size() > kMaxLine) {
        problem(line, fmt::format("the line has {} characters, and the plugin reads {} at once",
                                  whole.size(), kMaxLine));
      } else if (!content.empty() && !whole.starts_with('#')) {
        read_line(std::string(content), line);
      }
    }
    if (lines_.size() > kMaxRows) {
      problem(lines_[kMaxRows], fmt::format("the file has more than {} rows", kMaxRows));
    }
    problems_.throw_if_any();
    note_overlaps();
    return std::move(found_);
  }

 private:
  void problem(int line, std::string message, std::string suggestion = {}) {
    problems_.add({file_, line, 0}, std::move(message), std::move(suggestion));
  }
  void note(int line, const std::string& text) {
    found_.notes.push_back(fmt::format("{}:{}: {}", file_, line, text));
  }

  void read_line(const std::string& text, int line) {
    if (text.starts_with('#')) {
      problem(line,
              "a comment begins with # in the first column, or the plugin takes it for a row");
      return;
    }
    std::vector<std::string> fields;
    for (const std::string& field : split(text, ',')) fields.emplace_back(trim(field));
    if (fields[0] == "collective_type") {
      note(line, "the plugin takes the names of columns for a row, of messages of 0 bytes");
      return;
    }
    if (fields.size() > 1 && fields[1] == "size_bytes") {
      problem(line, "these are measurements, of which a tuner's rows are made, and no such rows",
              "NCCL's scripts/optimize_config.py makes them");
      problems_.throw_if_any();
    }
    if (fields.size() < kMinFields || fields.size() > kMaxFields) {
      problem(line, fmt::format("a row has {} to {} fields, and this one {}", kMinFields,
                                kMaxFields, fields.size()));
      return;
    }
    TunerRow row;
    read_names(fields, line, row);
    row.min_bytes =
        number(fields[1], "the smallest size", line, 0, std::numeric_limits<std::int64_t>::max());
    row.max_bytes =
        number(fields[2], "the largest size", line, 0, std::numeric_limits<std::int64_t>::max());
    if (row.max_bytes == std::numeric_limits<std::int64_t>::max()) row.max_bytes = -1;
    if (row.min_bytes > last_byte(row)) {
      problem(line,
              fmt::format("the smallest size, {}, is above the largest, {}", fields[1], fields[2]));
    }
    row.channels = whole(fields[5], "the number of channels", line, kMaxChannels);
    row.nodes = whole(fields[6], "the number of nodes", line, kMaxRanks);
    row.ranks = whole(fields[7], "the number of ranks", line, kMaxRanks);
    if (fields.size() > 8) row.pipe_ops = whole(fields[8], "numPipeOps", line, kMaxRanks);
    if (fields.size() > 9) row.registered = whole(fields[9], "regBuff", line, 1);
    if (row.channels == -1) {
      note(line, "the plugin asks for one channel where a row has -1, whatever its README says");
    }
    const Algorithm* algorithm = find_algorithm(row.algorithm);
    if (algorithm != nullptr && !serves(*algorithm, row.collective)) {
      note(line, fmt::format("NCCL has no {} for {}: the row has no effect", row.algorithm,
                             to_string(row.collective)));
    }
    found_.rows.push_back(std::move(row));
    lines_.push_back(line);
  }

  void read_names(const std::vector<std::string>& fields, int line, TunerRow& row) {
    const auto collective =
        std::ranges::find(kCollectives, fields[0], [](Collective one) { return to_string(one); });
    if (collective == kCollectives.end()) {
      problem(line, fmt::format("{} is no collective of the plugin", quote(fields[0])),
              did_you_mean(fields[0], names_of(kCollectives, [](Collective one) {
                             return std::string(to_string(one));
                           })));
    } else {
      row.collective = *collective;
    }
    row.algorithm = fields[3];
    if (find_algorithm(fields[3]) == nullptr) {
      problem(line, fmt::format("{} is no algorithm of NCCL", quote(fields[3])),
              did_you_mean(fields[3], names_of(kAlgorithms, [](const Algorithm& one) {
                             return std::string(one.name);
                           })));
    }
    row.protocol = fields[4];
    if (std::ranges::count(kProtocols, fields[4]) == 0) {
      problem(line, fmt::format("{} is no protocol of NCCL", quote(fields[4])),
              "one of: ll, ll128, simple");
    }
  }

  std::int64_t number(const std::string& field, const char* what, int line, std::int64_t low,
                      std::int64_t high) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool is_number = end == field.data() + field.size() && !field.empty();
    if (is_number && error == std::errc() && value >= low && value <= high) return value;
    problem(line, is_number
                      ? fmt::format("{} is {}, but must be from {} to {}", what, field, low, high)
                      : fmt::format("{} must be a whole number, not {}", what, quote(field)));
    return low;
  }
  int whole(const std::string& field, const char* what, int line, int high) {
    return static_cast<int>(number(field, what, line, -1, high));
  }

  void note_overlaps() {
    for (const auto& [first, second] : meeting_rows(found_.rows)) {
      note(lines_[second], fmt::format("line {} applies to some of the same calls, and comes first",
                                       lines_[first]));
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<int> lines_;
  TunerFile found_;
  DiagnosticList problems_;
};

}  // namespace

bool nccl_has(std::string_view algorithm, Collective collective, const std::string& nccl_version) {
  const int minor = minor_of(nccl_version);
  const Algorithm* known = find_algorithm(algorithm);
  return known != nullptr && known->minor <= minor && is_tuned_by_plugin(collective) &&
         serves(*known, collective);
}

bool is_tuned_by_plugin(Collective collective) {
  return std::ranges::count(kCollectives, collective) > 0;
}

std::string tuner_csv(const std::vector<TunerRow>& rows, const std::string& nccl_version) {
  Checker(rows, nccl_version).check();
  std::string text = fmt::format(
      "# For NCCL {}, by Espalier. Read by the example tuner plugin of NCCL's sources\n"
      "# (plugins/tuner/example) with NCCL_TUNER_CONFIG_FILE set to this file.\n"
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
      "numPipeOps,regBuff\n",
      nccl_version);
  if (std::ranges::any_of(rows, [](const TunerRow& row) { return row.channels == -1; })) {
    text +=
        "# -1 channels should leave their number to NCCL, but the plugin asks for one then, as it\n"
        "# does where no row applies (*nChannels = 1 in pluginGetCollInfo).\n";
  }
  std::vector<TunerRow> sorted = rows;
  std::ranges::sort(sorted, {}, [](const TunerRow& row) {
    return std::tuple(to_string(row.collective), row.nodes, row.ranks, row.pipe_ops, row.registered,
                      row.min_bytes);
  });
  for (const TunerRow& row : sorted) text += line_of(row) + "\n";
  return text;
}

TunerFile parse_tuner_csv(std::string_view text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace espalier
