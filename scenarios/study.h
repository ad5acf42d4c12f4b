// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "core/time_limit.h"
#include "planner/bounds.h"
#include "planner/time_bound.h"
#include "run/backend.h"
#include "run/launch.h"
#include "scenarios/asked_by.h"
#include "scenarios/baseline.h"
#include "scenarios/chunk_search.h"
#include "scenarios/tuning_table.h"
#include "topologies/placement.h"

namespace espalier {

/// One question: how fast is this algorithm for this message on these GPUs?
struct Query {
  std::string topology;     ///< as `load_topology` takes it; empty: no machine in particular
  int ranks = 0;            ///< number of ranks, if there is no machine
  std::vector<int> gpus;    ///< which GPUs of the machine, by number; empty: all
  std::vector<int> relays;  ///< GPUs beside these that may relay, by number
  /// "kernel:ll", or "kernel" for the best of its protocols.
  std::string profile = "kernel";
  LinkScope links = LinkScope::all;
  Collective collective = Collective::allreduce;
  int root = 0;
  bool in_place = false;
  std::string algorithm;  ///< as `parse_algorithm` takes it, or a chooser: see chooser.h
  std::int64_t size_bytes = 0;
  std::optional<std::int64_t> chunk_bytes;  ///< nothing: automatic; 0: do not cut
  bool judge = true;                        ///< compute the machine's bound
  /// Programs with more lanes than the profile has blocks are put onto these, and not refused.
  bool merge = true;
  /// Of many groups of ranks that behave alike, one may be simulated in place of all. False for who
  /// needs the program with all its ops.
  bool may_fold = true;
  /// Of rounds that repeat themselves some may be simulated in place of all (RunOptions::
  /// more_rounds). True for who needs the program with all its ops.
  bool all_rounds = false;
  /// For who asks for times alone: programs of few ranks may be folded as well (see
  /// kMinFoldedRanks), and of lanes that behave alike one may be simulated in place of all. There
  /// are no links then and no critical path; links, where a timeline is kept.
  bool only_times = false;
  LaunchMode launch = LaunchMode::per_gpu;  ///< how a benchmark would make calls of it
  int library_version = 0;                  ///< see `library_version`; 0: the newest
  int timed_calls = kTimedCalls;            ///< of a benchmark, between two waits
  bool against_nccl = false;  ///< simulations: also how long the library's own collective takes
  RunOptions run;             ///< size_bytes is filled in from above
};

/// The answer, or why there is none.
struct Outcome {
  Query query;
  AskedBy asked_by;
  std::string backend;
  std::optional<std::string> skipped;  ///< why the algorithm does not apply here
  std::string instead;                 ///< if skipped because of routes or peers: what is possible
  std::string chosen;                  ///< the algorithm, where the query left some of it open
  std::string profile;                 ///< under which it ran: the query's, or a library's own
  std::string protocol;                ///< of the profile; empty where that has none
  int ranks = 0;
  std::int64_t chunk_bytes = 0;  ///< used; 0: not cut
  std::string chunk_note;        ///< why the chunk size may not be the best, or was raised, if so
  std::string program_note;      ///< what to know about the program, such as a share without effect
  bool verified = false;
  bool order_consistent = true;
  std::vector<Diagnostic> problems;  ///< of the verifier, when not verified; nothing was run then
  LinkScope bound_links = LinkScope::all;  ///< the links the bound counts: those that were used
  bool bound_helpers = false;              ///< host memories take part, and the bound knows
  bool bound_relays = false;               ///< the algorithm may use relays, and the bound knows
  std::optional<Bound> bound;              ///< when asked to judge
  std::optional<TimeBound> time_bound;     ///< with it
  double fraction = 0;                     ///< least time / time; 0 where no time can be excluded
  /// Where searches for it had a limited time. Of what was skipped: no time was left to ask it.
  std::optional<GrantedTime> budget;
  bool nccl_left_out = false;  ///< the query is against NCCL, and no time was left for that
  RunReport report;
  int library_version = 0;  ///< whose launch costs benchmark_s has; 0: the newest
  /// Simulated: the time that nccl-tests would print, the mean of calls back to back. Of a log, the
  /// time that it did print. 0: not known.
  double benchmark_s = 0;
  std::optional<ExpectedError> error;  ///< of the simulated times
  std::optional<Baseline> nccl;        ///< where the query is against it
  /// Why a library decides so (Study::explain), for whoever shows the outcome; `ask` fills in none.
  std::vector<std::string> explanation;
  std::shared_ptr<const Program> program;  ///< cut, as run; it may be folded

