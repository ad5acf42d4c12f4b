// SPDX-License-Identifier: Apache-2.0
// Copies on two paths at once: "Interconnect-aware multi-path GPU communication with UCX", section
// "The multi-path communication". Part of every message goes straight to the other GPU, the rest by
// way of the host memory that both have, in pieces, so that it is copied in and out at once.
// Between GPUs of different sockets all of it goes straight.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

constexpr int kLocalLane = 0;
constexpr int kFirstLane = 1;

/// What is best depends on the size, and is cheap to find out.
AlgorithmParameter weighed_share() {
  AlgorithmParameter share = host_share_parameter();
  share.default_value = 25;
  share.tried = {0, 5, 10, 15, 20, 30, 35, 40, 45, 50};
  share.weighed = true;
  return share;
}

Program build_multipath(const BuildRequest& request) {
  const auto window = static_cast<int>(request.parameter("window"));
  const auto at_once = static_cast<int>(request.parameter("at_once"));
  const int n = request.ranks;
  Builder builder("multipath", request.contract(n == 1 ? 1 : window));
  const auto send = [&](const Slice& message, int to, int peer_index) {
    for (int i = 0; i < window; ++i) {
      Slice one = message;
      one.begin += i;
      one.length = 1;
      const int lane = kFirstLane + (peer_index * at_once + i % at_once) % kMaxLanes;
      builder.copy(builder.output(to, i, 1), one, {.lane = lane});
    }
  };
  if (request.collective == Collective::broadcast || n == 1) {
    const Slice message = builder.input(request.root, 0, builder.contract().units);
    push_to_others(n, request.root, n, 0, [&](int peer, int index) { send(message, peer, index); });
    keep_own(builder, request.root, 0, message.length, kLocalLane);
  } else {
    std::vector<Slice> messages;
    for (int rank = 0; rank < n; ++rank) {
      messages.push_back(saved_input(builder, rank, kLocalLane));
    }
    for (int rank = 0; rank < n; ++rank) {
      send(messages[static_cast<std::size_t>(rank)], wrap(rank + 1, n), 0);
    }
  }
  return striped(builder.finish(), request, request.parameter("streams"));
}

}  // namespace

const Algorithm& multipath_algorithm() {
  static const Algorithm algorithm = {
      .name = "multipath",
      .summary = "directly to the other GPU and, within a socket, also through host memory",
      .constraints = "any number of ranks",
      .paper = "Interconnect-aware multi-path GPU communication with UCX",
      .collectives = {Collective::broadcast, Collective::sendrecv},
      .parameters = {weighed_share(),
                     {.name = "streams",
                      .meaning = "number of pieces of the part that goes through host memory",
                      .default_value = 8,
                      .minimum = 1,
                      .maximum = 16,
                      .tried = {1, 2, 4},
                      .weighed = true},
                     {"window", "number of back-to-back messages that make up the size", 1, 1, 64},
                     at_once_parameter()},
      .uses_hosts = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported =
          [](const BuildRequest& request) {
            return cannot_stripe(request.parameter("window"),
                                 striping_of(request, request.parameter("streams")));
          },
      .build = build_multipath};
  return algorithm;
}

}  // namespace espalier
