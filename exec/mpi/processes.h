// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/mpi/board.h"
#include "exec/mpi/transport.h"
#include "exec/mpi/watchdog.h"

namespace espalier {

/// The processes that run programs together, a rank each, as one of them sees them.
struct Processes {
  Transport& transport;
  const Board& board;
  Watchdog* watchdog = nullptr;     ///< null where nobody watches
  std::uint64_t build = 0;          ///< hash_of_build()
  std::vector<std::string> places;  ///< by rank: "node7, socket 1"
  int sharing = 1;                  ///< how many of them are on this computer, this one included
  bool is_crowded = true;           ///< these are more than the processors that they may use
};

/// Whether processes of one computer have to share the processors of one of them: each may use
/// those of its list, and takes an equal part of each. Nobody is
/// crowded where none are known.
bool is_crowded(const std::vector<std::vector<int>>& allowed, std::size_t mine);

}  // namespace espalier
