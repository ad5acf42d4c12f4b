// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/words.h"
#include "ir/builder.h"
#include "planner/forest.h"
#include "topologies/placement.h"

namespace espalier {

/// A numeric parameter of an algorithm: `knomial:k=4`.
struct AlgorithmParameter {
  std::string name;
  std::string meaning;
  std::int64_t default_value;
  std::int64_t minimum;
  std::int64_t maximum;
  std::vector<std::int64_t> tried = {};  ///< values that tuning tries besides the default
  /// If it is not given and a simulator is available, these values are also tried for the message
  /// at hand and the fastest is taken: the best value does not depend on the machine alone.
  bool weighed = false;
  bool of_plan = true;  ///< the plan depends on it, not only the program that follows the plan
  /// Names of all values that may be given, which are written instead of these, in any case and
  /// with or without "_". Empty: numbers are written.
  struct Word {
    std::string name;
    std::int64_t value = 0;
  };
  std::vector<Word> words = {};
};

/// What algorithms have found out about a machine and remember: see machine_findings.h.
struct MachineFindings;
std::shared_ptr<MachineFindings> nothing_found();
/// What of it holds under other profiles, too, if routes take the same ways.
std::shared_ptr<MachineFindings> found_whatever_profile(const MachineFindings& found);

/// What an algorithm builds a program for.
struct BuildRequest {
  Collective collective = Collective::allreduce;
  int ranks = 1;
  int root = 0;
  bool in_place = false;
  /// The message, for algorithms whose programs depend on it (Algorithm::call); nothing where it is
  /// not known.
  std::optional<std::int64_t> size_bytes = {};
  std::map<std::string, std::int64_t> parameters;  ///< complete when an algorithm sees it
  /// Host memory of each rank, by index; how many; both from the placement, or one for all.
  std::vector<int> host_of_rank;
  int hosts = 1;
  /// The machine, for algorithms that look at it; null in machine-blind tests.
  const Router* router = nullptr;
  const Placement* placement = nullptr;
  /// Requests for one machine may share it; copies of a request do.
  std::shared_ptr<MachineFindings> found = nothing_found();

  /// How ranks repeat themselves in groups, for a program of the first group's ops only (`fold`).
  /// By default all ops are built.
  Fold fold = {};
  /// Of the rounds that Algorithm::rounds counts, so many are not built; all else is as it is with
  /// them.
  std::int64_t rounds_left_out = 0;

  /// What to tell about the program built, such as "host_share=20 has no effect: ..."; copies of a
  /// request share it.
  std::shared_ptr<std::vector<std::string>> notes = std::make_shared<std::vector<std::string>>();

