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

/// Of the processors that this process may use, ascending, as Linux describes them below `folder`;
/// empty where it does not.
std::vector<int> allowed_sockets(const std::string& folder = "/sys/devices/system/cpu");

/// "socket 1" or "sockets 0, 1"; empty for none.
std::string describe_sockets(const std::vector<int>& sockets);

}  // namespace espalier
