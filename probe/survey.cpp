// SPDX-License-Identifier: Apache-2.0
#include "probe/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "core/median.h"
#include "probe/surveyor.h"
#include "topologies/load.h"

namespace espalier {
namespace {

// No cache is in the way of a network, and a slow one should not take minutes.
constexpr std::int64_t kNetworkBytes = std::int64_t{8} << 20;
// Of a rank: below, starting ops is what takes time.
constexpr std::int64_t kMinWorkingSet = std::int64_t{256} << 10;
// Libraries send up to some KiB at once, and fetch what is much longer otherwise; where they change
// differs, so that each of these stands for half of its length and more.
constexpr std::array kMessageLengths{std::int64_t{8} << 10, std::int64_t{64} << 10,
                                     std::int64_t{512} << 10};
// Rounds, seconds apart; of three, one may be disturbed.
constexpr int kRounds = 3;
// Timed runs, of which the median counts.
constexpr int kMinRuns = 7;
constexpr int kMaxRuns = 1000;

CopyFigures survey_copies(const Inventory& inventory, const Meter& meter, CopyMethod method) {
  const Surveyor surveyor(inventory, meter, method);
  const std::string by = method == CopyMethod::kernel ? "" : " by copy engines";
  CopyFigures figures;
  meter.progress("copies within a memory" + by);
  figures.local.latency_s = surveyor.hop_latency_s(0, 0);
  figures.local.gbps = surveyor.copy_gbps({{0, 0}}, {figures.local.latency_s});
  if (!inventory.is_host) figures.call_s = surveyor.call_s(figures.local.latency_s);
  const std::vector<int> ranks = inventory.paired_ranks();
  const std::size_t count = ranks.size();
  figures.pairs.assign(count, std::vector<PathFigures>(count));
  figures.both_ways_gbps.assign(count, std::vector<double>(count, 0));
  const auto measure = [&](int from, int to) {
    const double latency_s = surveyor.hop_latency_s(from, to);
    return PathFigures{latency_s, surveyor.copy_gbps({{from, to}}, {latency_s})};
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const int a = ranks[i];
      const int b = ranks[j];
      meter.progress(fmt::format("copies {} <-> {}{}", a, b, by));
      figures.pairs[i][j] = measure(a, b);
      figures.pairs[j][i] = measure(b, a);
      figures.both_ways_gbps[i][j] =
          surveyor.copy_gbps({{a, b}, {b, a}}, {figures.pairs[i][j].latency_s});
    }
  }
  if (inventory.is_shared() && count > 1) {
    figures.crowded_latency_s = surveyor.ring_latency_s(rings_of(inventory.ranks_by_socket()));
  }
  const int near_host = inventory.is_shared() ? 1 : inventory.ranks_of_a_host();
  for (int rank = 0; rank < near_host; ++rank) {
    meter.progress(fmt::format("copies {} <-> host memory{}", rank, by));
    const double latency_s = surveyor.hop_latency_s(rank, kHost);
    const auto gbps = [&](const std::vector<Way>& ways) {
      return surveyor.copy_gbps(ways, {latency_s});
    };
    figures.to_host.push_back({latency_s, gbps({{rank, kHost}})});
    figures.from_host.push_back({latency_s, gbps({{kHost, rank}})});
    figures.host_both_ways_gbps.push_back(gbps({{rank, kHost}, {kHost, rank}}));
  }
  return figures;
}

/// Of some ranks at a time, every rank in its own memory.
ArithmeticFigures survey_arithmetic(const Surveyor& surveyor, const std::vector<int>& ranks,
                                    double copy_latency_s, double combine_latency_s) {
  ArithmeticFigures figures;
  std::vector<Way> ways;
  for (const int rank : ranks) ways.push_back({rank, rank});
  figures.copy_s = 1e-9 / surveyor.copy_gbps(ways, {copy_latency_s});
  for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
    figures.combine_s[i] =
        surveyor.combine_s(ranks, ArithmeticFigures::kOperands[i], {combine_latency_s});
  }
  return figures;
}

