// SPDX-License-Identifier: Apache-2.0
#include "probe/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "core/median.h"
#include "core/units.h"
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
// Pieces that a small working set is moved in, as collectives cut messages of few ranks.
constexpr std::int64_t kPiecesOfWorkingSet = 4;

/// A copy between the ranks or, as kHost, from or to the host's memory.
constexpr int kHost = -1;
struct Way {
  int from = 0;
  int to = 0;
};

/// How much is moved by each rank: `bytes` in equal pieces, so many times over.
struct Extent {
  std::int64_t bytes = 0;
  std::int64_t pieces = 1;
  std::int64_t passes = 1;

  double ops() const { return static_cast<double>(pieces * passes); }
  double moved_bytes() const { return static_cast<double>(bytes * passes); }
};

/// Measures with one method of copying.
class Surveyor {
 public:
  Surveyor(const Inventory& inventory, const Meter& meter, CopyMethod method)
      : ranks_(inventory.ranks()), meter_(meter), method_(method) {}

  /// Every way carries the message once, in pieces, all ways at a time. GB/s of all together, less
  /// what pieces that start after `latency_s` lose by it.
  double copy_gbps(const std::vector<Way>& ways, double latency_s) const {
    return copy_gbps(ways, latency_s, in_memory(meter_.footprint_bytes / 2));
  }
  double copy_gbps(const std::vector<Way>& ways, double latency_s, const Extent& extent) const {
    const std::int64_t pieces = extent.pieces;
    Builder builder("copy", {.ranks = ranks_, .units = pieces});
    PlaceId host = 0;
    if (std::ranges::any_of(ways, [](Way way) { return way.from == kHost || way.to == kHost; })) {
      host = builder.add_host();
    }
    for_each_piece(extent, [&](std::int64_t piece) {
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
    });
    const double time_s = moving_s(time_of(builder.finish(), extent.bytes), extent, latency_s);
    return extent.moved_bytes() * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// Seconds for a byte of result when each of `ranks` combines `operands` of its own.
  double combine_s(const std::vector<int>& ranks, int operands, double latency_s,
                   const Extent& extent) const {
    const std::int64_t pieces = extent.pieces;
    Builder builder("combine", {.ranks = ranks_, .units = pieces});
    for_each_piece(extent, [&](std::int64_t piece) {
      for (const int rank : ranks) {
        std::vector<Slice> sources{builder.input(rank, piece, 1)};
        for (int i = 0; i + 1 < operands; ++i) {
          sources.push_back(builder.tmp(rank, i * pieces + piece, 1));
        }
        builder.combine(builder.output(rank, piece, 1), sources);
      }
    });
    const double time_s = moving_s(time_of(builder.finish(), extent.bytes), extent, latency_s);
    return time_s / extent.moved_bytes() / static_cast<double>(ranks.size());
  }

  /// GB/s that ranks receive from one another while each passes on what it has received, as in
  /// collectives: all ways at a time or, where there is one, forth and back. `extent`: of what a
  /// rank passes on each time; where several do, they have as much again, and where one does, it
  /// has one piece, so that one receives at a time.
  double exchange_gbps(const std::vector<Way>& ways, double latency_s, const Extent& extent) const {
    const std::int64_t pieces = extent.pieces;
    const bool returns = ways.size() == 1;
    Builder builder("exchange", {.ranks = ranks_, .units = pieces});
    const auto half = [&](bool second, int rank, std::int64_t piece) {
      return second ? builder.tmp(rank, piece, 1) : builder.output(rank, piece, 1);
    };
    for (std::int64_t pass = 0; pass < extent.passes; ++pass) {
      const bool is_odd = pass % 2 != 0;
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        for (std::size_t i = 0; i < ways.size(); ++i) {
          const bool back = returns && is_odd;
          const int from = back ? ways[i].to : ways[i].from;
          const int to = back ? ways[i].from : ways[i].to;
          builder.copy(half(!is_odd, to, piece), half(is_odd, from, piece),
                       {.lane = static_cast<int>(i), .at = from});
        }
      }
    }
    const double time_s = moving_s(time_of(builder.finish(), extent.bytes), extent, latency_s);
    return extent.moved_bytes() * static_cast<double>(ways.size()) / time_s * 1e-9;
  }

