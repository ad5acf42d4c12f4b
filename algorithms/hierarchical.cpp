// SPDX-License-Identifier: Apache-2.0
// The hierarchical allreduce of clusters of GPU machines: the ranks of a machine reduce-scatter,
// the ranks that then hold the same part, one in every machine, allreduce it along a rail of their
// own, and the ranks of a machine allgather. Each rank sends 2 (m - 1) / m of its part into the
// network for m machines, all rails at once; where machines have fewer NICs than ranks, rails share
// them. Mikami et al., "Massively distributed SGD", 2018 (2D-torus allreduce); Cho et al.,
// "BlueConnect", 2019. (hierarchical_leaders sends everything through the leaders of sockets.)
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// By node: where a GPU stands among the GPUs of its machine.
std::vector<int> positions(const Topology& topology) {
  std::map<int, int> gpus;  // by host
  std::vector<int> standing(topology.nodes.size(), 0);
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    const Node& one = topology.nodes[node];
    if (one.kind == NodeKind::gpu) standing[node] = gpus[one.host]++;
  }
  return standing;
}

/// Rails join GPUs that stand at the same position of their machines, which share a network plane
/// where there are several. Where machines take part with unlike positions, in the order of ranks.
void align_rails(const BuildRequest& request, std::vector<std::vector<int>>& machines) {
  if (request.router == nullptr || request.placement == nullptr) return;
  const std::vector<int> standing = positions(request.router->topology());
  const auto position_of = [&](int rank) {
    return standing[static_cast<std::size_t>(
        request.placement->ranks[static_cast<std::size_t>(rank)])];
  };
  std::map<int, std::size_t> rail_of;
  for (std::size_t i = 0; i < machines.front().size(); ++i) {
    rail_of[position_of(machines.front()[i])] = i;
  }
  std::vector<std::vector<int>> aligned = machines;
  for (std::size_t machine = 1; machine < machines.size(); ++machine) {
    if (machines[machine].size() != rail_of.size()) return;
    for (const int rank : machines[machine]) {
      const auto rail = rail_of.find(position_of(rank));
      if (rail == rail_of.end()) return;
      aligned[machine][rail->second] = rank;
    }
  }
  machines = std::move(aligned);
}

/// The ranks of every machine by rail, as far as they have rails.
std::vector<std::vector<int>> machines_of(const BuildRequest& request) {
  std::vector<std::vector<int>> machines = ranks_by_machine(request);
  align_rails(request, machines);
  return machines;
}

std::optional<std::string> why_not(const BuildRequest& request) {
  const auto machines = machines_of(request);
  const auto [fewest, most] = std::ranges::minmax_element(machines, {}, &std::vector<int>::size);
  if (fewest->size() == most->size()) return std::nullopt;
  return fmt::format("every machine needs as many ranks as the others, but one has {} and one {}",
                     fewest->size(), most->size());
}

std::vector<Fold> fold_machines(const BuildRequest& request) {
  return folds_of_groups(machines_of(request));
}

/// Part i of the message belongs to rank i of every machine and has a unit for each machine. Every
/// stage of a part has a lane, so that all parts advance together. Machines combine and hand out
/// one unit after the other, in the order in which the rail's ring needs and brings them, so that
/// the stages overlap; as each machine begins with a unit of its own, they all do the same.
class Stages {
 public:
  explicit Stages(const BuildRequest& request)
      : machines_(machines_of(request)),
        parts_(static_cast<int>(machines_.front().size())),
        part_units_(static_cast<std::int64_t>(machines_.size())),
        is_direct_(request.parameter("direct") == 1),
        builder_("hierarchical", request.contract(parts_ * part_units_), request.fold) {}

  Program build() {
    // A machine sends the unit before its own first, and its own is complete first.
    for_each_unit(-1, [&](const std::vector<int>& ranks, std::int64_t unit) {
      is_direct_ ? combine_directly(ranks, unit) : combine_around(ranks, unit);
    });
    for (int part = 0; part < parts_; ++part) allreduce_rail(part);
    for_each_unit(0, [&](const std::vector<int>& ranks, std::int64_t unit) {
      is_direct_ ? hand_out_directly(ranks, unit) : hand_out_around(ranks, unit);
    });
    return builder_.finish();
  }

