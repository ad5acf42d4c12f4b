// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/verify.h"
#include "run/staging.h"
#include "run/ways.h"
#include "scenarios/study.h"

namespace espalier {

class KeptPrograms;

/// Throws Error{unsupported} naming two of the query's ranks that
/// neither links in scope nor relays connect, if there are any.
void require_connected(const Machine& machine, const Query& query);

/// The query's collective on the machine, algorithm parameters still to be filled in.
BuildRequest request_for(const Query& query, const Machine& machine);

/// Why the machine cannot carry out a program: a transfer without a
/// route, or a GPU with more peers than it can map. Nothing if it can. `ways`: of all its groups
/// that are run.
std::optional<std::string> not_routable(const Program& program, const Machine& machine,
                                        const Ways& ways);
std::optional<std::string> not_routable(const Program& program, const Machine& machine);

/// The machine with routes over all links, whatever a profile makes of them, for who asks what it
/// can carry out and not how fast. Throws what `place_ranks` throws.
Machine routed_machine(std::shared_ptr<const Topology> topology, const std::vector<int>& gpus,
                       const std::vector<int>& relays);

/// Rule R10: why the machine cannot carry out a program, problem by problem. A program of fewer
/// ranks runs on the first of its GPUs. \pre the program passed `verify`
std::vector<Diagnostic> machine_problems(const Program& program, const Machine& machine);

/// Where nothing but limits on peers keeps the machine from carrying out a program: the program as
/// it can (stage_beyond_peer_limits); else nothing.
std::optional<Staged> staged_instead(const Program& program, const Machine& machine);

/// What a program needs of a machine.
struct LinksUsed {
  /// The GPU fabric alone, where all transfers go over that; with detours, where an op names one;
  /// else the query's.
  LinkScope scope = LinkScope::all;
  bool through_gpus = false;  ///< an op names a path through a GPU
  bool over_host = false;     ///< data goes over a host's links from GPU to GPU, or to host memory
  bool in_switch = false;     ///< ops in switches
};

/// \pre the machine has routes for all transfers. `ways`: as above
LinksUsed links_used(const Program& program, const Machine& machine, const Ways& ways);

/// A program for a machine, or why there is none.
struct Built {
  std::optional<std::string> why_not;
  bool is_routing = false;  ///< why not: there is a program, but the machine can't carry it out
  std::string instead;      ///< why not: what would fit a program in a file, where that is known
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Ways> ways;  ///< of all its groups that are run; null: not looked for
  std::vector<std::string> notes;    ///< what to tell about it (BuildRequest::notes)
  /// Of a program in a file, which may be wrong; whether the machine can carry it out is not
  /// looked at then.
  std::optional<Verification> verification;
};
/// What the algorithm plans, in two thirds of the time that is left (see TimeLimit): what is made
/// of a plan needs some, too. \pre as espalier::plan
Forest plan_in_time(const AlgorithmChoice& choice, const BuildRequest& request);

/// What is built in place of all of a program.
struct PartOfProgram {
  Fold fold = {};                      ///< see Algorithm::folds
  const Rotation* rotation = nullptr;  ///< then: the machine's
  std::int64_t rounds_left_out = 0;    ///< BuildRequest::rounds_left_out
};

/// `make` builds the program of the choice, of which `kept` may know the ways; without them,
/// `espalier::build` does, and they are found.
using MakeProgram = std::function<std::shared_ptr<const Program>(const BuildRequest& request)>;
Built build_on(const Machine& machine, const AlgorithmChoice& choice, const Query& query,
               const MakeProgram& make = {}, KeptPrograms* kept = nullptr,
               const PartOfProgram& part = {});

/// So many rounds alike mostly tell how all go on.
inline constexpr std::int64_t kFirstRounds = 16;
/// However many there are: then none is left out.
inline constexpr std::int64_t kAllRounds = std::numeric_limits<std::int64_t>::max();
/// What is left out is a multiple of these: after 2, 3, 4 or 6 rounds, too, all may repeat itself.
inline constexpr std::int64_t kMultipleOfRounds = 12;

/// Whether a simulation may have only some of a program's rounds, as far as the question goes.
bool may_leave_out_rounds(const Query& query);

/// How many of a program's rounds alike (Algorithm::rounds) to leave out so that `enough` of them
/// are built (RunOptions::more_rounds); 0 where it has not many more.
std::int64_t rounds_to_leave_out(const Machine& machine, const AlgorithmChoice& choice,
                                 const Query& query, std::int64_t enough);

/// The algorithms that the machine can carry out for the query's collective, found by building
/// them; none if there are so many ranks that this would take long.
std::vector<std::string> possible_algorithms(const Machine& machine, const Query& query);

/// "possible here: ring, chain", or nothing.
std::string possible_here(const Machine& machine, const Query& query);

}  // namespace espalier
