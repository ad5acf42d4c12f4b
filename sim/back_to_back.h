// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <memory>
#include <vector>

#include "ir/program.h"
#include "sim/block_map.h"
#include "sim/op_history.h"
#include "sim/op_shapes.h"

namespace espalier {

/// From one call to the next where calls follow each other without waiting, in seconds.
///
/// Calls of a GPU run one after the other; those of different GPUs need not begin together. Let
/// every GPU g be busy with a call from a(g), when its first op starts, to b(g), when its last one
/// has ended and the last result has come to it, and let a call cost `call_overhead_s` on each GPU
/// before. What comes to its scratch and is fetched by others keeps it from nothing: a relay's
/// blocks have no hand in that. If every call is the one before, shifted by a period P, then all
/// that ops of one call wait for is as far away as in a call by itself, and a GPU is done with a
/// call before its next one begins if
///
///     P >= call_overhead_s + b(g) - a(g)    for all g.
///
/// Lanes that neither depend on each other nor share a block, such as the channels of a ring, may
/// be shifted against each other: that holds for each group of lanes by itself.
///
/// A link that a call keeps busy for t needs P >= t. The least P that meets both is returned. It is
/// never more than the time of a call by itself. For a ring, whose GPUs are busy from beginning to
/// end, it is that time; in a chain, it is the time without the way to the last GPU.
///
/// Limits: transfers of consecutive calls that meet on a link may delay each other although the
/// link has time for both; buffers are taken to have room for a call that runs ahead; and ops that
/// waited for others within a call may wait less in the long run, which would make P shorter.
/// Host memories launch nothing: only links count there.
///
/// Is told of ops one by one, in any order.
class CallSpans {
 public:
  /// Refers to the program and the blocks. `groups`: 1, or those of a folded program, where the ops
  /// of all of them are told.
  CallSpans(const Program& program, const BlockMap& blocks, int groups = 1);
  ~CallSpans();

  /// Of an op of the program, or what it is in a group: OpRecord and OpEnd.
  void note(OpId id, int group, double start_s, double end_s, double seen_s);
  /// `busiest_s`: the longest that a call keeps anything busy. \pre all ops were told
  double period_s(double busiest_s, double call_overhead_s) const;

 private:
  struct Spans;
  std::unique_ptr<Spans> spans_;
};

/// The same of a history that has the ends of all ops.
double back_to_back_s(const Program& program, const BlockMap& blocks, const OpHistory& history,
                      double busiest_s, double call_overhead_s);

/// The same where one op has the dates of all that are alike, of whatever simulation: found once.
class AlikeSpans {
 public:
  /// Refers to nothing. `shapes`: of the program's ops. `number`: by op, which one of a history
  /// that is.
  AlikeSpans(const Program& program, const BlockMap& blocks, const ShapeNumbers& shapes,
             const std::vector<OpId>& number);

  double period_s(const OpHistory& history, double busiest_s, double call_overhead_s) const;

 private:
  /// Of a GPU, by number in the history, each once.
  struct OpsOfSpan {
    std::vector<OpId> own;
    std::vector<OpId> coming;  ///< whose results come to it
    auto operator<=>(const OpsOfSpan&) const = default;
  };
  std::vector<OpsOfSpan> spans_;  ///< those of several GPUs that are the same once
};

}  // namespace espalier