  bool ran() const { return !skipped && verified; }
  double busbw_gbps() const { return report.algbw_gbps() * busbw_factor(query.collective, ranks); }
  /// What no schedule beats for this message. \pre it was judged
  double least_s() const {
    return time_bound->least_s(static_cast<double>(report.message_bytes), *bound);
  }
};

/// What the simulator says about a query, found without verifying the program.
struct Prediction {
  std::optional<std::string> skipped = {};  ///< why the algorithm does not apply here
  std::string algorithm = {};               ///< with the values that weighed parameters are best at
  std::size_t runtime = 0;                  ///< the one of the machine's that is best
  ChunkChoice best = {};                    ///< with the chunk size asked for, or the best one
  bool is_cut_short = false;                ///< the time ran out before all was compared
  std::string note = {};                    ///< what was left out for that, beside chunk sizes
  bool is_bounded = false;  ///< less was tried, because it was not worthwhile when that was chosen
};

/// A machine made ready: loaded, routed, ranks placed. Shared by the queries of a sweep.
struct Machine {
  std::shared_ptr<const Topology> topology;
  std::unique_ptr<Router> router;
  Placement placement;
  bool is_sized_by_ranks = false;  ///< made for the ranks asked for: see Study::know_machine
  /// The same under the profile's other protocols, where these are open and the GPUs have them.
  std::vector<std::unique_ptr<Router>> other_runtimes;
  std::shared_ptr<MachineFindings> found = nothing_found();

  /// \pre `index` is at most the number of others.
  const Router& runtime(std::size_t index) const {
    return index == 0 ? *router : *other_runtimes[index - 1];
  }
  int ranks() const { return static_cast<int>(placement.ranks.size()); }
};

struct Built;
struct Folding;

/// Answers queries, remembering machines, programs and bounds between them so that sweeps are fast.
class Study {
 public:
  /// What the search for an automatic chunk size may cost (see SimLimits): some seconds.
  static constexpr std::int64_t kMaxSearchWork = 500'000'000;

  /// Both back ends are borrowed. `simulator` also chooses automatic chunk sizes; may be null.
  Study(Backend& backend, Backend* simulator, std::int64_t search_work = kMaxSearchWork);
  ~Study();

  /// Queries that name this machine use it, instead of loading one by name. It was made for a
  /// number of ranks, and another number is another machine.
  void know_machine(const std::string& name, Topology machine);

  /// The profile of that name of a machine that is known has other constants from now on. What was
  /// found out is forgotten, except for programs of libraries, as long as routes stay the same:
  /// they depend on these, and on the profile by which NCCL counts host links (kNcclLinksProfile).
  void change_profile(const std::string& machine, const std::string& name, Profile profile);

  /// Queries that name this algorithm use the program, instead of reading one from a file.
  void know_program(const std::string& name, std::shared_ptr<const ProgramFile> file);

  /// Build, place, cut, verify, run, judge; `skipped` says that an algorithm does not apply. Throws
  /// Error for a query that makes no sense, Error{unsupported} for two ranks that nothing connects.
  Outcome ask(const Query& query);

  /// Between questions about ever other machines: forgets those known, and what was found out about
  /// them, where they take much memory. \pre nobody refers to one
  void make_room();

