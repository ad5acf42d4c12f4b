// SPDX-License-Identifier: Apache-2.0
// Collectives in switches that add up and multicast, such as NVSwitches since Hopper (NVLS, "NVLink
// SHARP"). For its share of the message a rank, the head, reads the sum of everybody's data from
// the switch (multimem.ld_reduce) and stores the result to everybody (multimem.st). Every port
// carries the message once, and the share of its own rank once more: (1 + 1/n) S for an allreduce
// over n ranks, where a ring carries 2 (n-1)/n S. GPUs on several such switches: a head of every
// switch reads the sum of its own, the heads of a share allreduce them, around a ring or in a
// switch of the network that combines, and each stores the result (NCCL's NVLS across nodes).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "algorithms/schedules.h"
#include "core/check.h"

namespace espalier {

namespace {

/// As many as an NVLink domain may join (GB200 and later).
constexpr std::size_t kMaxRanksOfSwitch = 576;

/// Groups from which on switches work unit by unit. Of fewer, the first and the last unit are most
/// of a share, so that stages hardly overlap, and every unit costs a start-up.
constexpr std::size_t kFewestByUnit = 4;

std::vector<int> all_ranks(const BuildRequest& request) {
  std::vector<int> ranks(static_cast<std::size_t>(request.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool is_in_network(const BuildRequest& request, NodeId node) {
  return request.router->topology().node(node).kind == NodeKind::fabric;
}

/// The ranks by the NVSwitch that joins them, in the order of first ranks: one group without a
/// machine, or where no NVSwitch joins two but a switch of the network joins all. Ranks without a
/// switch are groups of one.
std::vector<std::vector<int>> groups_of(const BuildRequest& request) {
  const std::vector<int> all = all_ranks(request);
  if (request.router == nullptr || request.ranks == 1) return {all};
  const auto of_all = request.router->combining_switch(gpus_of(request, all));
  if (of_all && !is_in_network(request, *of_all)) return {all};
  std::vector<std::vector<int>> groups;
  std::map<NodeId, std::size_t> of_switch;
  for (const int rank : all) {
    auto node = request.router->combining_switch(gpus_of(request, {rank}));
    if (node && is_in_network(request, *node)) node.reset();
    const auto [group, is_new] = of_switch.try_emplace(node.value_or(-1 - rank), groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(rank);
  }
  if (of_all && groups.size() == all.size()) return {all};
  return groups;
}

std::optional<std::string> why_not(const BuildRequest& request) {
  if (request.ranks == 1) return std::nullopt;
  if (request.router != nullptr) {
    const Topology& machine = request.router->topology();
    if (std::ranges::none_of(machine.nodes, &Node::combines)) {
      return "no switch of this machine combines";
    }
    const Profile& profile = request.router->profile();
    if (profile.in_switch.empty()) {
      return fmt::format("profile {} has no ops in switches", profile.name);
    }
  }
  const std::vector<std::vector<int>> groups = groups_of(request);
  const auto [fewest, most] = std::ranges::minmax_element(groups, {}, &std::vector<int>::size);
  if (most->size() > kMaxRanksOfSwitch) {
    return fmt::format("a switch joins at most {} GPUs", kMaxRanksOfSwitch);
  }
  if (groups.size() == 1) return std::nullopt;
  if (most->size() == 1) return "no switch that combines joins two of these GPUs";
  if (request.collective != Collective::allreduce) {
    return fmt::format(
        "no switch that combines joins all these GPUs, and only allreduce is "
        "possible across {} of them",
        groups.size());
  }
  if (fewest->size() != most->size()) {
    return fmt::format("every switch needs as many GPUs as the others, but one has {} and one {}",
                       fewest->size(), most->size());
  }
  return std::nullopt;
}

/// What NCCL uses: 16 blocks on Hopper, 24 on Blackwell.
int channels_of(const BuildRequest& request) {
  const auto given = static_cast<int>(request.parameter("channels"));
  if (given > 0) return given;
  if (request.router == nullptr) return 16;
  const Node& gpu = request.router->topology().node(request.placement->ranks.front());
  return gpu.model.starts_with("b200") ? 24 : 16;
}

/// The ranks that are head number `head` of their groups. \pre all groups have as many ranks
std::vector<int> heads_of(const std::vector<std::vector<int>>& groups, int head) {
  std::vector<int> ranks;
  for (const std::vector<int>& group : groups) {
    ranks.push_back(group[static_cast<std::size_t>(head)]);
  }
  return ranks;
}

/// Whether a switch of the network combines what these ranks have.
bool are_joined(const BuildRequest& request, const std::vector<int>& ranks) {
  return request.router->combining_switch(gpus_of(request, ranks)).has_value();
}

/// Whether heads go around rings. What a switch of the network combines is the op of one rank for
/// all.
bool go_around(const BuildRequest& request, const std::vector<std::vector<int>>& groups) {
  if (groups.size() == 1) return false;
  for (int head = 0; head < static_cast<int>(groups.front().size()); ++head) {
    if (are_joined(request, heads_of(groups, head))) return false;
  }
  return true;
}

/// Where switches work unit by unit, groups do the same.
std::vector<Fold> fold_groups(const BuildRequest& request) {
  const std::vector<std::vector<int>> groups = groups_of(request);
  if (groups.size() < kFewestByUnit) return {};
  const std::vector<Fold> all = folds_of_groups(groups);
  return !all.empty() && go_around(request, groups) ? all : std::vector<Fold>();
}

/// Whether every rank of a group heads a share; else one does.
bool has_heads(Collective collective) {
  return collective != Collective::broadcast && collective != Collective::reduce;
}

double ops_of(const BuildRequest& request) {
  if (request.ranks == 1) return 1;
  const std::vector<std::vector<int>> groups = groups_of(request);
  const auto count = static_cast<double>(groups.size());
  const int heads = has_heads(request.collective) ? static_cast<int>(groups.front().size()) : 1;
  if (count == 1) return heads * channels_of(request);
  const double units = groups.size() < kFewestByUnit ? 1 : count;
  double ops = 0;
  for (int head = 0; head < heads; ++head) {
    ops += are_joined(request, heads_of(groups, head)) ? 2 * count + 1
                                                       : count * (2 * units + 2 * (count - 1));
  }
  return ops * channels_of(request) / request.fold.groups;
}

/// A share of the message for every head and channel, `units` long; channel c works on lane c.
class InSwitches {
 public:
  explicit InSwitches(const BuildRequest& request)
      : request_(request),
        groups_(groups_of(request)),
        heads_(has_heads(request.collective) ? static_cast<int>(groups_.front().size()) : 1),
        channels_(request.ranks == 1 ? 1 : channels_of(request)),
        units_(static_cast<std::int64_t>(groups_.size())),
        builder_("nvls", request.contract(heads_ * channels_ * units_), request.fold) {}

  Program build() {
    if (request_.ranks == 1) {
      builder_.copy(builder_.output(0, 0, units_), builder_.input(0, 0, units_));
      return builder_.finish();
    }
    for (int channel = 0; channel < channels_; ++channel) {
      for (int head = 0; head < heads_; ++head) add_share(head, channel);
    }
    return builder_.finish();
  }

 private:
  /// Of a share, or one of its units.
  struct Part {
    std::int64_t begin = 0;
    std::int64_t units = 0;
  };

  Slice input(int rank, const Part& part) const {
    return builder_.input(rank, part.begin, part.units);
  }
  Slice output(int rank, const Part& part) const {
    return builder_.output(rank, part.begin, part.units);
  }

  void add_share(int head, int channel) {
    const Part share{(head * channels_ + channel) * units_, units_};
    const std::vector<int>& ranks = groups_.front();
    switch (request_.collective) {
      case Collective::allreduce:
        return groups_.size() == 1 ? allreduce(head, share, channel)
                                   : allreduce_across(head, share, channel);
      case Collective::reducescatter:
        builder_.in_switch(std::vector{output(head, {channel * units_, units_})},
                           inputs(ranks, head, share), {.lane = channel});
        return;
      case Collective::allgather:
        builder_.in_switch(outputs(ranks, head, share),
                           std::vector{input(head, {channel * units_, units_})}, {.lane = channel});
        return;
      case Collective::broadcast:
        builder_.in_switch(outputs(ranks, request_.root, share),
                           std::vector{input(request_.root, share)}, {.lane = channel});
        return;
      case Collective::reduce:
        builder_.in_switch(std::vector{output(request_.root, share)},
                           inputs(ranks, request_.root, share), {.lane = channel});
        return;
      default:
        CHECK(false);
    }
  }

  void allreduce(int head, const Part& share, int channel) {
    const std::vector<int>& ranks = groups_.front();
    builder_.in_switch(outputs(ranks, head, share), inputs(ranks, head, share), {.lane = channel});
  }

  /// Each stage has lanes of its own, so that they overlap. Of many groups, switches work unit by
  /// unit, each in the order in which the ring of its head needs and brings them.
  void allreduce_across(int head, const Part& share, int channel) {
    const std::vector<int> ranks = heads_of(groups_, head);
    const bool is_joined = are_joined(request_, ranks);
    const bool by_unit = groups_.size() >= kFewestByUnit && !is_joined;
    const int n = by_unit ? static_cast<int>(ranks.size()) : 1;
    const std::int64_t units = share.units / n;
    const auto part = [&](int i) { return Part{share.begin + wrap(i, n) * units, units}; };
    for_each_built(ranks, [&](int group) {
      for (int step = 1; step <= n; ++step) add_up(group, head, part(group - step), channel);
    });
    std::vector<Slice> sums;
    for (const int rank : ranks) sums.push_back(output(rank, share));
    if (is_joined) {
      builder_.in_switch(sums, sums, {.lane = channels_ + channel});
    } else {
      ring_allreduce(builder_, sums, channels_ + channel);
    }
    for_each_built(ranks, [&](int group) {
      for (int step = 0; step < n; ++step) hand_out(group, head, part(group - step), channel);
    });
  }

  template <class Visit>
  void for_each_built(const std::vector<int>& heads, const Visit& visit) const {
    for (std::size_t group = 0; group < heads.size(); ++group) {
      if (builder_.builds(heads[group])) visit(static_cast<int>(group));
    }
  }

  void add_up(int group, int head, const Part& part, int channel) {
    const std::vector<int>& ranks = groups_[static_cast<std::size_t>(group)];
    builder_.in_switch(std::vector{output(ranks[static_cast<std::size_t>(head)], part)},
                       inputs(ranks, head, part), {.lane = channel});
  }
  void hand_out(int group, int head, const Part& part, int channel) {
    const std::vector<int>& ranks = groups_[static_cast<std::size_t>(group)];
    builder_.in_switch(outputs(ranks, head, part),
                       std::vector{output(ranks[static_cast<std::size_t>(head)], part)},
                       {.lane = 2 * channels_ + channel});
  }

  /// The part at every rank of a group, the head's first.
  template <class At>
  std::vector<Slice> around(const std::vector<int>& ranks, int head, const At& at) const {
    std::vector<Slice> slices;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      slices.push_back(at(ranks[(static_cast<std::size_t>(head) + i) % ranks.size()]));
    }
    return slices;
  }
  std::vector<Slice> inputs(const std::vector<int>& ranks, int head, const Part& part) const {
    return around(ranks, head, [&](int rank) { return input(rank, part); });
  }
  std::vector<Slice> outputs(const std::vector<int>& ranks, int head, const Part& part) const {
    return around(ranks, head, [&](int rank) { return output(rank, part); });
  }

  const BuildRequest& request_;
  const std::vector<std::vector<int>> groups_;
  const int heads_;
  const int channels_;
  const std::int64_t units_;  ///< of a share: one for every switch
  Builder builder_;
};

}  // namespace

const Algorithm& nvls_algorithm() {
  static const Algorithm algorithm = {
      .name = "nvls",
      .summary = "switches add up and multicast: heads read sums and store results to all",
      .constraints =
          "switches that combine; across several of them allreduce, with as many GPUs on "
          "each",
      .paper = "NVIDIA, NCCL 2.17 (NVLS); Graham et al., SHARP, 2016",
      .collectives = {Collective::allreduce, Collective::reducescatter, Collective::allgather,
                      Collective::broadcast, Collective::reduce},
      .parameters = {{"channels",
                      "blocks of each head; 0: as many as NCCL has, 24 on B200 and 16 elsewhere",
                      0,
                      0,
                      64,
                      {8, 24, 32},
                      /*weighed=*/false,
                      /*of_plan=*/false}},
      .pipelined = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported = why_not,
      .ops = ops_of,
      .folds = fold_groups,
      .build = [](const BuildRequest& request) { return InSwitches(request).build(); }};
  return algorithm;
}

}  // namespace espalier
