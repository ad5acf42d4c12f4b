// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "exec/mpi/rendezvous.h"

namespace espalier {

/// Reads a variable of the environment; null where it is not set.
using Environment = std::function<const char*(const char*)>;

/// What the environment says of who has started this process.
struct Launch {
  bool by_mpi = false;            ///< a launcher of MPI, or a manager of jobs in its place
  int rank = 0;                   ///< that this one was given; 0 also where it is not known
  std::optional<int> local_rank;  ///< among those on this host, as far as it says so
  std::optional<int> processes;   ///< that it says it has started
  /// torchrun, or whoever sets RANK and WORLD_SIZE: processes that MPI knows nothing of. One of
  /// several launchers, where one has started another, counts.
  bool by_torch = false;
  /// Where they meet; nothing where the variables do not say, or say what cannot be.
  std::optional<RendezvousPlace> place;
};

Launch read_launch(const Environment& environment);

/// Why a process that was started like this can't find the others, with what to do; nothing if it
/// can.
struct LaunchProblem {
  std::string message;
  std::string help;
};
std::optional<LaunchProblem> problem_of(const Launch& launch);

/// As Error{unsupported}.
[[noreturn]] void throw_problem(const LaunchProblem& problem);

/// The same once MPI says how many processes there are. That a launcher of another MPI has started
/// them shows as soon as it says how many, or in any rank but the first.
std::optional<LaunchProblem> problem_of(const Launch& launch, int processes,
                                        const std::string& library);

/// What the processors that a process may use belong to.
struct Sockets {
  std::vector<int> numbers;     ///< in order; empty: not known
  bool are_numa_nodes = false;  ///< in place of packages

  /// "socket 1", "NUMA nodes 0, 1"; empty for none.
  std::string text() const;
  /// The only one, or -1.
  int only() const { return numbers.size() == 1 ? numbers.front() : -1; }
};

/// Of this process, or of a thread: Linux's packages; where every processor is a package of its
/// own, as some virtual machines present theirs, its NUMA nodes.
Sockets allowed_sockets(const std::string& folder = "/sys/devices/system");

}  // namespace espalier
