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

/// Groups are machines, or several of them, that have the same rails.
std::vector<Fold> fold_machines(const BuildRequest& request) {
  const std::vector<std::vector<int>> machines = machines_of(request);
  if (!are_numbered_in_order(machines)) return {};
  std::vector<Fold> all;
  const auto count = static_cast<int>(machines.size());
  for (int step = 1; 2 * step <= count; ++step) {
    if (count % step != 0) continue;
    const int each = request.ranks / count * step;
    Fold& fold = all.emplace_back(Fold{.groups = count / step, .each = each, .adjacent = each});
    fold.turns.fill({.most = {.period = count, .step = step}});
  }
  return all;
}

/// Part i of the message belongs to rank i of every machine and has a unit for each machine. Every
/// stage of a part has a lane, so that all parts advance together.
class Stages {
 public:
  explicit Stages(const BuildRequest& request)
      : machines_(machines_of(request)),
        parts_(static_cast<int>(machines_.front().size())),
        part_units_(static_cast<std::int64_t>(machines_.size())),
        is_direct_(request.parameter("direct") == 1),
        builder_("hierarchical", request.contract(parts_ * part_units_), request.fold) {}

  Program build() {
    for (int part = 0; part < parts_; ++part) {
      for (const std::vector<int>& ranks : machines_) {
        if (!builder_.builds(ranks.front())) continue;
        is_direct_ ? combine_directly(ranks, part) : combine_around(ranks, part);
      }
    }
    for (int part = 0; part < parts_; ++part) allreduce_rail(part);
    for (int part = 0; part < parts_; ++part) {
      for (const std::vector<int>& ranks : machines_) {
        if (!builder_.builds(ranks.front())) continue;
        is_direct_ ? hand_out_directly(ranks, part) : hand_out_around(ranks, part);
      }
    }
    return builder_.finish();
  }

 private:
  /// The rank that is `steps` after the owner of a part.
  int after_owner(const std::vector<int>& ranks, int part, int steps) const {
    return ranks[static_cast<std::size_t>((part + steps) % parts_)];
  }
  Slice input(int rank, int part) const {
    return builder_.input(rank, part * part_units_, part_units_);
  }
  Slice result(int rank, int part) const {
    return builder_.output(rank, part * part_units_, part_units_);
  }
  int lane(int stage, int part) const { return (stage * parts_ + part) % kMaxLanes; }

  void combine_directly(const std::vector<int>& ranks, int part) {
    std::vector<Slice> inputs;
    for (int i = 0; i < parts_; ++i) inputs.push_back(input(after_owner(ranks, part, i), part));
    reduce_slices(builder_, result(after_owner(ranks, part, 0), part), inputs, parts_,
                  lane(0, part));
  }

  /// From the rank after the owner on, around to the owner.
  void combine_around(const std::vector<int>& ranks, int part) {
    if (parts_ == 1) return combine_directly(ranks, part);
    Slice sum = input(after_owner(ranks, part, 1), part);
    for (int steps = 2; steps <= parts_; ++steps) {
      const int rank = after_owner(ranks, part, steps);
      builder_.combine(result(rank, part), {sum, input(rank, part)}, {.lane = lane(0, part)});
      sum = result(rank, part);
    }
  }

  void allreduce_rail(int part) {
    std::vector<Slice> sums;
    for (const std::vector<int>& ranks : machines_) {
      sums.push_back(result(after_owner(ranks, part, 0), part));
    }
    if (sums.size() > 1) ring_allreduce(builder_, sums, lane(1, part));
  }

  void hand_out_directly(const std::vector<int>& ranks, int part) {
    const Slice whole = result(after_owner(ranks, part, 0), part);
    for (int steps = 1; steps < parts_; ++steps) {
      // The owner's lanes of this stage, one for each peer.
      builder_.copy(result(after_owner(ranks, part, steps), part), whole, {.lane = lane(2, steps)});
    }
  }

  void hand_out_around(const std::vector<int>& ranks, int part) {
    for (int steps = 1; steps < parts_; ++steps) {
      builder_.copy(result(after_owner(ranks, part, steps), part),
                    result(after_owner(ranks, part, steps - 1), part), {.lane = lane(2, part)});
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
      .build = [](const BuildRequest& request) { return Stages(request).build(); }};
  return algorithm;
}

}  // namespace espalier
