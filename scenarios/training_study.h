// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/study.h"
#include "training/buckets.h"
#include "training/iteration.h"
#include "training/model.h"

namespace espalier {

/// One question: how long does an iteration of data-parallel training take on these GPUs?
struct TrainingQuery {
  std::shared_ptr<const Model> model;
  /// Machine, profile, links, chunk size and engine; `algorithm` as `check_exchange` takes it.
  Query exchange;
  DataType type = DataType::float32;  ///< of gradients
  int batch = 1;                      ///< samples of each GPU
  double step_s = 0;                  ///< of one iteration on one GPU, without communication
  std::string step_source;            ///< the source of that time, or the word estimate
  std::int64_t fusion_bytes = 0;      ///< see `fuse`
  bool overlap = true;                ///< exchange gradients during the backward pass
};

/// What became of a bucket, in seconds from the start of the iteration.
struct BucketOutcome {
  Bucket bucket;
  std::int64_t bytes = 0;  ///< padded to whole units, see BucketLayout
  std::string algorithm;   ///< what was chosen, where the query left it open
  double ready_s = 0;      ///< its last gradient is made
  double begin_s = 0;      ///< the first rank begins
  double end_s = 0;        ///< the last rank has ended
};

/// The answer, or why there is none. docs/training.md defines the times.
struct TrainingOutcome {
  TrainingQuery query;
  AskedBy asked_by;
  std::optional<std::string> skipped;  ///< why the algorithm does not apply here
  std::string instead;                 ///< what is possible, where that is known
  std::vector<Diagnostic> problems;    ///< of the verifier; nothing was run then
  int ranks = 0;
  bool order_consistent = true;
  double compute_s = 0;            ///< forward and backward pass
  double communication_s = 0;      ///< all exchanges, one after the other and without computation
  std::vector<std::string> notes;  ///< what to know about the exchanges' programs, each once
  RunReport report;                ///< of the iteration
  Iteration iteration;
  std::vector<BucketOutcome> buckets;
  std::optional<GrantedTime> budget = {};  ///< as of an Outcome

  bool ran() const { return !skipped && problems.empty(); }
  double iteration_s() const { return report.time_s; }
  /// The time by which the iteration exceeds computation;
  /// differences within the simulator's accuracy count as 0.
  double exposed_s() const;
  /// The rest of the communication.
  double hidden_s() const;
  double samples_per_s() const { return ranks * query.batch / iteration_s(); }
  /// Scaling efficiency: samples per second, compared with those of as many GPUs that compute
  /// in the model's step time, whatever the speed of the actual GPUs, and do not communicate.
  double efficiency() const { return query.step_s / iteration_s(); }
};

/// A collective of an exchange, and the algorithm for it or who chooses one.
struct ExchangeCollective {
  Collective collective = Collective::allreduce;
  std::string algorithm;
  bool by_owners = false;  ///< every rank is the root of its share of the bucket
};

/// What an exchange consists of. Throws Error{usage} as `check_exchange` does, but does not look at
/// algorithms.
std::vector<ExchangeCollective> collectives_of(const std::string& spec);

/// Throws Error{usage} when `spec` says nothing about how buckets are exchanged. It is an algorithm
/// for allreduce or a chooser (see chooser.h), or two joined by a plus: a reduce to rank 0, and the
/// broadcast of the result ("knomial+pipelined_chain"). "owners:" before them makes every rank the
/// owner of an equal share: a reducescatter, and a broadcast by each owner in turn
/// ("owners:direct+pipelined_chain"), by the algorithm and in the pieces that are best for rank 0.
void check_exchange(const std::string& spec);

/// Simulates an iteration, verified as one program, and its communication by itself. Throws what
/// `Study::ask` throws, and Error{unsupported} for an iteration of too many ops. \pre `simulator`
/// simulates; the query's exchange passed `check_exchange` and names a machine.
TrainingOutcome train(Study& study, Backend& simulator, const TrainingQuery& query);

}  // namespace espalier