  /// Once, more than caches hold.
  Extent in_memory(std::int64_t bytes) const {
    return {bytes, std::max<std::int64_t>(1, bytes / meter_.piece_bytes), 1};
  }
  /// As often as it takes to move as much as would be moved in memory, so that what a run costs
  /// beside its ops counts as little.
  Extent in_caches(std::int64_t bytes, std::int64_t pieces = kPiecesOfWorkingSet) const {
    return {bytes, pieces, std::max<std::int64_t>(1, meter_.footprint_bytes / 2 / bytes)};
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

  /// Of a step round a ring of these ranks, as in an allgather of hardly any bytes.
  double ring_latency_s(const std::vector<int>& ranks) const {
    const int count = static_cast<int>(ranks.size());
    return chain_latency_s(count, [&](Builder& builder, int steps) {
      for (int step = 0; step < steps; ++step) {
        for (int place = 0; place < count; ++place) {
          const int from = ranks[static_cast<std::size_t>(place)];
          const int to = ranks[static_cast<std::size_t>((place + 1) % count)];
          const int unit = ((place - step) % count + count) % count;
          builder.copy(builder.output(to, unit, 1), builder.output(from, unit, 1));
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
  template <class Visit>
  static void for_each_piece(const Extent& extent, const Visit& visit) {
    for (std::int64_t pass = 0; pass < extent.passes; ++pass) {
      for (std::int64_t piece = 0; piece < extent.pieces; ++piece) visit(piece);
    }
  }

  /// What is left of a time without the starts of its pieces: no less than half of it, for
  /// latencies are measured too.
  static double moving_s(double time_s, const Extent& extent, double latency_s) {
    return std::max(time_s - extent.ops() * latency_s, time_s / 2);
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
  const Meter& meter_;
  CopyMethod method_;
};

/// Ranks whose pairs are measured: all of them, unless those of a socket are alike.
std::vector<int> measured_ranks(const Inventory& inventory) {
  std::vector<int> ranks;
  if (!inventory.is_shared()) {
    for (int rank = 0; rank < inventory.ranks(); ++rank) ranks.push_back(rank);
    return ranks;
  }
  ranks = ranks_by_socket(inventory).front();
  // Where each has a socket of its own, there is nobody nearer than the others.
  if (ranks.size() == 1 && inventory.ranks_of_a_host() > 1) ranks.push_back(1);
  ranks.resize(std::min<std::size_t>(ranks.size(), 2));
  return ranks;
}

CopyFigures survey_copies(const Inventory& inventory, const Meter& meter, CopyMethod method) {
  const Surveyor surveyor(inventory, meter, method);
  const std::string by = method == CopyMethod::kernel ? "" : " by copy engines";
  CopyFigures figures;
  meter.progress("copies within a memory" + by);
  figures.local.latency_s = surveyor.hop_latency_s(0, 0);
  figures.local.gbps = surveyor.copy_gbps({{0, 0}}, figures.local.latency_s);
  const std::vector<int> ranks = measured_ranks(inventory);
  const std::size_t count = ranks.size();
  figures.pairs.assign(count, std::vector<PathFigures>(count));
  figures.both_ways_gbps.assign(count, std::vector<double>(count, 0));
  const auto measure = [&](int from, int to) {
    const double latency_s = surveyor.hop_latency_s(from, to);
    return PathFigures{latency_s, surveyor.copy_gbps({{from, to}}, latency_s)};
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      const int a = ranks[i];
      const int b = ranks[j];
      meter.progress(fmt::format("copies {} <-> {}{}", a, b, by));
      figures.pairs[i][j] = measure(a, b);
      figures.pairs[j][i] = measure(b, a);
      figures.both_ways_gbps[i][j] =
          surveyor.copy_gbps({{a, b}, {b, a}}, figures.pairs[i][j].latency_s);
    }
  }
  const std::vector<int> neighbours = ranks_by_socket(inventory).front();
  if (inventory.is_shared() && count > 1) {
    figures.crowded_latency_s = surveyor.ring_latency_s(neighbours.size() > 1 ? neighbours : ranks);
  }
  const std::size_t near_host = inventory.is_shared() ? 1 : count;
  for (const int rank : std::span(ranks).first(near_host)) {
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

/// Of some ranks at a time, every rank in its own memory. `extent_of`: of what a rank has of each
/// operand when so many bytes of its buffers are all that it touches.
template <class ExtentOf>
ArithmeticFigures survey_arithmetic(const Surveyor& surveyor, const std::vector<int>& ranks,
                                    const Survey& survey, std::int64_t footprint_bytes,
                                    const ExtentOf& extent_of) {
  ArithmeticFigures figures;
  std::vector<Way> ways;
  for (const int rank : ranks) ways.push_back({rank, rank});
  figures.copy_s = 1e-9 / surveyor.copy_gbps(ways, survey.kernel.local.latency_s,
                                             extent_of(footprint_bytes / 2));
  for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
    const int operands = ArithmeticFigures::kOperands[i];
    figures.combine_s[i] = surveyor.combine_s(ranks, operands, survey.reduce_latency_s,
                                              extent_of(footprint_bytes / (operands + 1)));
  }
  return figures;
}

/// Each rank of the first host to the next one of its socket, or of the host where sockets have one
/// each.
std::vector<Way> round(const Inventory& inventory) {
  std::vector<std::vector<int>> groups = ranks_by_socket(inventory);
  if (std::ranges::all_of(groups, [](const auto& group) { return group.size() == 1; })) {
    std::vector<int> all;
    for (const std::vector<int>& group : groups) all.push_back(group.front());
    groups = {all};
  }
  std::vector<Way> ways;
  for (const std::vector<int>& group : groups) {
    for (std::size_t i = 0; group.size() > 1 && i < group.size(); ++i) {
      ways.push_back({group[i], group[(i + 1) % group.size()]});
    }
  }
  return ways;
}

/// Of ranks that share a memory. \pre what else is measured of them is in the survey
std::vector<WorkingSetFigures> survey_working_sets(const Surveyor& surveyor, const Meter& meter,
                                                   const std::vector<int>& ranks,
                                                   const Survey& survey) {
  const int neighbour = measured_ranks(survey.inventory).back();
  std::vector<WorkingSetFigures> all;
  const auto extent = [&](std::int64_t bytes) { return surveyor.in_caches(bytes); };
  for (const std::int64_t bytes : meter.working_sets) {
    meter.progress(fmt::format("caches, {} a rank", describe_size(bytes)));
    WorkingSetFigures& figures = all.emplace_back();
    figures.bytes = bytes;
    figures.alone = survey_arithmetic(surveyor, {0}, survey, bytes, extent);
    figures.together = survey_arithmetic(surveyor, ranks, survey, bytes, extent);
    if (ranks.size() < 2) continue;
    const double hop_s = survey.kernel.pairs[0][1].latency_s;
    figures.exchange_alone_gbps =
        surveyor.exchange_gbps({{0, neighbour}}, hop_s, surveyor.in_caches(bytes, 1));
    figures.exchange_gbps = surveyor.exchange_gbps(
        round(survey.inventory), survey.kernel.crowded_latency_s, extent(bytes / 2));
  }
  return all;
}

/// Between the first of two groups of ranks and the first of the other, and between all of them.
NetworkFigures survey_between(const Surveyor& surveyor, const std::vector<int>& here,
                              const std::vector<int>& there, const Extent& extent) {
  NetworkFigures figures;
  figures.to.latency_s = surveyor.hop_latency_s(here.front(), there.front());
  figures.from.latency_s = surveyor.hop_latency_s(there.front(), here.front());
  const double latency_s = figures.to.latency_s;
  const auto gbps = [&](const std::vector<Way>& ways) {
    return surveyor.copy_gbps(ways, latency_s, extent);
  };
  const Way to{here.front(), there.front()};
  const Way from{there.front(), here.front()};
  figures.to.gbps = gbps({to});
  figures.from.gbps = gbps({from});
  figures.both_gbps = gbps({to, from});
  const std::size_t pairs = std::min(here.size(), there.size());
  std::vector<Way> all;
  for (std::size_t i = 0; i < pairs; ++i) all.push_back({here[i], there[i]});
  figures.all_gbps = gbps(all);
  for (std::size_t i = 0; i < pairs; ++i) all.push_back({there[i], here[i]});
  figures.all_both_gbps = gbps(all);
  return figures;
}

/// To each host but the first.
std::vector<NetworkFigures> survey_network(const Surveyor& surveyor, const Inventory& inventory,
                                           const Meter& meter) {
  const auto ranks_of = [&](int host) {
    std::vector<int> ranks(static_cast<std::size_t>(inventory.ranks_of_a_host()));
    std::iota(ranks.begin(), ranks.end(), host * inventory.ranks_of_a_host());
    return ranks;
  };
  const Extent extent = surveyor.in_memory(std::min(kNetworkBytes, meter.footprint_bytes / 2));
  std::vector<NetworkFigures> hosts;
  for (int host = 1; host < inventory.hosts; ++host) {
    meter.progress(fmt::format("the network between hosts 0 <-> {}", host));
    hosts.push_back(survey_between(surveyor, ranks_of(0), ranks_of(host), extent));
  }
  return hosts;
}

/// To each socket of the first host but that of rank 0.
std::vector<NetworkFigures> survey_sockets(const Surveyor& surveyor, const Inventory& inventory,
                                           const Meter& meter) {
  const std::vector<std::vector<int>> ranks = ranks_by_socket(inventory);
  const Extent extent = surveyor.in_memory(meter.footprint_bytes / 2);
  std::vector<NetworkFigures> sockets;
  for (std::size_t socket = 1; socket < ranks.size(); ++socket) {
    meter.progress(fmt::format("from socket to socket, {} <-> {}", ranks.front().front(),
                               ranks[socket].front()));
    sockets.push_back(survey_between(surveyor, ranks.front(), ranks[socket], extent));
  }
  return sockets;
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
  survey.footprint_bytes = meter.footprint_bytes;
  survey.kernel = survey_copies(inventory, meter, CopyMethod::kernel);
  if (meter.copy_engines) {
    survey.copy_engine = survey_copies(inventory, meter, CopyMethod::copy_engine);
  }
  const Surveyor surveyor(inventory, meter, CopyMethod::kernel);
  survey.reduce_latency_s = surveyor.combine_latency_s();
  const auto arithmetic = [&](const std::vector<int>& ranks) {
    return survey_arithmetic(surveyor, ranks, survey, meter.footprint_bytes,
                             [&](std::int64_t bytes) { return surveyor.in_memory(bytes); });
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
    if (all.size() > 1) {
      survey.exchange_gbps = surveyor.copy_gbps(round(inventory), survey.kernel.crowded_latency_s);
    }
    survey.working_sets = survey_working_sets(surveyor, meter, all, survey);
  }
  const auto sockets = survey_sockets(surveyor, inventory, meter);
  if (!sockets.empty()) survey.between_sockets = medians_of(sockets);
  if (inventory.hosts > 1) {
    survey.to_hosts = survey_network(surveyor, inventory, meter);
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
  meter.working_sets = settings.working_sets;
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
  const std::size_t ranks = measured_ranks(inventory).size();
  const std::size_t with_host = inventory.is_shared() ? 1 : ranks;
  const std::size_t copies = 1 + ranks * (ranks - 1) / 2 + with_host;
  const std::size_t steps = copies * (meter.copy_engines ? 2 : 1) + with_host +
                            (inventory.is_shared() ? 1 + meter.working_sets.size() : 0) +
                            ranks_by_socket(inventory).size() - 1 +
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
