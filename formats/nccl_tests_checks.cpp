// SPDX-License-Identifier: Apache-2.0
// What nccl-tests says twice: algbw is bytes / time, busbw is algbw times a factor that depends on
// the collective and the ranks, and the number of elements depends on both as well. Where the
// collective or the ranks are not said, this tells them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.h"
#include "core/words.h"
#include "formats/nccl_tests_parts.h"

namespace espalier {
namespace {

/// Beyond what rounding explains: nccl-tests divides in double precision.
constexpr double kSlack = 2e-3;
/// A figure says something when rounding changes it by less than this.
constexpr double kSharp = 0.05;
constexpr int kMostRanks = 1'000'000;

/// One half of one row.
struct Half {
  const MeasuredRow* row;
  const MeasuredTime* time;
  bool in_place;
};

std::vector<Half> halves_of(const MeasuredTable& table) {
  std::vector<Half> halves;
  for (const MeasuredRow& row : table.rows) {
    if (row.out_of_place) halves.push_back({&row, &*row.out_of_place, false});
    if (row.in_place) halves.push_back({&row, &*row.in_place, true});
  }
  return halves;
}

/// An interval that a quotient is known to lie in.
struct Range {
  double low = 0;
  double high = 0;
  bool has(double value) const { return value >= low && value <= high; }
  bool is_sharp() const { return low > 0 && high - low < kSharp * high; }
};

/// bandwidth * time / bytes: 1 for algbw, the factor for busbw.
Range factor_range(const MeasuredRow& row, const MeasuredTime& time, double gbps, double rounding) {
  const double bytes = static_cast<double>(row.bytes) / 1e9;
  return {std::max(0.0, gbps - rounding) * std::max(0.0, time.time_s - time.time_rounding_s) /
              bytes * (1 - kSlack),
          (gbps + rounding) * (time.time_s + time.time_rounding_s) / bytes * (1 + kSlack)};
}
Range algbw_range(const Half& half) {
  return factor_range(*half.row, *half.time, half.time->algbw_gbps, half.time->algbw_rounding_gbps);
}
Range busbw_range(const Half& half) {
  return factor_range(*half.row, *half.time, half.time->busbw_gbps, half.time->busbw_rounding_gbps);
}

bool says_something(const Half& half) { return half.row->bytes > 0 && half.time->time_s > 0; }

std::string where(const Half& half) {
  const std::string line =
      half.row->line > 0 ? fmt::format("line {}", half.row->line) : describe_size(half.row->bytes);
  return fmt::format("{}, {}", line, half.in_place ? "in place" : "out of place");
}

/// Microseconds since 2019, milliseconds before: the heading says so, and algbw does.
double time_unit(MeasuredTable& table, double unit_s) {
  std::vector<double> units;
  for (const Half& half : halves_of(table)) {
    const MeasuredTime& time = *half.time;
    if (!says_something(half) || time.algbw_gbps < 10 * time.algbw_rounding_gbps) continue;
    units.push_back(static_cast<double>(half.row->bytes) / 1e9 / time.algbw_gbps / time.time_s);
  }
  const double said = unit_s > 0 ? unit_s : 1e-6;
  if (units.empty()) return said;
  std::ranges::nth_element(units, units.begin() + static_cast<std::ptrdiff_t>(units.size() / 2));
  const double found = std::pow(10.0, 3 * std::round(std::log10(units[units.size() / 2]) / 3));
  if (found == said || found > 2 || found < 0.5e-9) return said;
  table.notes.push_back(fmt::format("times are read as {}: algbw is bytes / time then",
                                    found > 0.5      ? "seconds"
                                    : found > 0.5e-3 ? "milliseconds"
                                    : found > 0.5e-6 ? "microseconds"
                                                     : "nanoseconds"));
  return found;
}

void scale_times(MeasuredTable& table, double unit_s) {
  for (MeasuredRow& row : table.rows) {
    for (std::optional<MeasuredTime>* half : {&row.out_of_place, &row.in_place}) {
      if (!*half) continue;
      (*half)->time_s *= unit_s;
      (*half)->time_rounding_s *= unit_s;
    }
  }
}

/// Elements of all ranks to those of one in the column `count`: 1 for collectives that are not
/// blocked, the number of ranks for the others. 0: not known, or not the same in all rows.
int parts_of(const MeasuredTable& table) {
  int parts = 0;
  for (const MeasuredRow& row : table.rows) {
    const std::int64_t element = bytes_of_type(row.type);
    if (row.bytes == 0 || row.count == 0 || element == 0) continue;
    if (row.bytes % element != 0 || row.bytes / element % row.count != 0) return 0;
    const std::int64_t found = row.bytes / element / row.count;
    if (found > kMostRanks || (parts != 0 && parts != found)) return 0;
    parts = static_cast<int>(found);
  }
  return parts;
}

/// The ranks of an allreduce with this factor; 0 where there is no such number.
int ranks_of_factor(double factor) {
  if (factor < 0.5 || factor >= 2 - 1e-5) return 0;
  return static_cast<int>(std::lround(2 / (2 - factor)));
}

/// The halves whose busbw tells the factor, all of them where none does sharply.
std::vector<Half> telling(const MeasuredTable& table) {
  std::vector<Half> all = halves_of(table);
  std::erase_if(all, [](const Half& half) { return !says_something(half); });
  std::vector<Half> sharp = all;
  std::erase_if(sharp, [](const Half& half) { return !busbw_range(half).is_sharp(); });
  return sharp.empty() ? all : sharp;
}

/// The middle one of the factors.
double median_factor(const std::vector<Half>& halves) {
  std::vector<double> factors;
  for (const Half& half : halves) {
    const Range range = busbw_range(half);
    factors.push_back((range.low + range.high) / 2);
  }
  std::ranges::nth_element(factors,
                           factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2));
  return factors[factors.size() / 2];
}

struct Columns {
  bool has_root = false;   ///< a rank, in all rows that say one
  bool no_root = false;    ///< -1
  bool reduces = false;    ///< "sum"
  bool no_reduce = false;  ///< "none"
};
Columns columns_of(const MeasuredTable& table) {
  Columns columns;
  for (const MeasuredRow& row : table.rows) {
    if (row.root) (*row.root >= 0 ? columns.has_root : columns.no_root) = true;
    if (!row.redop.empty()) (row.redop == "none" ? columns.no_reduce : columns.reduces) = true;
  }
  return columns;
}

/// Whether the columns of a table may be this collective's. sendrecv has "sum" in nccl-tests.
bool allows(const Columns& columns, const CollectiveInfo& one) {
  if (columns.has_root && !one.rooted) return false;
  if (columns.no_root && one.rooted) return false;
  if (columns.reduces && !one.reduces && one.id != Collective::sendrecv) return false;
  return !columns.no_reduce || !one.reduces;
}

/// The collectives, and the ranks where they are not said, that the table's figures fit.
std::vector<CollectiveFit> fits_of(const MeasuredTable& table, const std::vector<Half>& halves,
                                   int ranks) {
  const int parts = parts_of(table);
  const Columns columns = columns_of(table);
  const double factor = median_factor(halves);
  std::vector<CollectiveFit> fits;
  for (const CollectiveInfo& one : all_collectives()) {
    int n = ranks;
    if (one.blocked && parts > 0) {
      if (n != 0 && n != parts) continue;
      n = parts;
    }
    if (!one.blocked && parts > 1) continue;
    if (n == 0 && one.id == Collective::allreduce) n = ranks_of_factor(factor);
    if (!allows(columns, one)) continue;
    const bool is_constant = !one.blocked && one.id != Collective::allreduce;
    if (n == 0 && !is_constant) continue;
    const double wanted = busbw_factor(one.id, std::max(n, 2));
    const auto fitting = std::ranges::count_if(
        halves, [&](const Half& half) { return busbw_range(half).has(wanted); });
    if (2 * fitting > static_cast<std::ptrdiff_t>(halves.size())) fits.push_back({one.id, n});
  }
  return fits;
}

std::string names_of(const std::vector<CollectiveFit>& fits) {
  std::string names;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    if (i > 0) names += i + 1 == fits.size() ? " or " : ", ";
    names += to_string(fits[i].collective);
  }
  return names;
}