/// What messages between processes of a socket cost to start that are longer than the shortest, all
/// at once. None costs less than a shorter one.
std::vector<StartUp::Longer> survey_longer_messages(const Surveyor& surveyor,
                                                    const Survey& survey) {
  std::vector<StartUp::Longer> longer;
  const std::vector<Way> around = rings_of(survey.inventory.ranks_by_socket());
  if (around.empty()) return longer;
  double least_s = survey.kernel.crowded_latency_s;
  for (const std::int64_t bytes : kMessageLengths) {
    least_s = std::max(least_s, surveyor.start_up_s(around, bytes));
    longer.push_back({static_cast<double>(bytes / 2), least_s});
  }
  return longer;
}

/// What processes of a socket get from each other. Nothing where all are alone on their sockets.
ExchangeFigures survey_exchange(const Surveyor& surveyor, const Survey& survey,
                                const ArithmeticFigures& together) {
  const Inventory& inventory = survey.inventory;
  const std::vector<Way> around = rings_of(inventory.ranks_by_socket());
  if (around.empty()) return {};
  const std::vector<int> ranks = inventory.paired_ranks();
  const Way pair{ranks[0], ranks[1]};
  // Ranks that are alone on their sockets count as if they did the same.
  const double share =
      static_cast<double>(inventory.ranks_of_a_host()) / static_cast<double>(around.size());
  const StartUp crowded{survey.kernel.crowded_latency_s, survey.longer_messages};
  const StartUp alone{survey.kernel.pairs[0][1].latency_s, survey.longer_messages};
  static_assert(ArithmeticFigures::kOperands.front() == 2);
  ExchangeFigures exchange;
  exchange.all = surveyor.exchange_rates(around, share, crowded, survey.reduce_latency_s,
                                         together.combine_s.front());
  // One buffer of either, so that each of them touches as much as above. One alone loses as much by
  // what is fresh.
  exchange.one.unchanged_gbps = surveyor.copy_gbps({pair}, alone, surveyor.footprint_bytes());
  exchange.one.passed_on_gbps = surveyor.pass_to_and_fro_gbps(pair, alone);
  exchange.one.gbps = exchange.one.unchanged_gbps * exchange.all.gbps / exchange.all.unchanged_gbps;
  return exchange;
}

/// Bytes of a rank that caches may hold, small ones first.
std::vector<std::int64_t> working_sets(const Inventory& inventory, const Meter& meter) {
  std::vector<std::int64_t> sets;
  if (!inventory.is_host) return sets;
  std::int64_t bytes = meter.footprint_bytes / 2;
  for (; bytes >= kMinWorkingSet; bytes /= 2) sets.push_back(bytes);
  std::ranges::reverse(sets);
  return sets;
}

/// `gbps(ways, latency_s)`: what ways reach together that cost so much to start.
template <class Gbps>
GroupFigures survey_groups(const Surveyor& surveyor, const std::vector<int>& here,
                           const std::vector<int>& there, const Gbps& gbps) {
  GroupFigures figures;
  const Way to{here.front(), there.front()};
  const Way from{there.front(), here.front()};
  figures.to.latency_s = surveyor.hop_latency_s(to.from, to.to);
  figures.from.latency_s = surveyor.hop_latency_s(from.from, from.to);
  const double latency_s = figures.to.latency_s;
  figures.to.gbps = gbps({to}, latency_s);
  figures.from.gbps = gbps({from}, latency_s);
  figures.both_gbps = gbps({to, from}, latency_s);
  const std::size_t pairs = std::min(here.size(), there.size());
  std::vector<Way> all;
  for (std::size_t i = 0; i < pairs; ++i) all.push_back({here[i], there[i]});
  figures.all_gbps = gbps(all, latency_s);
  for (std::size_t i = 0; i < pairs; ++i) all.push_back({there[i], here[i]});
  figures.all_both_gbps = gbps(all, latency_s);
  figures.pairs = static_cast<int>(pairs);
  return figures;
}

/// From the first socket of the first host to each other one.
std::vector<GroupFigures> survey_sockets(const Inventory& inventory, const Meter& meter) {
  const Surveyor surveyor(inventory, meter, CopyMethod::kernel);
  const std::vector<std::vector<int>> groups = inventory.ranks_by_socket();
  std::vector<GroupFigures> sockets;
  for (std::size_t socket = 1; socket < groups.size(); ++socket) {
    meter.progress(fmt::format("between sockets 0 <-> {}", socket));
    sockets.push_back(survey_groups(surveyor, groups.front(), groups[socket],
                                    [&](const std::vector<Way>& ways, double latency_s) {
                                      return surveyor.pass_on_gbps(ways, {latency_s});
                                    }));
  }
  return sockets;
}