  /// The machine restricted to its GPU fabric,
  /// made on first use. \pre there is a machine
  const Router& fabric_router() const;
  Contract contract(std::int64_t units) const { return {collective, ranks, root, units, in_place}; }
  std::int64_t parameter(const std::string& name) const { return parameters.at(name); }
};

/// Limits that keep programs under some ten million ops: for algorithms whose number of ops grows
/// with the ranks (times their logarithm), and with their square.
inline constexpr int kMaxLinearRanks = 1 << 18;
inline constexpr int kMaxQuadraticRanks = 2048;

/// Parameters that algorithms which stand for a library have: which of its algorithms it takes, and
/// whose rules hold.
inline constexpr const char* kLibraryAlgorithm = "algo";
inline constexpr const char* kLibraryVersion = "version";
/// And what was done with the buffers, which nobody chooses for a call.
inline constexpr const char* kLibraryBuffers = "registered";

/// What a library does with a message of one size.
struct LibraryCall {
  std::map<std::string, std::int64_t> parameters;  ///< of the algorithm, none left open
  std::string protocol;                            ///< of the library's profile
  /// The profile of kernels that cost something else than the library's others; empty: as those.
  std::string runtime = {};
  int version = 0;  ///< of the library: see `library_version`
  BlockUse blocks;
};

struct AlgorithmChoice;

/// One algorithm: what it is, which collectives it supports, how it builds programs. One record per
/// file in algorithms/.
struct Algorithm {
  std::string name;
  std::string summary;      ///< one line
  std::string constraints;  ///< "any number of ranks", "needs host memory", ...
  std::string paper;        ///< its source
  std::vector<Collective> collectives;
  std::vector<AlgorithmParameter> parameters = {};
  bool pipelined = false;      ///< gains from chunking; `--chunk auto` cuts it
  bool staggered = false;      ///< every other lane runs half a piece behind (Chunking::stagger)
  bool uses_hosts = false;     ///< programs may have host memories as places
  bool uses_relays = false;    ///< programs may have the placement's relays as places
  bool needs_machine = false;  ///< builds for a machine: more than one rank needs router, placement
  bool of_ranks_alone = false;  ///< programs are the same on every machine with as many ranks
  /// Programs of n ranks have about n or n^2 ops; more ranks than this are refused, not attempted.
  int max_ranks = kMaxLinearRanks;
  /// Why this request is not possible (apart from collective and number of ranks), or nothing. May
  /// be null.
  std::optional<std::string> (*unsupported)(const BuildRequest& request) = nullptr;
  /// About how many ops its program has, folded as `BuildRequest::fold` says, where that depends on
  /// more than the number of ranks: beyond some ten million it is refused (`not_built`). May be
  /// null.
  double (*ops)(const BuildRequest& request) = nullptr;
  /// How many rounds its program goes through the message in that do the same to other units, one
  /// after the other (ir/rounds.h). `build` and `ops` respect BuildRequest::rounds_left_out. Null
  /// where there are none.
  std::int64_t (*rounds)(const BuildRequest& request) = nullptr;
  /// What its program follows from beside the contract, the choice and the fold, as text: equal
  /// texts mean equal programs, on whatever machines, and no notes. Nothing where that is not
  /// known. Null where it never is; what is `of_ranks_alone` needs none.
  std::optional<std::string> (*recipe)(const BuildRequest& request) = nullptr;
  /// How its program may fold on a machine on which groups of ranks are alike
  /// (topologies/rotation.h), the way with the most groups first. `build` then respects
  /// BuildRequest::fold. Null where no program of it folds.
  std::vector<Fold> (*folds)(const BuildRequest& request) = nullptr;
  /// Whether a program that folds does so when it is cut into chunks, too. Null: it does.
  bool (*folds_when_cut)(const AlgorithmChoice& choice) = nullptr;
  /// What `folds` is, of an algorithm that plans first.
  std::vector<Fold> (*folds_of_plan)(const BuildRequest& request, const Forest& forest) = nullptr;
  /// Groups do the same on every machine, also where they are not alike: what ranks do depends on
  /// nothing else, or was compared rank by rank.
  bool folds_anywhere = false;
  /// Builds the program; null for an algorithm that first
  /// plans trees and then writes a program that follows them.
  Program (*build)(const BuildRequest& request) = nullptr;
  Forest (*plan)(const BuildRequest& request) = nullptr;
  Program (*write)(const BuildRequest& request, const Forest& forest) = nullptr;
  /// Of an algorithm that stands for a library, which decides by the size of the message: what it
  /// decides, for a request that `unsupported` does not refuse; its programs are for that size and
  /// run under the library's profile. Null for all others.
  LibraryCall (*call)(const BuildRequest& request) = nullptr;
  /// Why it decides so, in lines of text. Null where `call` is.
  std::string (*explain)(const BuildRequest& request) = nullptr;
};

/// Every algorithm, by name. Made from the files of the folder by CMake.
const std::vector<const Algorithm*>& all_algorithms();
const Algorithm* find_algorithm(std::string_view name);
/// What papers and other libraries call some of them.
const Synonyms& algorithm_synonyms();

struct ProgramFile;

/// "knomial:k=4,x=1" into the algorithm and its parameters, "./mine.esp" into the program that the
/// file holds (see program_file.h). Throws Error{usage}: unknown name or parameter with
/// did-you-mean, value out of range, no such file; and Error{input} with everything that is wrong
/// with the text of a file.
struct AlgorithmChoice {
  std::shared_ptr<const ProgramFile> file = nullptr;  ///< null for an algorithm of the catalogue
  const Algorithm* algorithm = nullptr;               ///< of the catalogue, or the file's record
  std::map<std::string, std::int64_t> parameters;  ///< those given; the others have their defaults
  std::string label;                               ///< as given
};
AlgorithmChoice parse_algorithm(std::string_view spec);
/// The choice as `parse_algorithm` reads it: "knomial:k=4".
std::string spec_of(const AlgorithmChoice& choice);
/// A parameter of algorithms that stand for the best of the catalogue: their own plan is meant.
inline constexpr std::string_view kPlanItself = "plan";
/// Whether a choice stands for the best of the catalogue: the algorithm's own plan may lose to
/// another one, and no parameter forces any part of it.
bool is_portfolio(const AlgorithmChoice& choice);
/// The weighed parameters that a choice leaves open.
std::vector<const AlgorithmParameter*> open_parameters(const AlgorithmChoice& choice);

/// Whether it stands for a library (Algorithm::call).
bool is_library(const AlgorithmChoice& choice);
/// What the library decides, and why. \pre it is one, and `unsupported` answered nothing
LibraryCall library_call(const AlgorithmChoice& choice, BuildRequest request);
std::string explain(const AlgorithmChoice& choice, BuildRequest request);
/// The choice with nothing left open.
AlgorithmChoice decided(const AlgorithmChoice& choice, const LibraryCall& call);

/// A request for these ranks of this machine (parameters still to be filled).
BuildRequest request_for(Collective collective, int root, bool in_place, const Router& router,
                         const Placement& placement);

/// Why `choice` is not possible for `request`, or nothing: collective,
/// constraints, host memories, ranks that only relays connect.
std::optional<std::string> unsupported(const AlgorithmChoice& choice, const BuildRequest& request);
/// Why no program is built for `request`: what `unsupported` says, or else that it would have too
/// many ops (Algorithm::ops); or nothing.
std::optional<std::string> not_built(const AlgorithmChoice& choice, const BuildRequest& request);
/// About how many ops it has; nothing where its algorithm does not say.
std::optional<double> ops(const AlgorithmChoice& choice, BuildRequest request);
/// How many rounds alike it has (Algorithm::rounds). \pre `unsupported` answered nothing
std::int64_t rounds(const AlgorithmChoice& choice, BuildRequest request);
/// What its program follows from on a machine (Algorithm::recipe). \pre the same
std::optional<std::string> recipe(const AlgorithmChoice& choice, BuildRequest request);
/// Whether the program may fold when it is cut into chunks (Algorithm::folds_when_cut).
bool folds_when_cut(const AlgorithmChoice& choice);
/// How the program may fold (Algorithm::folds), for `request.fold`.
std::vector<Fold> folds(const AlgorithmChoice& choice, BuildRequest request);
/// The same of one that follows trees (Algorithm::folds_of_plan).
std::vector<Fold> folds(const AlgorithmChoice& choice, BuildRequest request, const Forest& forest);
/// \pre `unsupported` answered nothing.
Program build(const AlgorithmChoice& choice, BuildRequest request);
/// The trees that an algorithm follows. They do not depend on the order in which GPUs
/// were assigned to ranks, except for sendrecv. \pre the same, and the algorithm plans.
Forest plan(const AlgorithmChoice& choice, BuildRequest request);
/// The program that follows them. \pre the same, and `forest` was planned for this request.
Program build(const AlgorithmChoice& choice, BuildRequest request, const Forest& forest);

}  // namespace espalier
