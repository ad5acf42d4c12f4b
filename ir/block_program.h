// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier {

/// A collective as an interpreter of thread blocks carries it out, such as MSCCL's: each block does
/// its steps one after the other. A step may receive what the block of a peer sends, read and write
/// memory of its own GPU, and send. What it does is the business of a Program; this says in which
/// portions and in which order, on which only the time depends.
///
/// The message is `chunks` equal chunks. An interpreter goes over all steps with a part of every
/// chunk, and then with the next part, until chunks are done (Protocol::loop_bytes).
struct BlockProgram {
  struct Awaited {
    int block = 0;  ///< of the same GPU
    int step = 0;   ///< an index into its steps
  };

  struct Step {
    std::string kind;  ///< in the words of the file: "rcs"
    int number = 0;    ///< in the file
    int line = 0;
    bool receives = false;
    bool sends = false;
    /// How often every byte of it is read from the GPU's memory, FIFOs included, and written there,
    /// beside what sending reads.
    int accesses = 0;
    int chunks = 0;  ///< that it moves
    std::vector<Awaited> awaits = {};
  };

  /// Sends to one peer at most, and receives from one; a FIFO leads from a block to the one of its
  /// peer that receives from it on the same channel.
  struct Block {
    int send = -1;  ///< rank, or -1
    int recv = -1;
    int channel = 0;
    int line = 0;
    std::vector<Step> steps;
  };

  std::string file;      ///< for messages
  std::string protocol;  ///< "Simple", "LL", "LL128"
  int chunks = 1;
  /// For which calls a runtime uses it.
  bool in_place = false;
  bool out_of_place = true;
  std::vector<std::vector<Block>> gpus;  ///< by rank

  int ranks() const { return static_cast<int>(gpus.size()); }
};

}  // namespace espalier
