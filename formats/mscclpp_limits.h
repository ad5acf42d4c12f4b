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

/// Where a thread block needs a nop: a barrier of its threads, which otherwise go on alone. The
/// executor's wait, signal and flush are done by its first threads, one for each channel.
class MscclppNops {
 public:
  explicit MscclppNops(const MscclppPlan& plan) : plan_(plan) {}

  /// An earlier op that the next one may overtake although it must not, and why.
  struct Missing {
    const MscclppPlan::Op* earlier = nullptr;
    const char* why = "";
  };
  /// Takes the next op of a thread block of `gpu`; the op must stay where it is.
  Missing pass(const MscclppPlan::Op& op, int gpu);
  /// A nop stands here, or another thread block begins.
  void clear() { since_.clear(); }

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
  std::vector<Touched> touched_by(const MscclppPlan::Op& op, int gpu) const;
  const MscclppPlan& plan_;
  std::vector<Earlier> since_;  ///< the last nop
};

/// Ops of one thread block of which the later one may overtake the earlier one, since threads go on
/// until a nop (a barrier of the thread block) holds them: data that the next op overwrites, reads
/// or announces. One sentence each.
std::vector<std::string> missing_mscclpp_nops(const MscclppPlan& plan);

}  // namespace espalier
