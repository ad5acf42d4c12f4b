// SPDX-License-Identifier: Apache-2.0
#include "probe/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/median.h"
#include "ir/builder.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr int kShortChain = 64;
constexpr int kLongChain = 320;
constexpr std::int64_t kTinyBytes = 4;
// No cache is in the way of a network, and a slow one should not take minutes.
constexpr std::int64_t kNetworkBytes = std::int64_t{8} << 20;
// What a clock may call nothing.
constexpr double kMinTime_s = 1e-9;
// Rounds, seconds apart; of three, one may be disturbed.
constexpr int kRounds = 3;
// Timed runs, of which the median counts.
constexpr int kMinRuns = 7;
constexpr int kMaxRuns = 1000;

/// A copy between the ranks or, as kHost, from or to the host's memory.
constexpr int kHost = -1;
struct Way {
  int from = 0;
  int to = 0;
};

/// Measures with one method of copying.
class Surveyor {
 public:
  Surveyor(const Inventory& inventory, const Meter& meter, CopyMethod method)
      : ranks_(inventory.ranks()),
        ranks_of_a_host_(inventory.ranks_of_a_host()),
        meter_(meter),
        method_(method) {}

  /// Every way carries the message once, in pieces, all ways at a time. GB/s of all together, less
  /// what pieces that start after `latency_s` lose by it.
  double copy_gbps(const std::vector<Way>& ways, double latency_s) const {
    return copy_gbps(ways, latency_s, meter_.footprint_bytes / 2);
  }
  double copy_gbps(const std::vector<Way>& ways, double latency_s, std::int64_t bytes) const {
    const std::int64_t pieces = pieces_of(bytes);
    Builder builder("copy", {.ranks = ranks_, .units = pieces});
    PlaceId host = 0;
    if (std::ranges::any_of(ways, [](Way way) { return way.from == kHost || way.to == kHost; })) {
      host = builder.add_host();
    }
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const Way way = ways[i];
        // Each direction has its half of the host's buffer.
        const Slice from =
            way.from == kHost ? builder.tmp(host, piece, 1) : builder.input(way.from, piece, 1);
        const Slice to = way.to == kHost ? builder.tmp(host, pieces + piece, 1)
                                         : builder.output(way.to, piece, 1);
        builder.copy(to, from,
                     {.lane = static_cast<int>(i), .at = way.from == kHost ? way.to : way.from});
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), bytes), pieces, latency_s);
    return static_cast<double>(bytes) * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// Seconds for a byte of result when each of `ranks` combines `operands` of its own.
  double combine_s(const std::vector<int>& ranks, int operands, double latency_s) const {
    const std::int64_t bytes = meter_.footprint_bytes / (operands + 1);
    const std::int64_t pieces = pieces_of(bytes);
    Builder builder("combine", {.ranks = ranks_, .units = pieces});
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (const int rank : ranks) {
        std::vector<Slice> sources{builder.input(rank, piece, 1)};
        for (int i = 0; i + 1 < operands; ++i) {
          sources.push_back(builder.tmp(rank, i * pieces + piece, 1));
        }
        builder.combine(builder.output(rank, piece, 1), sources);
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), bytes), pieces, latency_s);
    return time_s / static_cast<double>(bytes) / static_cast<double>(ranks.size());
  }

  /// Of an op in a chain that runs to and fro between two places, or stays at one.
  double hop_latency_s(int rank, int other) const {
    return chain_latency_s(1, [&](Builder& builder, int ops) {
      const PlaceId host = other == kHost ? builder.add_host() : 0;
      const Slice here = builder.output(rank, 0, 1);
      const Slice there = other == kHost  ? builder.tmp(host, 0, 1)
                          : other == rank ? builder.tmp(rank, 0, 1)
                                          : builder.output(other, 0, 1);
      for (int op = 0; op < ops; ++op) {
        const bool forth = op % 2 == 0;
        const int at = forth || other == kHost ? rank : other;
        builder.copy(forth ? there : here, forth ? here : there, {.at = at});
      }
    });
  }

  /// Of a step round a ring of all ranks of a host, as in an allgather of hardly any bytes.
  double ring_latency_s() const {
    const int ranks = ranks_of_a_host_;
    return chain_latency_s(ranks, [&](Builder& builder, int steps) {
      for (int step = 0; step < steps; ++step) {
        for (int rank = 0; rank < ranks; ++rank) {
          const int to = (rank + 1) % ranks;
          const int unit = ((rank - step) % ranks + ranks) % ranks;
          builder.copy(builder.output(to, unit, 1), builder.output(rank, unit, 1));
        }
      }
    });
  }

  double combine_latency_s() const {
    return chain_latency_s(1, [](Builder& builder, int ops) {
      for (int op = 0; op < ops; ++op) {
        builder.combine(builder.output(0, 0, 1), {builder.output(0, 0, 1), builder.input(0, 0, 1)});
      }
    });
  }

 private:
  std::int64_t pieces_of(std::int64_t bytes) const {
    return std::max<std::int64_t>(1, bytes / meter_.piece_bytes);
  }

  /// What is left of a time without the starts of its pieces: no less than half of it, for
  /// latencies are measured too.
  static double moving_s(double time_s, std::int64_t pieces, double latency_s) {
    return std::max(time_s - static_cast<double>(pieces) * latency_s, time_s / 2);
  }

  double time_of(const Program& program, std::int64_t bytes) const {
    return std::max(kMinTime_s, meter_.time_s(program, bytes, method_));
  }

  /// Seconds of one step more of a chain that `fill` makes of so many, on a message of that many
  /// units.
  template <class Fill>
  double chain_latency_s(int units, const Fill& fill) const {
    const auto time_s = [&](int steps) {
      Builder builder("chain", {.ranks = ranks_, .units = units});
      fill(builder, steps);
      return time_of(builder.finish(), units * kTinyBytes);
    };
    const double more_s = time_s(kLongChain) - time_s(kShortChain);
    return std::max(0.0, more_s / (kLongChain - kShortChain));
  }

  int ranks_;
  int ranks_of_a_host_;
  const Meter& meter_;
  CopyMethod method_;
};

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
  const auto arithmetic = [&](const std::vector<int>& ranks) {
    return survey_arithmetic(surveyor, ranks, survey.kernel.local.latency_s,
                             survey.reduce_latency_s);
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
  }
  if (inventory.hosts > 1) {
    survey.to_hosts = survey_network(inventory, meter);
    survey.network = medians_of(survey.to_hosts);
  }
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
  const std::size_t steps = copies * (meter.copy_engines ? 2 : 1) + with_host +
                            (inventory.is_shared() ? 1 : 0) +
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