 private:
  /// Calls `visit(ranks, unit)` for every machine and all units of every part: that of the machine
  /// which is `first` machines after it, then those of the machines before, one after the other.
  template <class Visit>
  void for_each_unit(int first, Visit&& visit) {
    const auto count = static_cast<int>(machines_.size());
    for (int part = 0; part < parts_; ++part) {
      for (int machine = 0; machine < count; ++machine) {
        const std::vector<int>& ranks = machines_[static_cast<std::size_t>(machine)];
        if (!builder_.builds(ranks.front())) continue;
        for (int step = 0; step < count; ++step) {
          visit(ranks, part * part_units_ + wrap(machine + first - step, count));
        }
      }
    }
  }

  int part_of(std::int64_t unit) const { return static_cast<int>(unit / part_units_); }
  /// The rank that is `steps` after the owner of a part.
  int after_owner(const std::vector<int>& ranks, int part, int steps) const {
    return ranks[static_cast<std::size_t>((part + steps) % parts_)];
  }
  int lane(int stage, int part) const { return (stage * parts_ + part) % kMaxLanes; }

  void combine_directly(const std::vector<int>& ranks, std::int64_t unit) {
    const int part = part_of(unit);
    std::vector<Slice> inputs;
    for (int i = 0; i < parts_; ++i) {
      inputs.push_back(builder_.input(after_owner(ranks, part, i), unit, 1));
    }
    reduce_slices(builder_, builder_.output(after_owner(ranks, part, 0), unit, 1), inputs, parts_,
                  lane(0, 0));
  }

  /// From the rank after the owner on, around to the owner.
  void combine_around(const std::vector<int>& ranks, std::int64_t unit) {
    if (parts_ == 1) return combine_directly(ranks, unit);
    const int part = part_of(unit);
    Slice sum = builder_.input(after_owner(ranks, part, 1), unit, 1);
    for (int steps = 2; steps <= parts_; ++steps) {
      const int rank = after_owner(ranks, part, steps);
      const Slice result = builder_.output(rank, unit, 1);
      builder_.combine(result, {sum, builder_.input(rank, unit, 1)},
                       {.lane = lane(0, parts_ - steps)});
      sum = result;
    }
  }

  void allreduce_rail(int part) {
    std::vector<Slice> sums;
    for (const std::vector<int>& ranks : machines_) {
      sums.push_back(builder_.output(after_owner(ranks, part, 0), part * part_units_, part_units_));
    }
    if (sums.size() > 1) ring_allreduce(builder_, sums, lane(1, part));
  }

  void hand_out_directly(const std::vector<int>& ranks, std::int64_t unit) {
    const int part = part_of(unit);
    const Slice result = builder_.output(after_owner(ranks, part, 0), unit, 1);
    for (int steps = 1; steps < parts_; ++steps) {
      // The owner's lanes of this stage, one for each peer.
      builder_.copy(builder_.output(after_owner(ranks, part, steps), unit, 1), result,
                    {.lane = lane(2, steps)});
    }
  }

  void hand_out_around(const std::vector<int>& ranks, std::int64_t unit) {
    const int part = part_of(unit);
    for (int steps = 1; steps < parts_; ++steps) {
      builder_.copy(builder_.output(after_owner(ranks, part, steps), unit, 1),
                    builder_.output(after_owner(ranks, part, steps - 1), unit, 1),
                    {.lane = lane(2, steps)});
    }
  }

  const std::vector<std::vector<int>> machines_;
  const int parts_;
  const std::int64_t part_units_;
  const bool is_direct_;
  Builder builder_;
};

}  // namespace

const Algorithm& hierarchical_algorithm() {
  static const Algorithm algorithm = {
      .name = "hierarchical",
      .summary = "reduce-scatter within machines, allreduce along rails across them, allgather",
      .constraints = "the same number of ranks in every machine",
      .paper = "Mikami et al., Massively distributed SGD, 2018",
      .collectives = {Collective::allreduce},
      .parameters = {{"direct",
                      "1: ranks of a machine exchange parts directly; 0: around a ring of them",
                      0,
                      0,
                      1,
                      {1},
                      /*weighed=*/true,
                      /*of_plan=*/false}},
      .pipelined = true,
      .staggered = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported = why_not,
      .folds = fold_machines,
      .folds_anywhere = true,
      .build = [](const BuildRequest& request) { return Stages(request).build(); }};
  return algorithm;
}

}  // namespace espalier
