// SPDX-License-Identifier: Apache-2.0
#include "probe/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
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
// Rounds, seconds apart; of three, one may be disturbed.
constexpr int kRounds = 3;
// Timed runs, of which the median counts.
constexpr int kMinRuns = 7;
constexpr int kMaxRuns = 1000;

/// Ranks whose pairs are measured: all of them, unless they are all alike.
int measured_ranks(const Inventory& inventory) {
  return inventory.is_shared() ? std::min(inventory.ranks_of_a_host(), 2) : inventory.ranks();
}

CopyFigures survey_copies(const Inventory& inventory, const Meter& meter, CopyMethod method) {
  const Surveyor surveyor(inventory, meter, method);
  const std::string by = method == CopyMethod::kernel ? "" : " by copy engines";
  CopyFigures figures;
  meter.progress("copies within a memory" + by);
  figures.local.latency_s = surveyor.hop_latency_s(0, 0);
  figures.local.gbps = surveyor.copy_gbps({{0, 0}}, figures.local.latency_s);
  const int ranks = measured_ranks(inventory);
  const auto count = static_cast<std::size_t>(ranks);
  figures.pairs.assign(count, std::vector<PathFigures>(count));
  figures.both_ways_gbps.assign(count, std::vector<double>(count, 0));
  const auto measure = [&](int from, int to) {
    const double latency_s = surveyor.hop_latency_s(from, to);
    return PathFigures{latency_s, surveyor.copy_gbps({{from, to}}, latency_s)};
  };
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      meter.progress(fmt::format("copies {} <-> {}{}", a, b, by));
      const auto i = static_cast<std::size_t>(a);
      const auto j = static_cast<std::size_t>(b);
      figures.pairs[i][j] = measure(a, b);
      figures.pairs[j][i] = measure(b, a);
      figures.both_ways_gbps[i][j] =
          surveyor.copy_gbps({{a, b}, {b, a}}, figures.pairs[i][j].latency_s);
    }
  }
  if (inventory.is_shared() && ranks > 1) figures.crowded_latency_s = surveyor.ring_latency_s();
  const int near_host = inventory.is_shared() ? 1 : ranks;
  for (int rank = 0; rank < near_host; ++rank) {
    meter.progress(fmt::format("copies {} <-> host memory{}", rank, by));
    const double latency_s = surveyor.hop_latency_s(rank, kHost);
    const auto gbps = [&](const std::vector<Way>& ways) {
      return surveyor.copy_gbps(ways, latency_s);
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
  figures.copy_s = 1e-9 / surveyor.copy_gbps(ways, copy_latency_s);
  for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
    figures.combine_s[i] =
        surveyor.combine_s(ranks, ArithmeticFigures::kOperands[i], combine_latency_s);
  }
  return figures;
}

/// Of the ranks of a host; nothing of one that is alone.
ExchangeFigures survey_exchange(const Surveyor& surveyor, int ranks, const CopyFigures& copies) {
  if (ranks < 2) return {};
  std::vector<Way> around;
  for (int rank = 0; rank < ranks; ++rank) around.push_back({rank, (rank + 1) % ranks});
  return {surveyor.exchange_gbps(around, copies.crowded_latency_s),
          surveyor.exchange_gbps({{0, 1}}, copies.pairs[0][1].latency_s)};
}

/// Of processes: what they exchange, and how much longer combining takes where an operand has just
/// come from another one, which is added to `together`.
ExchangeFigures survey_exchange_and_combine(const Surveyor& surveyor, const Survey& survey,
                                            ArithmeticFigures& together) {
  const int ranks = survey.inventory.ranks_of_a_host();
  const ExchangeFigures exchange = survey_exchange(surveyor, ranks, survey.kernel);
  if (ranks < 2) return exchange;
  const double latency_s = survey.kernel.crowded_latency_s + survey.reduce_latency_s;
  static_assert(ArithmeticFigures::kOperands.front() == 2);
  const double more_s = surveyor.exchange_and_combine_s(ranks, latency_s) -
                        1e-9 / exchange.all_gbps - together.combine_s.front();
  for (double& combine_s : together.combine_s) combine_s += std::max(more_s, 0.0);
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

/// To each host but the first.
std::vector<NetworkFigures> survey_network(const Inventory& inventory, const Meter& meter) {
  const Surveyor surveyor(inventory, meter, CopyMethod::kernel);
  const int count = inventory.ranks_of_a_host();
  std::vector<NetworkFigures> hosts;
  for (int host = 1; host < inventory.hosts; ++host) {
    meter.progress(fmt::format("the network between hosts 0 <-> {}", host));
    const int other = host * count;
    NetworkFigures& figures = hosts.emplace_back();
    figures.to.latency_s = surveyor.hop_latency_s(0, other);
    figures.from.latency_s = surveyor.hop_latency_s(other, 0);
    const double latency_s = figures.to.latency_s;
    const auto gbps = [&](const std::vector<Way>& ways) {
      return surveyor.copy_gbps(ways, latency_s,
                                std::min(kNetworkBytes, meter.footprint_bytes / 2));
    };
    const Way to{0, other};
    const Way from{other, 0};
    figures.to.gbps = gbps({to});
    figures.from.gbps = gbps({from});
    figures.both_gbps = gbps({to, from});
    std::vector<Way> all;
    for (int rank = 0; rank < count; ++rank) all.push_back({rank, other + rank});
    figures.all_gbps = gbps(all);
    for (int rank = 0; rank < count; ++rank) all.push_back({other + rank, rank});
    figures.all_both_gbps = gbps(all);
  }
  return hosts;
}

NetworkFigures medians_of(const std::vector<NetworkFigures>& hosts) {
  const auto middle = [&](const auto& figure) {
    std::vector<double> values;
    for (const NetworkFigures& figures : hosts) values.push_back(figure(figures));
    return median(values);
  };
  using Figures = const NetworkFigures&;
  return {{middle([](Figures one) { return one.to.latency_s; }),
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
      survey.exchange = survey_exchange_and_combine(surveyor, survey, survey.together);
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
      figures.exchange = survey_exchange_and_combine(within, survey, figures.together);
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
    const double few_s = backend.run(program, target, options).executed->median_time_s;
    const double runs = settings.window_s / std::max(few_s, kMinTime_s);
    if (runs <= kMinRuns) return few_s;
    options.iterations = static_cast<int>(std::min(std::ceil(runs), double{kMaxRuns}));
    return backend.run(program, target, options).executed->median_time_s;
  };
  meter.progress = [](const std::string&) {};
  return meter;
}

std::size_t survey_steps(const Inventory& inventory, const Meter& meter) {
  const auto ranks = static_cast<std::size_t>(measured_ranks(inventory));
  const std::size_t with_host = inventory.is_shared() ? 1 : ranks;
  const std::size_t copies = 1 + ranks * (ranks - 1) / 2 + with_host;
  const std::size_t steps =
      copies * (meter.copy_engines ? 2 : 1) + with_host + (inventory.is_shared() ? 1 : 0) +
      working_sets(inventory, meter).size() + static_cast<std::size_t>(inventory.hosts - 1);
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