  /// Throws what `ask` would throw for want of memory or devices; nothing is run. Says nothing of
  /// queries that leave the algorithm open, nor of algorithms that do not apply.
  void require_room(const Query& query);

  /// Simulates a query, looking for the best chunk size unless it names one, and for the best
  /// values of weighed parameters (see AlgorithmParameter) that it leaves open, and remembers. With
  /// limits (RunOptions::limits), what takes longer than these is skipped after less work, and what
  /// does not is not remembered: without them, other chunks may be found to be the best.
  /// `worthwhile_s`: a prediction that takes longer is no more than an upper bound, and not
  /// remembered (see ChunkQuestion).
  /// Throws as `ask` does. \pre there is a simulator; the query names a machine and an algorithm
  Prediction predict(const Query& query,
                     double worthwhile_s = std::numeric_limits<double>::infinity());

  /// A lower bound on the time of a query from earlier predictions for other sizes (least_by).
  double shortest_time_s(const Query& query);

  /// An upper bound on it, by the same argument: a larger message takes no less, and several
  /// messages one after the other are a larger one. Infinite where nothing is known, and the time
  /// itself where the query was predicted.
  double longest_time_s(const Query& query);

  /// How long NCCL takes for the message of a query, whatever algorithm that names; nothing where
  /// there is nothing to compare with. Found once for a message. Throws as `ask` does.
  std::optional<Baseline> baseline(const Query& query);

  /// How long it took so far to find out what later questions can reuse: machines, plans, programs,
  /// bounds.
  double shared_s() const { return shared_s_; }

  /// The profile, without its protocol, under which a query runs as far as is known before it is
  /// asked: the one that it names, or the one of what the library that it names would run.
  std::string profile_used(const Query& query);

  /// Why a library decides as it does about a query that names one (Algorithm::explain), line by
  /// line; empty for all others.
  std::vector<std::string> explain(const Query& query);

  /// The table of "tuned:FILE", read once; null for other queries. Throws what `read_tuning` does,
  /// and Error{usage} when it is for another number of ranks.
  const TuningTable* tuning_table(const Query& query);

  /// The machine that a query names, loaded once. Throws what `load_topology` throws.
  std::shared_ptr<const Topology> topology(const Query& query);
  /// What `parse_algorithm` makes of a word, read once; throws what that throws.
  const AlgorithmChoice& choice(const std::string& algorithm);

  /// The number of ranks of a query, connected or not. Also throws what `chosen_gpus` throws.
  int ranks(const Query& query);

  /// The machine of a query. Throws what `load_topology`, `Topology::profile` and `place_ranks`
  /// throw, Error{usage} if the root is not a rank, and Error{unsupported} if ranks are not
  /// connected.
  Machine& machine(const Query& query);

  /// Every algorithm for the query's collective, by name.
  static std::vector<std::string> applicable(Collective collective);

 private:
  struct Cache;
  struct Prepared;

