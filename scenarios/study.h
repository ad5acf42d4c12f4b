// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/backend.h"
#include "ir/verify.h"
#include "planner/bounds.h"
#include "topologies/route.h"

namespace espalier {

/// One question: how fast is this algorithm for this message on these GPUs?
struct Query {
  std::string topology;                       ///< as `load_topology` takes it
  std::vector<int> gpus;                      ///< empty: all
  std::string profile = "kernel";
  LinkScope links = LinkScope::all;
  Collective collective = Collective::allreduce;
  int root = 0;
  bool in_place = false;
  std::string algorithm;                      ///< as `parse_algorithm` takes it
  std::int64_t size_bytes = 0;
  std::optional<std::int64_t> chunk_bytes;    ///< nothing: auto; 0: do not cut
  RunOptions run;                             ///< size_bytes is filled in from above
};

/// The answer, or why there is none.
struct Outcome {
  Query query;
  std::string backend;
  std::optional<std::string> skipped;         ///< why the algorithm does not apply here
  int ranks = 0;
  std::int64_t chunk_bytes = 0;               ///< used; 0: not cut
  bool verified = false;
  bool order_consistent = true;
  std::vector<Diagnostic> problems;           ///< of the verifier, when not verified
  LinkScope bound_links = LinkScope::all;     ///< the links the bound counts
  Bound bound;
  double fraction = 0;                        ///< algbw / bound
  RunReport report;
  std::shared_ptr<const Program> program;     ///< chunked, as run
};

/// A machine made ready: loaded, routed, ranks placed. Shared by the queries of a sweep.
struct Machine {
  Topology topology;
  std::unique_ptr<Router> router;
  Placement placement;
};

/// Answers queries, remembering machines, programs and bounds between them so that sweeps are fast.
class Study {
 public:
  /// Both back ends are borrowed. `simulator` also chooses automatic chunk sizes; may be null.
  Study(Backend& backend, Backend* simulator);
  ~Study();

  /// Build, place, cut, verify, run, judge. Throws Error for a query that makes no sense; an algorithm
  /// that does not apply is an Outcome with `skipped`. Throws Error{unsupported} naming the pair when
  /// the ranks are not connected at all.
  Outcome ask(const Query& query);

  Machine& machine(const Query& query);
  /// Every algorithm that serves the query's collective, by name.
  static std::vector<std::string> applicable(const Query& query);

 private:
  struct Cache;
  Backend& backend_;
  Backend* simulator_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace espalier
