// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/mpi/socket.h"

namespace espalier {

/// What processes are told that start without a launcher of MPI: torchrun's variables.
struct RendezvousPlace {
  int rank = 0;
  int processes = 1;
  std::string address;  ///< where rank 0 is
  int port = 0;
  std::uint64_t job = 0;  ///< equal for the processes that belong together
};

/// How many ports from the given one on are tried: its own may be taken by the rendezvous of the
/// processes' starter.
inline constexpr int kRendezvousPorts = 8;

/// A connection to each other process, by rank: all of them come to rank 0, which tells each where
/// the others are. Those of another job, or of another number of processes, are sent away, and find
/// their own rank 0 at one of the next ports. Throws, within `time`, Error{runtime} that names the
/// ranks that have not come, at rank 0, and where rank 0 was looked for, elsewhere, each with who
/// was found instead; Error{usage} where a rank was given twice in a job, or the port is not for
/// this user.
std::vector<Socket> meet_at(const RendezvousPlace& place, std::chrono::milliseconds time);

}  // namespace espalier
