// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/msccl_algo.h"

// How thread blocks carry out an MSCCL algorithm: step by step, where a step that receives takes
// the next message out of the FIFO of its connection, and one that sends waits until there is a
// slot. Private to the room.

namespace espalier {

/// The steps of all GPUs, numbered in order of the file, and the messages between them.
struct MscclSteps {
  struct Id {
    int gpu = 0;
    int block = 0;
    int step = 0;
  };

  explicit MscclSteps(const MscclAlgo& algo);

  const MscclAlgo& algo;
  std::vector<Id> ids;
  std::vector<std::vector<int>> first;  ///< by GPU and thread block: its first step
  std::vector<int> receiver;            ///< by step that sends: the step that gets it, or -1
  std::vector<int> sender;              ///< by step that receives: the step it comes from, or -1
  std::vector<Diagnostic> problems;     ///< messages that nobody sends or receives

  int count() const { return static_cast<int>(ids.size()); }
  const MscclAlgo::Step& step(int id) const;
  /// The step whose end lets it go on, or -1: the one that it waits for, or, where that does not
  /// say when it is done, the next one of that thread block that does. kUnsaid: there is none.
  int awaited(int id) const;
  static constexpr int kUnsaid = -2;
  std::string name(int id) const;

 private:
  void pair_messages();
};

/// What a run of the steps alone, without data, shows.
struct MscclOrder {
  std::vector<int> order;  ///< steps as they come to their ends
  std::vector<int> stuck;  ///< the first step of every thread block that can't go on
};

/// Carries out all steps. `slots`: of every FIFO. A message of more than `piece_chunks` chunks goes
/// in pieces of so many, which take a slot each, as the runtime sends it where a slot has room for
/// no more.
MscclOrder run_steps(const MscclSteps& steps, int slots, int piece_chunks);

/// What FIFOs an algorithm needs.
struct MscclFifos {
  int least_slots = 1;  ///< with which it runs where every message fits into one
  int slots = 2;        ///< that the runtime has for its protocol
  /// Messages larger than this hang with the runtime's slots; nothing: none do.
  std::optional<std::int64_t> hangs_above_bytes;
};

/// \pre with enough slots it runs to its end.
MscclFifos fifos_of(const MscclSteps& steps);

}  // namespace espalier
