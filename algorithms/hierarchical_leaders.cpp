// SPDX-License-Identifier: Apache-2.0
// The three-stage allreduce of "Interconnect-aware multi-path GPU communication with UCX", sections
// "The hierarchical intra-node" and "multi-node GPU-based MPI allreduce": the GPUs of a socket
// reduce to their leader, the leaders of a node reduce-scatter, those of several nodes allreduce
// what they then have in a ring, the leaders of a node allgather, and every leader hands the result
// to its socket. On one node the paper's two leaders exchange whole messages, which are as many
// bytes as a reduce-scatter and an allgather of two. Chunks overlap the stages; copies within a
// socket may also pass through host memory. Between nodes the paper calls Open MPI's allreduce,
// which takes place on CPUs: host_ring=1.
#include <algorithm>
#include <map>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// The ranks of a socket, its leader first.
using Socket = std::vector<int>;

/// Who works with whom. The message has a part for every leader of the machine with most of them,
/// and a part has a unit for every machine.
struct Layout {
  std::vector<std::vector<Socket>> machines;  ///< their sockets, in the order of first ranks

  int parts() const {
    const auto maximum = std::ranges::max(machines, {}, &std::vector<Socket>::size).size();
    return static_cast<int>(maximum);
  }
  std::int64_t part_units() const { return static_cast<std::int64_t>(machines.size()); }
  std::int64_t units() const { return parts() * part_units(); }
};

/// Ranks without host memory are a socket of their machine. Without a placement there is one
/// machine.
Layout find_layout(const BuildRequest& request) {
  Layout layout;
  for (const std::vector<int>& ranks : ranks_by_machine(request)) {
    std::vector<Socket>& sockets = layout.machines.emplace_back();
    std::map<int, std::size_t> index_of_socket;
    for (const int rank : ranks) {
      const auto [socket, is_first] =
          index_of_socket.try_emplace(host_of(request, rank), sockets.size());
      if (is_first) sockets.emplace_back();
      sockets[socket->second].push_back(rank);
    }
  }
  return layout;
}

/// All rings together have twice as many ops.
constexpr std::int64_t kMaxRingUnits = std::int64_t{kMaxQuadraticRanks} * kMaxQuadraticRanks;

std::optional<std::string> why_not(const BuildRequest& request) {
  const Layout layout = find_layout(request);
  if (layout.units() * layout.part_units() > kMaxRingUnits) {
    return "its program would be too large: there are too many machines, one of which has too many "
           "sockets";
  }
  if (request.parameter("host_ring") == 1) {
    if (auto reason = missing_host(request)) return reason;
  }
  return cannot_stripe(layout.units(), striping_of(request));
}

/// Writes the stages. Each part is an op per stage on a lane of its own, so that all parts advance
/// together.
class Stages {
 public:
  explicit Stages(const BuildRequest& request)
      : layout_(find_layout(request)),
        parts_(layout_.parts()),
        at_once_(static_cast<int>(request.parameter("at_once"))),
        builder_("hierarchical_leaders", request.contract(layout_.units())) {
    if (request.parameter("host_ring") == 0 || layout_.machines.size() == 1) return;
    for (int host = 0; host < request.hosts; ++host) hosts_.push_back(builder_.add_host());
    for (int rank = 0; rank < request.ranks; ++rank) {
      host_of_rank_.push_back(hosts_[static_cast<std::size_t>(host_of(request, rank))]);
    }
  }

  Program build() {
    for (int part = 0; part < parts_; ++part) {
      for (const auto& sockets : layout_.machines) reduce_sockets(sockets, part);
      for (const auto& sockets : layout_.machines) reduce_leaders(sockets, part);
    }
    for (int part = 0; part < parts_; ++part) reduce_machines(part);
    for (int part = 0; part < parts_; ++part) {
      for (const auto& sockets : layout_.machines) hand_out(sockets, part);
    }
    return builder_.finish();
  }

