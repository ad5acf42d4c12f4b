// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "core/hash_numbers.h"
#include "ir/program.h"
#include "ir/rounds.h"
#include "sim/sent_data.h"
#include "topologies/profile.h"

namespace espalier {

/// FIFOs of a runtime such as NCCL: what a block sends to a peer lies in steps of the peer's memory
/// until it is taken out there; then the steps can be used again. When it begins, an op takes as
/// many steps as its bytes need, but no more than half of them, as runtimes pass on longer ops in
/// pieces of so much. It gives them back when the first op that reads any of it has ended, or at
/// its own end if none ever does: the receiver then copies it out at once. Ops that need more than
/// is free wait. What an op fetches takes no steps, nor do further parts of a send.
class FifoCredits {
 public:
  /// `rounds`: of the program. Refers to it and to who reads what is sent. `bytes_per_unit`: of the
  /// message. \pre the profile has FIFOs
  FifoCredits(const Program& program, const Rounds& rounds, const SentData& sent,
              const Profile& profile, double bytes_per_unit);

  /// Takes the steps that an op needs of the FIFO of a block of its place; `width` blocks carry it
  /// out. False: it has to wait, and is among those that `end` returns later.
  bool take(OpId op, std::uint16_t block, std::size_t width);
  /// An op has ended. The ops that waited and have their steps now.
  const std::vector<OpId>& end(OpId op);
  /// Whether an op waits for steps.
  bool lacks_steps(OpId op) const;

 private:
  struct Fifo {
    int used = 0;
    std::vector<OpId> waiting;  ///< in order
  };
  bool may_begin(OpId op);
  void give_back(OpId op);

  const Program& program_;
  const Rounds rounds_;
  const SentData& sent_;
  const int steps_;
  const double units_per_step_;
  std::vector<int> taken_;      ///< by op; negative: wanted, in vain so far
  HashNumbers fifo_numbers_;    ///< by place, block and peer
  std::deque<Fifo> fifos_;      ///< by number; they stay where they are
  std::vector<Fifo*> fifo_of_;  ///< by op that has steps or waits for them
  std::vector<OpId> freed_;
};

}  // namespace espalier
