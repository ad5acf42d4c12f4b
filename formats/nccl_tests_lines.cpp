// SPDX-License-Identifier: Apache-2.0
// Single lines of nccl-tests' output. No line is searched with regular expressions: logs have lines
// of many kilobytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "core/check.h"
#include "core/words.h"
#include "formats/nccl_tests_parts.h"
#include "topologies/profile.h"

namespace espalier {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 50;

struct Type {
  std::string_view name;
  int bytes;
};
/// All names that NCCL, RCCL and their tests have given to types.
constexpr std::array kTypes = {
    Type{"int8", 1},     Type{"char", 1},     Type{"uint8", 1},    Type{"int32", 4},
    Type{"int", 4},      Type{"uint32", 4},   Type{"int64", 8},    Type{"uint64", 8},
    Type{"half", 2},     Type{"float16", 2},  Type{"bfloat16", 2}, Type{"bf16", 2},
    Type{"float", 4},    Type{"float32", 4},  Type{"double", 8},   Type{"float64", 8},
    Type{"fp8_e4m3", 1}, Type{"fp8_e5m2", 1}, Type{"f8e4m3", 1},   Type{"f8e5m2", 1}};

/// Names that nccl-tests has today come first.
struct Test {
  std::string_view name;
  Collective collective;
};
constexpr std::array kTests = {
    Test{"all_reduce", Collective::allreduce},   Test{"all_gather", Collective::allgather},
    Test{"alltoall", Collective::alltoall},      Test{"reduce_scatter", Collective::reducescatter},
    Test{"broadcast", Collective::broadcast},    Test{"reduce", Collective::reduce},
    Test{"gather", Collective::gather},          Test{"scatter", Collective::scatter},
    Test{"sendrecv", Collective::sendrecv},      Test{"allreduce", Collective::allreduce},
    Test{"allgather", Collective::allgather},    Test{"reducescatter", Collective::reducescatter},
    Test{"alltoallsingle", Collective::alltoall}};

bool begins_with_letter(std::string_view word) {
  return !word.empty() &&
         ((word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z'));
}

/// A cell of a table: nothing for what is none; no figure for "N/A".
struct Cell {
  std::optional<ParsedFigure> figure;
};
std::optional<Cell> cell_of(std::string_view word) {
  if (word == "N/A") return Cell{};
  if (const auto figure = parse_figure(word)) return Cell{figure};
  return std::nullopt;
}

/// Behind a row: "2026-01-31 12:00:00".
bool is_timestamp(std::string_view word) {
  return word.size() >= 8 && word.find_first_not_of("0123456789-:T.Z") == std::string_view::npos &&
         (std::ranges::count(word, '-') == 2 || std::ranges::count(word, ':') == 2);
}

/// Times stay as printed: their unit is the table's.
std::optional<MeasuredTime> half_of(const Cell* cells, int width, bool has_difference) {
  if (!cells[0].figure || !cells[1].figure || !cells[2].figure) return std::nullopt;
  MeasuredTime time;
  time.time_s = cells[0].figure->value;
  time.time_rounding_s = cells[0].figure->rounding;
  time.algbw_gbps = cells[1].figure->value;
  time.algbw_rounding_gbps = cells[1].figure->rounding;
  time.busbw_gbps = cells[2].figure->value;
  time.busbw_rounding_gbps = cells[2].figure->rounding;
  if (width > 3 && cells[3].figure) {
    (has_difference ? time.difference : time.wrong) = cells[3].figure->value;
  }
  return time;
}

bool is_possible(const std::optional<MeasuredTime>& time) {
  return !time || (time->time_s >= 0 && time->algbw_gbps >= 0 && time->busbw_gbps >= 0);
}

/// Whether algbw is bytes / time in one of the units that tables have: tells a root from a time.
bool has_sense(std::int64_t bytes, const MeasuredTime& time) {
  if (time.time_s <= 0 || bytes == 0) return true;
  for (const double unit : {1e-6, 1e-3, 1.0}) {
    const double algbw = static_cast<double>(bytes) / (time.time_s * unit) / 1e9;
    // The oldest allgather tables have (n-1)/n in algbw, at least a half.
    const double high = algbw * 1.1 + time.algbw_rounding_gbps;
    const double low = algbw * 0.45 - time.algbw_rounding_gbps;
    if (time.algbw_gbps >= low && time.algbw_gbps <= high) return true;
  }
  return false;
}

/// The cells behind the operator as one or two halves, with or without a root before them.
bool fill_row(MeasuredRow& row, const std::vector<Cell>& cells, const NcclTestsColumns& columns) {
  std::vector<int> widths = {4, 3, 8};
  if (columns.of_group >= 3) widths.insert(widths.begin(), columns.of_group);
  const int size = static_cast<int>(cells.size());
  std::optional<MeasuredRow> fitting;
  for (const int width : widths) {
    for (const int halves : {2, 1}) {
      for (const int roots : {1, 0}) {
        if (size != roots + halves * width) continue;
        MeasuredRow read = row;
        if (roots == 1) {
          const auto& root = cells[0].figure;
          if (!root || root->value < -1 || root->value > 1e6 || root->rounding != 0.5) continue;
          read.root = static_cast<int>(root->value);
        }
        const Cell* at = cells.data() + roots;
        read.out_of_place = half_of(at, width, columns.has_difference);
        if (halves == 2) read.in_place = half_of(at + width, width, columns.has_difference);
        if (!read.out_of_place && !read.in_place) continue;
        if (!is_possible(read.out_of_place) || !is_possible(read.in_place)) continue;
        const bool agrees = has_sense(row.bytes, read.out_of_place.value_or(MeasuredTime{})) &&
                            has_sense(row.bytes, read.in_place.value_or(MeasuredTime{}));
        if (agrees) {
          row = std::move(read);
          return true;
        }
        if (!fitting) fitting = std::move(read);
      }
    }
  }
  if (!fitting) return false;
  row = std::move(*fitting);
  return true;
}

/// Where a row begins in a line: "[1,0]<stdout>:1048576 262144 float".
struct RowBegin {
  std::size_t type = 0;  ///< the word
  std::int64_t bytes = 0;
  std::int64_t count = 0;
};

/// Where a size, a number of elements and a word that may be a type follow each other, and
/// `is_row` says so.
template <class IsRow>
std::optional<RowBegin> find_row(const std::vector<std::string_view>& words, const IsRow& is_row) {
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (!begins_with_letter(words[i])) continue;
    std::string_view size = words[i - 2];
    // A prefix of the launcher may touch a long size: "[1,0]<stdout>:137438953472".
    const std::size_t colon = size.find_last_of(":>|");
    if (colon != std::string_view::npos) size.remove_prefix(colon + 1);
    const auto bytes = parse_whole(size, 0, kLargestSize);
    const auto count = parse_whole(words[i - 1], 0, kLargestSize);
    if (bytes && count && is_row(words[i], *bytes, *count)) return RowBegin{i, *bytes, *count};
  }
  return std::nullopt;
}

bool is_type(std::string_view word, std::int64_t, std::int64_t) { return bytes_of_type(word) > 0; }

/// "floatnode1:4711:4711": other output has begun in the middle of a row. Its figures must fit, as
/// any line may have two numbers and a word like this.
bool is_torn_type(std::string_view word, std::int64_t bytes, std::int64_t count) {
  return bytes > 0 && count > 0 && std::ranges::any_of(kTypes, [&](const Type& type) {
           return word.starts_with(type.name) && bytes % (count * type.bytes) == 0;
         });
}

}  // namespace

std::optional<NcclTestsColumns> parse_columns(const std::vector<std::string_view>& words) {
  const auto is_time = [](std::string_view word) { return word == "time" || word == "cputime"; };
  const auto first = std::ranges::find_if(words, is_time);
  if (first == words.end() || std::ranges::count(words, "algbw") == 0) return std::nullopt;
  NcclTestsColumns columns;
  const auto second = std::find_if(first + 1, words.end(), is_time);
  columns.of_group = static_cast<int>(second - first);
  if (columns.of_group > 16) return std::nullopt;
  for (auto word = first; word != second; ++word) {
    if (*word == "error" || *word == "res" || *word == "delta") columns.has_difference = true;
  }
  return columns;
}

std::optional<NcclTestsRow> parse_row(const std::vector<std::string_view>& words,
                                      const NcclTestsColumns& columns) {
  NcclTestsRow read;
  const auto begin = find_row(words, is_type);
  if (!begin) {
    const auto torn = columns.of_group > 0 ? find_row(words, is_torn_type) : std::nullopt;
    if (!torn) return std::nullopt;
    read.torn = fmt::format("{} stands where a type should", quote(words[torn->type]));
    return read;
  }
  MeasuredRow& row = read.row;
  row.bytes = begin->bytes;
  row.count = begin->count;
  row.type = words[begin->type];
  std::size_t next = begin->type + 1;
  if (next < words.size() && begins_with_letter(words[next]) && words[next] != "N/A") {
    row.redop = words[next++];
  }
  std::vector<Cell> cells;
  for (; next < words.size(); ++next) {
    const auto cell = cell_of(words[next]);
    if (!cell) break;
    cells.push_back(*cell);
  }
  while (next < words.size() && is_timestamp(words[next])) ++next;
  if (next < words.size()) {
    read.torn = fmt::format("{} stands where a figure should", quote(words[next]));
  } else if (!fill_row(row, cells, columns)) {
    read.torn = fmt::format("{} behind the type: neither one time with its bandwidths nor two",
                            counted(cells.size(), "figure"));
  }
  return read;
}

std::optional<MeasuredRank> parse_rank(const std::vector<std::string_view>& words) {
  const auto at = std::ranges::find(words, "Rank");
  const auto device = std::find(at, words.end(), "device");
  if (at == words.end() || words.end() - device < 3) return std::nullopt;
  constexpr std::int64_t kMostRanks = 1'000'000;
  constexpr std::int64_t kLargestProcess = std::int64_t{1} << 32;
  const auto number_after = [&](std::string_view word,
                                std::int64_t largest) -> std::optional<std::int64_t> {
    const auto found = std::find(at, device + 1, word);
    if (found > device || found + 1 == words.end()) return std::nullopt;
    return parse_whole(found[1], 0, largest);
  };
  const auto rank = number_after("Rank", kMostRanks);
  const auto number = number_after("device", kMostRanks);
  if (!rank || !number) return std::nullopt;
  MeasuredRank read;
  read.rank = static_cast<int>(*rank);
  read.device = static_cast<int>(*number);
  read.group = static_cast<int>(number_after("Group", kMostRanks).value_or(0));
  read.process = number_after("Pid", kLargestProcess).value_or(-1);
  const auto on = std::find(at, device, "on");
  if (on != device && on + 1 != device) read.host = on[1];
  auto next = device + 2;
  if (next->starts_with("[") && next->ends_with("]")) {
    read.bus = next->substr(1, next->size() - 2);
    ++next;
  }
  std::vector<std::string> name;
  for (; next != words.end(); ++next) name.emplace_back(*next);
  read.model = join(name, " ");
  return read;
}

void parse_launch(const std::vector<std::string_view>& words, MeasuredTable& table) {
  std::string_view before;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    std::string_view key = words[i];
    if (key.ends_with(":")) key.remove_suffix(1);
    const auto whole = [&](auto& field) {
      using Field = std::remove_reference_t<decltype(field)>;
      if (const auto value = parse_whole(words[i + 1], 0, std::numeric_limits<int>::max())) {
        field = static_cast<Field>(*value);
      }
    };
    const auto size = [&](std::int64_t& field) {
      field = parse_whole(words[i + 1], 0, kLargestSize).value_or(-1);
    };
    if (key == "nThread" || key == "nThreads") whole(table.threads);
    if (key == "nGpus") whole(table.gpus_per_thread);
    if (key == "minBytes") size(table.min_bytes);
    if (key == "maxBytes") size(table.max_bytes);
    if (key == "step") table.step = words[i + 1].substr(0, 40);
    if (key == "warmupIters" || (key == "iters" && before == "warmup")) whole(table.warmup);
    if (key == "iters" && before != "warmup" && before != "agg") whole(table.iterations);
    if (key == "iters" && before == "agg") whole(table.aggregated);
    if (key == "graph") whole(table.graph);
    before = words[i];
  }
}

std::optional<Collective> collective_of_test(std::string_view test) {
  if (test.ends_with("_perf")) test.remove_suffix(5);
  const std::string name = lower_case(test);
  const auto found = std::ranges::find(kTests, std::string_view(name), &Test::name);
  if (found == kTests.end()) return std::nullopt;
  return found->collective;
}

std::string test_of_collective(Collective collective) {
  const auto found = std::ranges::find(kTests, collective, &Test::collective);
  CHECK(found != kTests.end());
  return std::string(found->name) + "_perf";
}

std::string library_of_number(int number) {
  const int base = number < 10'000 ? 1000 : 10'000;
  return fmt::format("NCCL {}.{}.{}", number / base, number % base / 100, number % 100);
}

int bytes_of_type(std::string_view type) {
  const auto found = std::ranges::find(kTypes, type, &Type::name);
  return found == kTypes.end() ? 0 : found->bytes;
}

}  // namespace espalier