/// To each host but the first.
std::vector<GroupFigures> survey_network(const Inventory& inventory, const Meter& meter) {
  const Surveyor surveyor(inventory, meter, CopyMethod::kernel);
  const std::int64_t bytes = std::min(kNetworkBytes, meter.footprint_bytes / 2);
  const auto ranks_of = [&](int host) {
    std::vector<int> ranks(static_cast<std::size_t>(inventory.ranks_of_a_host()));
    std::iota(ranks.begin(), ranks.end(), host * inventory.ranks_of_a_host());
    return ranks;
  };
  std::vector<GroupFigures> hosts;
  for (int host = 1; host < inventory.hosts; ++host) {
    meter.progress(fmt::format("the network between hosts 0 <-> {}", host));
    hosts.push_back(survey_groups(surveyor, ranks_of(0), ranks_of(host),
                                  [&](const std::vector<Way>& ways, double latency_s) {
                                    return surveyor.copy_gbps(ways, {latency_s}, bytes);
                                  }));
  }
  return hosts;
}

/// Nothing of nothing.
std::optional<GroupFigures> medians_of(const std::vector<GroupFigures>& groups) {
  if (groups.empty()) return std::nullopt;
  const auto middle = [&](const auto& figure) {
    std::vector<double> values;
    for (const GroupFigures& figures : groups) values.push_back(figure(figures));
    return median(values);
  };
  using Figures = const GroupFigures&;
  return GroupFigures{{middle([](Figures one) { return one.to.latency_s; }),
                       middle([](Figures one) { return one.to.gbps; })},
                      {middle([](Figures one) { return one.from.latency_s; }),
                       middle([](Figures one) { return one.from.gbps; })},
                      middle([](Figures one) { return one.both_gbps; }),
                      middle([](Figures one) { return one.all_gbps; }),
                      middle([](Figures one) { return one.all_both_gbps; })};
}

/// Times of a survey's programs by round. A survey asks for the same programs in the same order
/// whatever they take.
class Rounds {
 public:
  /// Times the programs of one more round with `meter`.
  Meter next(const Meter& meter) {
    rounds_.emplace_back();
    Meter made = meter;
    made.time_s = [this, &meter](const Program& program, std::int64_t bytes, CopyMethod method) {
      return rounds_.back().emplace_back(meter.time_s(program, bytes, method));
    };
    return made;
  }

  /// Answers with the medians over the rounds.
  Meter medians(const Meter& meter) const {
    Meter made = meter;
    made.progress = [](const std::string&) {};
    made.time_s = [this, asked = std::size_t{0}](const Program&, std::int64_t, CopyMethod) mutable {
      return median(of_program(asked++));
    };
    return made;
  }

  /// As `Survey::spread`.
  double spread() const {
    std::vector<double> spreads;
    for (std::size_t program = 0; program < rounds_.front().size(); ++program) {
      const std::vector<double> times_s = of_program(program);
      const auto [minimum, maximum] = std::ranges::minmax(times_s);
      spreads.push_back((maximum - minimum) / std::max(kMinTime_s, median(times_s)));
    }
    return median(spreads);
  }

 private:
  std::vector<double> of_program(std::size_t program) const {
    std::vector<double> times_s;
    for (const std::vector<double>& round : rounds_) times_s.push_back(round.at(program));
    return times_s;
  }

  std::vector<std::vector<double>> rounds_;
};