void check_algbw(MeasuredTable& table, const std::vector<Half>& halves) {
  // Until June 2020, tables of allgather and reducescatter had (n-1)/n in algbw.
  const double old = table.ranks > 1 ? busbw_factor(Collective::allgather, table.ranks) : 0;
  std::vector<const Half*> wrong;
  bool all_old = true;
  for (const Half& half : halves) {
    const Range range = algbw_range(half);
    all_old = all_old && range.has(old);
    if (!range.has(1)) wrong.push_back(&half);
  }
  if (wrong.empty()) return;
  if (all_old) {
    table.notes.push_back("algbw has (n-1)/n in it, as in nccl-tests before June 2020");
    return;
  }
  for (const Half* half : wrong) {
    table.notes.push_back(fmt::format(
        "{}: algbw is {} GB/s, but {} in {} are {}", where(*half), half->time->algbw_gbps,
        describe_size(half->row->bytes), format_seconds(half->time->time_s),
        format_gbps(static_cast<double>(half->row->bytes) / 1e9 / half->time->time_s)));
  }
}

void check_busbw(MeasuredTable& table, const std::vector<Half>& halves) {
  if (!table.collective || table.ranks < 2) return;
  const double factor = busbw_factor(*table.collective, table.ranks);
  for (const Half& half : halves) {
    const Range range = busbw_range(half);
    if (range.has(factor)) continue;
    table.notes.push_back(fmt::format(
        "{}: busbw is {} GB/s, but {} of {} has {:.4g} times bytes / time, {}", where(half),
        half.time->busbw_gbps, to_string(*table.collective),
        counted(static_cast<std::size_t>(table.ranks), "rank"), factor,
        format_gbps(factor * static_cast<double>(half.row->bytes) / 1e9 / half.time->time_s)));
  }
}