  // How a question is answered (study.cpp).
  Outcome answer(const Query& query);
  Machine& load(const Query& query);
  Machine make(const Query& query);
  /// Held by who uses it: preparing another may forget this one.
  std::shared_ptr<Prepared> prepare(const Query& query, Machine& machine);
  /// How many of a program's rounds are built, and how many are left out.
  struct FewRounds {
    std::int64_t enough = 0;
    std::int64_t left_out = 0;
  };
  FewRounds few_rounds(const Query& query, const Machine& machine,
                       const AlgorithmChoice& choice) const;
  using BuildWithout = std::function<std::optional<Built>(std::int64_t rounds_left_out)>;
  std::optional<Built> build_rounds(const FewRounds& few, Prepared& made,
                                    const BuildWithout& build);
  void finish(Prepared& made, Built built, const Query& query, const Machine& machine);
  std::optional<Built> build_folded(const Query& query, const Machine& machine,
                                    std::int64_t rounds_left_out, Prepared& made);
  std::optional<Built> take_folded(const Machine& machine, const Folding& folding, bool begin_alike,
                                   Built built, Prepared& made);
  std::optional<Built> build_of_groups(const Query& query, const Machine& machine,
                                       const Prepared& made);
  std::optional<Query> resolve(const Query& query);
  bool simulates(const Query& query) const;
  std::optional<Query> decide(const Query& query, const Machine& machine);
  void rate(const Query& query, Machine& machine, const Router& router, const Prepared& prepared,
            Outcome& outcome);
  bool cut_and_verify(const Query& query, Prepared& prepared, Outcome& outcome);
  Outcome run(const Query& query, Machine& machine, Prepared& prepared, std::size_t runtime,
              Outcome outcome);
  const RunReport* simulated_before(const Query& query, const Prepared& prepared,
                                    std::size_t runtime) const;
  static RunOptions options_of(const Query& query, const Machine& machine, const Router& router,
                               const Prepared& prepared, const Program& program);
  bool put_on_blocks(const Query& query, const Target& target, RunOptions& options,
                     Outcome& outcome);
  void judge(const Query& query, Machine& machine, const Prepared& prepared, Outcome& outcome);
  const std::string& possible_instead(const Query& query, const Machine& machine);
  struct Limits;
  const Limits& limits(const Query& query, Machine& machine, const Prepared& prepared);

  // What libraries decide (study_library.cpp).
  std::string profile(const Query& query);
  AlgorithmChoice library_choice(const Query& query);
  std::optional<Query> decided_by_library(const Query& query, const Machine& machine);
  const std::optional<Baseline>& baseline_of(const Query& asked);

  // What the simulator is asked before (study_predictions.cpp).
  /// What simulations of a program with one protocol say of it with others.
  struct Met {
    double busy_s = 0;         ///< of its busiest link
    std::string stuck;         ///< why it got stuck, cut in some way
    bool is_unsteady = false;  ///< SimEnd::unsteady
    void note(const RunReport& report);
  };
  std::vector<std::size_t> runtimes(const Machine& machine, const Prepared& prepared) const;
  Prediction simulate(const Query& query, Machine& machine, double worthwhile_s);
  Prediction simulate(const Query& query, Machine& machine, Prepared& prepared, std::size_t runtime,
                      double at_most_s, double worthwhile_s, Met& met);
  struct Promise {
    double time_s = std::numeric_limits<double>::infinity();
    std::int64_t size_bytes = 0;             ///< of the message that it was predicted of
    const Prediction* prediction = nullptr;  ///< null: nothing is known
  };
  Promise promise(const Query& query);
  ChunkChoice best_chunks(const Query& query, std::size_t runtime, ChunkQuestion asked,
                          const SimulatePieces& simulate);
  ChunkChoice simulate_as_before(const Query& query, const Promise& known,
                                 const SimulatePieces& simulate);
  Prediction predict_portfolio(const Query& query);
  const Prediction* found_by_search(const Query& query, Machine& machine);
  Prediction weigh(const Query& query, Machine& machine, double worthwhile_s);
  std::int64_t choose_chunk(const Query& query, const Prepared& prepared, Outcome& outcome);

  // What thread blocks that an interpreter carries out need (study_blocks.cpp).
  const BlockProgram* interpreted_blocks(const Query& query, const Machine& machine);
  Outcome ask_blocks(const Query& query, const BlockProgram& blocks, Machine& machine,
                     Prepared& prepared, Outcome outcome);
  Outcome ask_library(const Query& query, const std::string& why);
  Prediction simulate_blocks(const Query& query, const BlockProgram& blocks, Machine& machine,
                             const Prepared& prepared);

  Backend& backend_;
  Backend* simulator_;
  const std::int64_t search_work_;
  double shared_s_ = 0;
  std::int64_t asked_ = 0;  ///< questions, this one included
  std::unique_ptr<Cache> cache_;
};

}  // namespace espalier
