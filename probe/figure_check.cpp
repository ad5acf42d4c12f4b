// SPDX-License-Identifier: Apache-2.0
#include "probe/figure_check.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "probe/doubts.h"
#include "probe/surveyor.h"

namespace espalier {
namespace {

// Bytes of a rank: in the caches of a processor, and in memory or a cache that several processors
// share. With these, figures of a machine that stays as it is repeat best.
constexpr std::array kWorkingSets{std::int64_t{2} << 20, std::int64_t{32} << 20};
// What figures of few runs differ by on a machine that stays as it is, other work included
// (docs/probing.md).
constexpr double kBand = 1.25;

double sum_of(const Topology& machine, std::int64_t bytes, double (*rate)(const MemoryRates&)) {
  double sum = 0;
  for (const auto& [name, memory] : machine.memories) {
    sum += rate(memory.all_at(static_cast<double>(bytes)));
  }
  return sum;
}

/// Seconds for a byte of result of a sum of two, as the simulator has it.
double addition_s(const MemoryRates& rates) {
  const double gbps =
      rates.reduce_gbps > 0 ? std::min(rates.gbps / 3, rates.reduce_gbps) : rates.gbps / 3;
  return 1e-9 / gbps;
}

/// Measures what all ranks of a host do at once with so many bytes each.
class CheckedSet {
 public:
  CheckedSet(const Topology& machine, const Inventory& inventory, const Meter& meter,
             std::int64_t bytes)
      : surveyor_(inventory, meter, CopyMethod::kernel, bytes),
        ranks_(static_cast<std::size_t>(inventory.ranks_of_a_host())),
        around_(rings_of(inventory.ranks_by_socket())),
        profile_(machine.profile("kernel")) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
  }

  bool exchanges() const { return !around_.empty(); }

  double sum_gbps() const {
    return 1e-9 / surveyor_.combine_s(ranks_, 2, {profile_.reduce_overhead_s, {}});
  }
  double unchanged_gbps() const { return share() * surveyor_.copy_gbps(around_, start_up()); }
  double passed_on_gbps() const { return share() * surveyor_.pass_on_gbps(around_, start_up()); }
  /// Of what is fresh. Without the sum, it would be a difference of two times, and as uncertain.
  double fetched_sum_gbps() const {
    StartUp combining = start_up();
    combining.add(profile_.reduce_overhead_s);
    return share() * 1e-9 / surveyor_.exchange_and_combine_s(around_, combining);
  }

 private:
  /// Of all ranks, per rank in a ring: those that are alone on their sockets count as if they did
  /// the same.
  double share() const {
    return static_cast<double>(ranks_.size()) / static_cast<double>(around_.size());
  }
  StartUp start_up() const { return profile_.links.at("memory").start_up(); }

  Surveyor surveyor_;
  std::vector<int> ranks_;
  std::vector<Way> around_;
  Profile profile_;
};

/// What is checked, and what a memory's rates say of it; 0: nothing. Copies within a memory are
/// not: one rate explains them and sums of several operands together, and is off by itself.
struct Key {
  const char* name;
  bool is_exchange;
  double (*probed_gbps)(const MemoryRates& rates);
  double (CheckedSet::*now_gbps)() const;
};
constexpr std::array kKeys{
    Key{"sums", false, [](const MemoryRates& rates) { return 1e-9 / addition_s(rates); },
        &CheckedSet::sum_gbps},
    Key{"sums with fresh data of others", true,
        [](const MemoryRates& rates) {
          const double fresh_gbps = rates.exchange.gbps;
          return fresh_gbps > 0 ? 1e-9 / (1e-9 / fresh_gbps + addition_s(rates)) : 0;
        },
        &CheckedSet::fetched_sum_gbps},
    Key{"exchange of unchanged data", true,
        [](const MemoryRates& rates) { return rates.exchange.unchanged_gbps; },
        &CheckedSet::unchanged_gbps},
    Key{"exchange of data passed on", true,
        [](const MemoryRates& rates) { return rates.exchange.passed_on_gbps; },
        &CheckedSet::passed_on_gbps},
};

}  // namespace

double CheckedFigure::factor() const {
  return std::max(probed_gbps / now_gbps, now_gbps / probed_gbps);
}

bool CheckedFigure::has_changed() const { return factor() > kBand; }

bool can_check(const Topology& machine, const Inventory& inventory) {
  return was_probed(machine) && machine.has_working_sets() && inventory.is_host &&
         inventory.hosts == machine.hosts &&
         static_cast<std::size_t>(inventory.ranks()) == machine.gpus().size();
}

std::vector<CheckedFigure> check_figures(const Topology& machine, const Inventory& inventory,
                                         const Meter& meter) {
  std::vector<CheckedFigure> figures;
  for (const std::int64_t bytes : kWorkingSets) {
    if (bytes > meter.footprint_bytes) break;
    const CheckedSet set(machine, inventory, meter, bytes);
    for (const Key& key : kKeys) {
      const double probed_gbps = sum_of(machine, bytes, key.probed_gbps);
      if (probed_gbps == 0) continue;
      if (key.is_exchange && (!inventory.has_messages || !set.exchanges())) continue;
      CheckedFigure figure{key.name, bytes, probed_gbps, (set.*key.now_gbps)()};
      if (figure.has_changed()) {
        const CheckedFigure again{key.name, bytes, probed_gbps, (set.*key.now_gbps)()};
        if (again.factor() < figure.factor()) figure = again;
      }
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace espalier
