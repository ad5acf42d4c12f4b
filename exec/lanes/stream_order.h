// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "exec/lanes/lowering.h"
#include "ir/program.h"

namespace espalier {

/// An op in a stream: what a device carries out one after the other.
struct IssuedOp {
  OpId op = 0;
  std::uint32_t stream = 0;
  std::uint32_t wait_begin = 0;  ///< StreamOrder::waits [wait_begin, wait_end)
  std::uint32_t wait_end = 0;
};

/// The ops of a program as a sequence in which they can be given to streams. Ops of a stream run in
/// this order; an op also waits for the ops of other streams named in its waits, all earlier in the
/// sequence. So whatever the streams have in them can run: no sharing of streams can block them.
struct StreamOrder {
  std::vector<int> stream_devices;   ///< by stream; at least one stream
  std::vector<IssuedOp> ops;         ///< every op of the program once
  std::vector<std::uint32_t> waits;  ///< indices into `ops`
  /// Indices into `ops`: when these are done and the last op of stream 0 is, everything is.
  std::vector<std::uint32_t> joins;

  std::span<const std::uint32_t> waits_of(const IssuedOp& op) const {
    return {waits.data() + op.wait_begin, op.wait_end - op.wait_begin};
  }
};

/// Gives every lane a stream of the device that carries it out, several lanes one stream where a
/// device would have more than `max_streams`, and takes ops from lanes in turn. Only waits that
/// no other wait, nor the order of a stream, implies are kept. `device_of` names the device by op:
/// the same one for all ops of a lane, except for lanes of host memories.
/// Throws Error{runtime} that names the blocked lanes when the program can't finish. \pre
/// `max_streams` is at least 1.
StreamOrder order_streams(const Program& program, const LanePrograms& lowered,
                          const std::vector<int>& device_of, int max_streams);

}  // namespace espalier
