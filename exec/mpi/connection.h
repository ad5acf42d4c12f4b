// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "exec/mpi/launcher.h"
#include "exec/mpi/transport.h"

namespace espalier {

/// How the processes of a run have come together: by MPI, or over sockets.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual Transport& transport() = 0;
  /// The processes of this host, in ascending order, this one among them.
  virtual const std::vector<int>& here() const = 0;
  /// Memory that these share, aligned for anything; it goes away with them. What is in it is not
  /// known. Called once by all processes.
  virtual std::byte* share(std::size_t bytes) = 0;
  /// All processes come here, at the end, when nothing is under way any more.
  virtual void close() = 0;
};

/// The processes that a launcher of MPI has started. Throws Error{unsupported} where this espalier
/// was built without MPI, or with another one than the launcher's.
std::unique_ptr<Connection> connect_by_mpi(const Launch& launch);

/// The processes that meet where torchrun's variables say, within that time. Throws what `meet_at`
/// throws.
std::unique_ptr<Connection> connect_by_sockets(const RendezvousPlace& place, double start_time_s);

}  // namespace espalier
