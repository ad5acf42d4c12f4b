// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "planner/bounds.h"

namespace espalier {

/// What start-up and latency cost any schedule, however short its message. With a bandwidth bound
/// it limits the time of a message of every size. docs/bounds.md has the argument.
struct TimeBound {
  double call_s = 0;  ///< what calling a collective costs before its first op
  /// Bytes on links for every byte that the bandwidth bound counts: of another protocol.
  double wire = 1;
  std::string protocol;  ///< under which it holds; empty where the profile has none
  /// In which no link carries anything: the least start-up of an op and, where every latency comes
  /// after the bytes, the least latency. (A get that waits has it before its bytes.)
  double ends_s = 0;
  double way_s = 0;  ///< from the first op until data can be wherever it has to be
  std::string
      certificate;  ///< the way that takes so long, with its arithmetic; empty when none does

  /// No schedule takes less for a message of `bytes`.
  double least_s(double bytes, const Bound& bandwidth) const;
};

struct TimeBoundOptions {
  /// An op may name a path through a GPU, which then stores nothing and costs no start-up of its
  /// own. Where GPUs forward traffic, all may.
  bool through_gpus = false;
};

/// Under the router's profile and link scope; ops may name any path that the links allow. Above 128
/// ranks, relays and host memories together, `way_s` is that of a single op from the first rank.
TimeBound time_bound(Collective collective, int root, const Router& router,
                     const Placement& placement, const TimeBoundOptions& options = {});

}  // namespace espalier
