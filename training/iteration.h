// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// A program over a bucket, or over one of its equal shares.
struct ExchangeStage {
  std::shared_ptr<const Program> program;
  int share = 0;
  int shares = 1;
  double call_s = 0;  ///< of the stage at each rank, beside IterationPlan::call_s
};

/// How a bucket is exchanged: programs for the same number of ranks, run one after the other at
/// every rank. One in-place allreduce, an in-place reduce and the broadcast of its result, or an
/// in-place reducescatter and the broadcasts of all its blocks.
struct Exchange {
  std::size_t ready_after = 0;  ///< the gradient, by number, that completes the bucket
  std::int64_t units = 0;       ///< of the message
  std::vector<ExchangeStage> stages;
};

/// One iteration of data-parallel training, as every rank runs it.
struct IterationPlan {
  int ranks = 1;
  double forward_s = 0;
  std::vector<std::string> gradients;  ///< names of tensors, in the order of the backward pass
  std::vector<double> backward_s;      ///< by gradient
  std::vector<Exchange> exchanges;     ///< in the order of the message and of their start
  double call_s = 0;                   ///< of a stage at each rank, before anything moves
  bool overlap = true;                 ///< exchanges start during the backward pass, or after it
};

/// The iteration as a program, and what its ops are part of.
struct Iteration {
  Program program;
  std::vector<std::string> parts;       ///< "forward", "backward fc.weight", "bucket 0", ...
  std::vector<std::uint32_t> part_of;   ///< by op: its part
  std::vector<std::size_t> first_part;  ///< by exchange: the number of its part
};

/// Lanes of an iteration's program: that of the forward and backward pass, that on which exchanges
/// begin (`wait` ops that last as long as a call costs), and the first of the exchanges' own.
inline constexpr int kComputeLane = 0;
inline constexpr int kStartLane = 1;
inline constexpr int kFirstExchangeLane = 2;

/// Writes the iteration as one in-place allreduce of the whole gradient, whose message is that of
/// the exchanges one after the other, so that `verify` proves the result and finds races.
///
/// Every rank computes the forward pass, then each gradient. An exchange begins at a rank when the
/// rank has made its last gradient and when all ops of the exchange before that touch the rank's
/// memory are done: exchanges of a rank run one after the other, as collectives on one NCCL stream
/// do, and so do the stages of an exchange. No op touches the memory of a rank before the exchange
/// has begun there.
///
/// A program's slices keep their share of its units, rounded to whole units of the message; what is
/// left without any becomes an op of no duration, so that order is kept. Throws Error{unsupported}
/// when lanes or scratch exceed what a program may have. \pre every stage is in place and passed
/// `verify`, and the slices of an op stand at one place of the message, which they do not go
/// beyond.
Iteration build_iteration(const IterationPlan& plan);

}  // namespace espalier