/// Who it is, by its name, its columns and its figures.
void find_collective(MeasuredTable& table, const std::vector<Half>& halves) {
  if (halves.empty()) return;
  std::vector<CollectiveFit>& fits = table.fits;
  fits = fits_of(table, halves, table.ranks);
  if (fits.empty() && table.ranks > 0 &&
      table.listed.size() == static_cast<std::size_t>(table.ranks)) {
    // A list that was shortened says too few.
    fits = fits_of(table, halves, 0);
    std::erase_if(fits, [&](const CollectiveFit& fit) { return fit.ranks <= table.ranks; });
    if (!fits.empty()) {
      table.notes.push_back(fmt::format("{} ranks are listed, but the figures are those of {}",
                                        table.ranks, fits.front().ranks));
      table.ranks = 0;
    }
  }
  const bool is_named = table.collective.has_value();
  if (is_named && !fits.empty() &&
      std::ranges::count(fits, *table.collective, &CollectiveFit::collective) == 0) {
    table.notes.push_back(
        fmt::format("the test is {}, but the figures are those of {}", table.test, names_of(fits)));
  }
  if (fits.empty() && (is_named || table.test.empty())) {
    table.notes.push_back(fmt::format(
        "the bus bandwidths, {:.4g} times bytes / time, are those of no collective{}",
        median_factor(halves), table.ranks > 0 ? fmt::format(" of {} ranks", table.ranks) : ""));
  }
  if (!is_named && table.test.empty() && fits.size() == 1) {
    table.collective = fits.front().collective;
    table.notes.push_back(fmt::format("the test is not named: its figures are those of {}",
                                      to_string(*table.collective)));
  } else if (!is_named && table.test.empty() && !fits.empty()) {
    table.notes.push_back(fmt::format("the test is not named: its figures fit {}", names_of(fits)));
  }
  const auto same = std::ranges::find_if(fits, [&](const CollectiveFit& fit) {
    return table.collective ? fit.collective == *table.collective : fit.ranks == fits[0].ranks;
  });
  const bool agree = std::ranges::all_of(
      fits, [&](const CollectiveFit& fit) { return fit.ranks == fits.front().ranks; });
  if (table.ranks == 0 && same != fits.end() && same->ranks > 0 && (table.collective || agree)) {
    table.ranks = same->ranks;
    table.notes.push_back(fmt::format("{} by the figures: the ranks are not all listed",
                                      counted(static_cast<std::size_t>(table.ranks), "rank")));
  }
}

void check_average(MeasuredTable& table) {
  const std::vector<Half> halves = halves_of(table);
  if (!table.average_busbw_gbps || halves.empty()) return;
  double sum = 0, rounding = 0;
  for (const Half& half : halves) {
    sum += half.time->busbw_gbps;
    rounding = std::max(rounding, half.time->busbw_rounding_gbps);
  }
  const double mean = sum / static_cast<double>(halves.size());
  if (std::abs(mean - *table.average_busbw_gbps) <= rounding + 1e-3 * mean) return;
  table.notes.push_back(fmt::format(
      "the average bus bandwidth is {} GB/s in the text, but {} of these rows: some may be missing",
      *table.average_busbw_gbps, format_gbps(mean)));
}

/// nccl-tests counts the checks that failed, each of which found a wrong value at least.
void check_wrong(MeasuredTable& table) {
  if (!table.out_of_bounds) return;
  const auto failed = static_cast<double>(*table.out_of_bounds);
  const std::optional<double> wrong = table.wrong();
  if (failed > wrong.value_or(0)) {
    table.notes.push_back(
        fmt::format("{} failed as the text says ('Out of bounds values'), but its rows have {}",
                    counted(static_cast<std::size_t>(*table.out_of_bounds), "check"),
                    wrong ? counted(static_cast<std::size_t>(*wrong), "wrong value")
                          : "no number of wrong values"));
  } else if (failed == 0 && wrong.value_or(0) > 0) {
    table.notes.push_back(
        "no check failed as the text says ('Out of bounds values : 0'), but its "
        "rows have wrong values");
  }
}

void check_halves(MeasuredTable& table) {
  const auto both = std::ranges::count_if(
      table.rows, [](const MeasuredRow& row) { return row.out_of_place && row.in_place; });
  if (both == 0) return;
  for (const MeasuredRow& row : table.rows) {
    if (row.out_of_place && row.in_place) continue;
    table.notes.push_back(fmt::format("line {}: the row has no time {}", row.line,
                                      row.in_place ? "out of place" : "in place"));
  }
}

}  // namespace

void check_table(MeasuredTable& table, double unit_s) {
  scale_times(table, time_unit(table, unit_s));
  std::vector<Half> halves = halves_of(table);
  std::erase_if(halves, [](const Half& half) { return !says_something(half); });
  find_collective(table, telling(table));
  check_algbw(table, halves);
  check_busbw(table, halves);
  check_halves(table);
  check_average(table);
  check_wrong(table);
}

}  // namespace espalier
