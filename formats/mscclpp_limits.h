// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "formats/mscclpp_plan.h"

namespace espalier {

/// What the executor of MSCCL++ takes at most (src/core/include/execution_common.hpp, version 0.9).
inline constexpr int kMscclppOps = 64;        ///< of a thread block, those in pipelines included
inline constexpr int kMscclppChannels = 16;   ///< of a thread block and a type; remote buffers, too
inline constexpr int kMscclppOpChannels = 8;  ///< of an op
inline constexpr int kMscclppOpBuffers = 10;  ///< sources of an op; destinations, too
inline constexpr int kMscclppOpSemaphores = 16;
inline constexpr int kMscclppBarriers = 16;
inline constexpr int kMscclppPipelineOps = 16;

/// Every limit that a plan exceeds, as problems of rule "limit". Private to the room.
std::vector<Diagnostic> check_mscclpp_limits(const MscclppPlan& plan);

/// Where a thread block needs a nop, a barrier of its threads, which otherwise go on alone, or a
/// flush of a port channel, whose puts go on behind its back. The executor's wait, signal and flush
/// are done by its first threads, one for each channel.
class MscclppNops {
 public:
  explicit MscclppNops(const MscclppPlan& plan) : plan_(plan) {}

  /// An earlier op that the next one may overtake although it must not, and why.
  struct Missing {
    const MscclppPlan::Op* earlier = nullptr;
    const char* why = "";
    bool is_flush = false;  ///< what is missing: a flush, or a nop
  };
  /// What is missing in front of an op of a thread block of `gpu`; an `earlier` of null: nothing.
  Missing before(const MscclppPlan::Op& op, int gpu) const;
  /// The op comes next. It must stay where it is until the thread block ends.
  void take(const MscclppPlan::Op& op, int gpu);
  void begin_block() {
    since_.clear();
    in_flight_.clear();
  }

 private:
  struct Touched {
    int rank;
    MscclppPlan::Buffer buffer;
    std::int64_t begin;
    std::int64_t end;
    bool writes;
  };
  struct Earlier {
    const MscclppPlan::Op* op;
    std::vector<Touched> touched;
  };
  static const char* conflict(const Earlier& earlier, const Earlier& now);
  /// A put in flight that the op does not wait for although it must.
  const MscclppPlan::Op* unflushed(const Earlier& now, int gpu) const;
  void keep_in_flight(const Earlier& now);
  std::vector<Touched> touched_by(const MscclppPlan::Op& op, int gpu) const;
  const MscclppPlan& plan_;
  std::vector<Earlier> since_;      ///< the last nop
  std::vector<Earlier> in_flight_;  ///< puts through port channels, not flushed yet
};

/// Ops of one thread block of which the later one may overtake the earlier one, since a nop or
/// flush is missing between them: data that the later one overwrites, reads or announces. One
/// sentence each.
std::vector<std::string> missing_mscclpp_nops(const MscclppPlan& plan);

}  // namespace espalier