Survey survey_once(const Inventory& inventory, const Meter& meter) {
  Survey survey;
  survey.inventory = inventory;
  survey.kernel = survey_copies(inventory, meter, CopyMethod::kernel);
  if (meter.copy_engines) {
    survey.copy_engine = survey_copies(inventory, meter, CopyMethod::copy_engine);
  }
  const Surveyor surveyor(inventory, meter, CopyMethod::kernel);
  survey.reduce_latency_s = surveyor.combine_latency_s();
  const auto arithmetic_by = [&](const Surveyor& by, const std::vector<int>& ranks) {
    return survey_arithmetic(by, ranks, survey.kernel.local.latency_s, survey.reduce_latency_s);
  };
  const auto arithmetic = [&](const std::vector<int>& ranks) {
    return arithmetic_by(surveyor, ranks);
  };
  std::vector<int> all;
  for (int rank = 0; rank < inventory.ranks_of_a_host(); ++rank) {
    all.push_back(rank);
    if (rank > 0 && inventory.is_shared()) continue;
    meter.progress(fmt::format("reductions at {}", rank));
    survey.alone.push_back(arithmetic({rank}));
  }
  if (inventory.is_shared()) {
    meter.progress("all ranks at once");
    survey.together = arithmetic(all);
    if (inventory.has_messages) {
      survey.longer_messages = survey_longer_messages(surveyor, survey);
      survey.exchange = survey_exchange(surveyor, survey, survey.together);
    }
  }
  for (const std::int64_t bytes : working_sets(inventory, meter)) {
    meter.progress(fmt::format("{} KiB of every rank", bytes / 1024));
    const Surveyor within(inventory, meter, CopyMethod::kernel, bytes);
    WorkingSetFigures& figures = survey.working_sets.emplace_back();
    figures.bytes = bytes;
    figures.together = arithmetic_by(within, all);
    figures.alone = arithmetic_by(within, {0});
    if (inventory.has_messages) {
      figures.exchange = survey_exchange(within, survey, figures.together);
    }
  }
  survey.to_sockets = survey_sockets(inventory, meter);
  survey.sockets = medians_of(survey.to_sockets);
  survey.to_hosts = survey_network(inventory, meter);
  survey.network = medians_of(survey.to_hosts);
  return survey;
}

}  // namespace

Inventory host_inventory(int ranks) {
  return inventory_of_one_memory("host", "threads of a computer", ranks);
}

Meter backend_meter(Backend& backend, const MeterSettings& settings) {
  // The profile tells a back end what is to copy, kernels or copy engines; the machine itself does
  // not matter.
  struct Engines {
    Topology machine = generic_topology("full", {{"n", 2}});
    Router router{machine, machine.profile("copy_engine")};
  };
  Meter meter;
  meter.footprint_bytes = settings.footprint_bytes;
  meter.piece_bytes = settings.piece_bytes;
  meter.rounds = kRounds;
  meter.time_s = [&backend, settings, engines = std::make_shared<Engines>()](
                     const Program& program, std::int64_t bytes, CopyMethod method) {
    Target target;
    if (method == CopyMethod::copy_engine) target.router = &engines->router;
    RunOptions options;
    options.size_bytes = bytes;
    options.iterations = kMinRuns;
    options.warmup = 1;
    options.check = false;
    options.timeout_s = settings.timeout_s;
    const ExecutedPart few = backend.run(program, target, options).executed.value();
    // Processes that share a processor may wait for each other longer than they run.
    const double each_s = std::max({few.median_time_s, few.interval_s, kMinTime_s});
    const double runs = settings.window_s / each_s;
    // Not once more for hardly more runs: buffers would be filled again.
    if (runs <= 2 * kMinRuns) return few.median_time_s;
    options.iterations = static_cast<int>(std::min(std::ceil(runs), double{kMaxRuns}));
    return backend.run(program, target, options).executed->median_time_s;
  };
  meter.progress = [](const std::string&) {};
  return meter;
}

std::size_t survey_steps(const Inventory& inventory, const Meter& meter) {
  const std::size_t ranks = inventory.paired_ranks().size();
  const std::size_t with_host = inventory.is_shared() ? 1 : ranks;
  const std::size_t copies = 1 + ranks * (ranks - 1) / 2 + with_host;
  const std::size_t steps =
      copies * (meter.copy_engines ? 2 : 1) + with_host + (inventory.is_shared() ? 1 : 0) +
      working_sets(inventory, meter).size() + inventory.ranks_by_socket().size() - 1 +
      static_cast<std::size_t>(inventory.hosts - 1);
  return steps * static_cast<std::size_t>(meter.rounds);
}

Survey take_survey(const Inventory& inventory, const Meter& meter) {
  Rounds rounds;
  for (int round = 0; round < meter.rounds; ++round) survey_once(inventory, rounds.next(meter));
  Survey survey = survey_once(inventory, rounds.medians(meter));
  survey.spread = rounds.spread();
  return survey;
}

}  // namespace espalier