 private:
  std::int64_t first_unit(int part) const { return part * layout_.part_units(); }
  Slice result(int rank, int part) const {
    return builder_.output(rank, first_unit(part), layout_.part_units());
  }

  /// Who has the machine's sum of a part.
  static int owner(const std::vector<Socket>& sockets, int part) {
    return sockets[static_cast<std::size_t>(part) % sockets.size()][0];
  }

  int lane(int stage, int part) const { return (stage * parts_ + part) % kMaxLanes; }

  void reduce_sockets(const std::vector<Socket>& sockets, int part) {
    for (const Socket& socket : sockets) {
      std::vector<Slice> inputs;
      for (const int rank : socket) {
        inputs.push_back(builder_.input(rank, first_unit(part), layout_.part_units()));
      }
      reduce_slices(builder_, result(socket[0], part), inputs, at_once_, lane(0, part));
    }
  }

  void reduce_leaders(const std::vector<Socket>& sockets, int part) {
    const Slice sum = result(owner(sockets, part), part);
    std::vector<Slice> sums = {sum};
    for (const Socket& socket : sockets) {
      if (socket[0] != sum.place) sums.push_back(result(socket[0], part));
    }
    reduce_slices(builder_, sum, sums, at_once_, lane(1, part));
  }

  void reduce_machines(int part) {
    std::vector<Slice> sums;
    for (const auto& sockets : layout_.machines) sums.push_back(result(owner(sockets, part), part));
    if (hosts_.empty()) {
      ring_allreduce(builder_, sums, lane(2, part));
      return;
    }
    std::vector<Slice> staged;
    for (const Slice& sum : sums) {
      const PlaceId host = host_of_rank_[static_cast<std::size_t>(sum.place)];
      staged.push_back(builder_.tmp(host, sum.begin, sum.length));
      builder_.copy(staged.back(), sum, {.lane = lane(2, part)});
    }
    ring_allreduce(builder_, staged, lane(0, part));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      builder_.copy(sums[i], staged[i], {.lane = lane(1, part)});
    }
  }

  /// To the other leaders, then to the sockets.
  void hand_out(const std::vector<Socket>& sockets, int part) {
    std::vector<int> leaders = {owner(sockets, part)};
    for (const Socket& socket : sockets) {
      if (socket[0] != leaders[0]) leaders.push_back(socket[0]);
    }
    push(leaders, part, 3);
    for (const Socket& socket : sockets) push(socket, part, 3 + at_once_);
  }

  /// From the first of `ranks` to the others, on `at_once` lanes in turn.
  void push(const std::vector<int>& ranks, int part, int first_stage) {
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      const int turn = static_cast<int>(i - 1) % at_once_;
      builder_.copy(result(ranks[i], part), result(ranks[0], part),
                    {.lane = lane(first_stage + turn, part)});
    }
  }

  const Layout layout_;
  const int parts_;
  const int at_once_;
  Builder builder_;
  std::vector<PlaceId> hosts_;         ///< none where nodes allreduce on GPUs
  std::vector<PlaceId> host_of_rank_;  ///< the same
};

}  // namespace

const Algorithm& hierarchical_leaders_algorithm() {
  static const Algorithm algorithm = {
      .name = "hierarchical_leaders",
      .summary =
          "sockets reduce to leaders, leaders allreduce among themselves and broadcast within "
          "sockets",
      .constraints = "any number of ranks",
      .paper = "Interconnect-aware multi-path GPU communication with UCX",
      .collectives = {Collective::allreduce},
      .parameters = {host_share_parameter(),
                     {"host_ring", "1: nodes allreduce in host memory on CPUs; 0: on GPUs", 0, 0,
                      1},
                     {"at_once", "transfers that a leader has in flight at once", 8, 1, 1024, {1}}},
      .pipelined = true,
      .staggered = true,
      .uses_hosts = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported = why_not,
      .build = [](const BuildRequest& request) {
        return striped(Stages(request).build(), request);
      }};
  return algorithm;
}

}  // namespace espalier
