// SPDX-License-Identifier: Apache-2.0
// A server adds up everybody's message and hands the sum to everybody: what "Baidu ring allreduce"
// (2017) starts from, and Li et al., "Scaling distributed machine learning with the parameter
// server", OSDI 2014, in the sharded form.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

constexpr int kReduceLane = 0;
constexpr int kFirstPushLane = 1;

/// A server in host memory. It reads and serves the ranks beginning with another one than the other
/// servers do.
void serve_on_host(Builder& builder, PlaceId host, int shard, int shards, int at_once) {
  const int n = builder.ranks();
  const auto first = static_cast<int>(std::int64_t{shard} * n / shards);
  const Slice sum = builder.tmp(host, shard, 1);
  reduce_all(builder, sum, first, shard, at_once, kReduceLane);
  for (int i = 0; i < n; ++i) {
    builder.copy(builder.output(wrap(first + i, n), shard, 1), sum,
                 {.lane = kFirstPushLane + i % at_once});
  }
}

Program build_parameter_server(const BuildRequest& request) {
  const bool on_hosts = request.parameter("host") == 1;
  const bool sharded = request.parameter("sharded") == 1;
  const auto at_once = static_cast<int>(request.parameter("at_once"));
  const int shards = !sharded ? 1 : on_hosts ? request.hosts : request.ranks;
  Builder builder("parameter_server", request.contract(shards));
  for (int shard = 0; shard < shards; ++shard) {
    if (on_hosts) {
      const PlaceId host = builder.add_host();
      serve_on_host(builder, host, shard, shards, at_once);
    } else {
      reduce_and_hand_out(builder, shard, shard, kReduceLane, at_once);
    }
  }
  return builder.finish();
}

}  // namespace

const Algorithm& parameter_server_algorithm() {
  static const Algorithm algorithm = {
      .name = "parameter_server",
      .summary = "servers add up all messages (or a shard of each) and send the sum to all ranks",
      .constraints = "any number of ranks; host=1 needs host memory",
      .paper = "Li et al., OSDI 2014; Baidu ring allreduce, 2017 (as its starting point)",
      .collectives = {Collective::allreduce},
      .parameters =
          {{"host", "1: servers in host memory; 0: on GPUs, beginning with rank 0", 0, 0, 1, {1}},
           {"sharded",
            "1: every rank (or host memory) serves a part; 0: a single server",
            0,
            0,
            1,
            {1}},
           at_once_parameter()},
      .pipelined = true,
      .uses_hosts = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported =
          [](const BuildRequest& request) {
            return request.parameter("host") == 1 ? missing_host(request) : std::nullopt;
          },
      .build = build_parameter_server};
  return algorithm;
}

}  // namespace espalier
