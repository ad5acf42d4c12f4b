// SPDX-License-Identifier: Apache-2.0
#include "scenarios/training_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "ir/data.h"
#include "ir/verify.h"
#include "run/switches.h"
#include "scenarios/chooser.h"

namespace espalier {

namespace {

constexpr std::size_t kMaxOps = 4'000'000;
/// Relative accuracy of simulated times.
constexpr double kAccuracy = 1e-9;

/// How buckets of one size are exchanged, or why they are not.
struct Exchanged {
  std::vector<ExchangeStage> stages;
  std::string algorithm;
  std::vector<std::string> notes;  ///< what to know about the programs
  std::optional<Outcome> refused;
};

/// Asks the study for the programs of buckets, once for each size.
class Exchanges {
 public:
  Exchanges(Study& study, const TrainingQuery& query, int ranks)
      : study_(study),
        question_(query.exchange),
        stages_(collectives_of(query.exchange.algorithm)),
        ranks_(ranks) {
    question_.in_place = true;
    question_.judge = false;
    question_.run.timeline = false;
    question_.may_fold = false;  // an iteration needs the ops of all ranks
    question_.all_rounds = true;
  }

  const Exchanged& of_size(std::int64_t size_bytes) {
    const auto [known, is_new] = by_size_.try_emplace(size_bytes);
    if (is_new) ask(size_bytes, known->second);
    return known->second;
  }

 private:
  void ask(std::int64_t size_bytes, Exchanged& made) {
    std::vector<std::string> chosen;
    for (const ExchangeCollective& stage : stages_) {
      const int shares = stage.by_owners ? ranks_ : 1;
      Query question = question_;
      question.collective = stage.collective;
      question.algorithm = stage.algorithm;
      question.size_bytes = size_bytes / shares;
      for (int share = 0; share < shares; ++share) {
        question.root = share;
        Outcome outcome = study_.ask(question);
        if (!outcome.ran()) {
          made.refused = std::move(outcome);
          return;
        }
        const Machine& machine = study_.machine(question);
        made.stages.push_back(
            {outcome.program, share, shares,
             switch_call_s(*outcome.program, {machine.router.get(), machine.placement})});
        if (share == 0) note(outcome, made.notes);
        // What is best for the first root is taken for all.
        if (!outcome.chosen.empty()) question.algorithm = outcome.chosen;
        question.chunk_bytes = outcome.chunk_bytes;
      }
      chosen.push_back(question.algorithm);
    }
    made.algorithm = to_string(ExchangeWords{stages_.back().by_owners, std::move(chosen)});
  }

  /// What a table of that exchange would say below it.
  static void note(const Outcome& outcome, std::vector<std::string>& notes) {
    const std::string size = describe_size(outcome.query.size_bytes);
    // That an automatic chunk size was not searched further is said of tables that compare them.
    if (outcome.query.chunk_bytes && !outcome.chunk_note.empty()) {
      notes.push_back(
          fmt::format("Chunks of {}: {} ({})", outcome.query.algorithm, outcome.chunk_note, size));
    }
    if (!outcome.program_note.empty()) {
      notes.push_back(fmt::format("{}: {}", outcome.query.algorithm, outcome.program_note));
    }
  }

  Study& study_;
  Query question_;
  std::vector<ExchangeCollective> stages_;
  int ranks_;
  std::map<std::int64_t, Exchanged> by_size_;
};

/// Scratch of one place may hold the message of every rank, and there is a limit to it.
std::int64_t max_units(int ranks) {
  return std::min(kMaxUnits, std::numeric_limits<std::uint32_t>::max() / (ranks + std::int64_t{1}));
}

/// Asked as exchanges become known, so that an iteration of too many ops is refused before the rest
/// of them is planned.
void limit_ops(std::size_t ops) {
  if (ops <= kMaxOps) return;
  throw Error(ErrorKind::unsupported,
              fmt::format("an iteration would have more than {} ops", kMaxOps),
              "a larger fusion buffer makes fewer buckets, and a larger chunk fewer pieces");
}

IterationPlan passes(const TrainingQuery& query, int ranks, double call_s) {
  IterationPlan plan;
  plan.ranks = ranks;
  plan.overlap = query.overlap;
  plan.call_s = call_s;
  plan.forward_s = forward_seconds(*query.model, query.step_s);
  plan.backward_s = backward_seconds(*query.model, query.step_s);
  const std::vector<Tensor>& tensors = query.model->tensors;
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    plan.gradients.push_back(tensor->name);
  }
  return plan;
}

/// The iteration without its computation: what communication takes by itself.
Program communication_of(const Program& iteration) {
  Program program = iteration;
  for (const Op& op : iteration.ops) {
    if (op.kind == OpKind::compute && op.lane == kComputeLane) {
      program.durations_s[op.dst.begin] = 0;
    }
  }
  return program;
}

/// Reads the times of passes and buckets off the timeline.
void read_times(TrainingOutcome& outcome) {
  const Iteration& iteration = outcome.iteration;
  std::vector<double> begin_s(iteration.parts.size(), std::numeric_limits<double>::infinity());
  std::vector<double> end_s(iteration.parts.size(), 0);
  for (const OpTiming& timing : outcome.report.timeline) {
    const std::uint32_t part = iteration.part_of[timing.op];
    begin_s[part] = std::min(begin_s[part], timing.start_s);
    end_s[part] = std::max(end_s[part], timing.end_s + timing.landing_s);
  }
  const std::size_t gradients = outcome.query.model->tensors.size();
  outcome.compute_s = end_s[gradients];  // the forward pass is part 0, gradient i part i + 1
  for (std::size_t number = 0; number < outcome.buckets.size(); ++number) {
    BucketOutcome& bucket = outcome.buckets[number];
    bucket.ready_s = end_s[bucket.bucket.last];
    bucket.begin_s = begin_s[iteration.first_part[number]];
    bucket.end_s = end_s[iteration.first_part[number]];
  }
}

/// 0 when the numbers are equal as far as the simulator is accurate.
double difference(double a, double b) {
  return std::abs(a - b) <= kAccuracy * std::max(a, b) ? 0 : a - b;
}

}  // namespace

double TrainingOutcome::exposed_s() const { return difference(iteration_s(), compute_s); }

double TrainingOutcome::hidden_s() const {
  // Among transfers that begin at the same time, others may come first when all begin later, and
  // make the exposed part a little longer than communication by itself.
  return std::max(0.0, difference(communication_s, exposed_s()));
}

std::vector<ExchangeCollective> collectives_of(const std::string& spec) {
  const auto [by_owners, words] = exchange_words(spec);
  if (by_owners && words.size() == 2) {
    return {{Collective::reducescatter, words[0]}, {Collective::broadcast, words[1], true}};
  }
  if (by_owners) {
    throw Error(ErrorKind::usage, fmt::format("{} does not name two algorithms", quote(spec)),
                "owners:REDUCESCATTER+BROADCAST, such as owners:direct+pipelined_chain");
  }
  if (words.size() == 1) return {{Collective::allreduce, words[0]}};
  if (words.size() == 2) {
    return {{Collective::reduce, words[0]}, {Collective::broadcast, words[1]}};
  }
  throw Error(ErrorKind::usage, fmt::format("{} names more than two algorithms", quote(spec)),
              "REDUCE+BROADCAST, such as knomial+pipelined_chain");
}

void check_exchange(const std::string& spec) {
  DiagnosticList problems;
  for (const ExchangeCollective& stage : collectives_of(spec)) {
    try {
      check_algorithm(stage.algorithm, stage.collective);
    } catch (const Error& error) {
      for (const Diagnostic& problem : error.diagnostics()) problems.add(problem);
    }
  }
  problems.throw_if_any(ErrorKind::usage);
}

TrainingOutcome train(Study& study, Backend& simulator, const TrainingQuery& query) {
  const TimeLimit own(std::numeric_limits<double>::infinity());
  Machine& machine = study.machine(query.exchange);
  TrainingOutcome outcome;
  outcome.query = query;
  outcome.ranks = machine.ranks();
  IterationPlan plan = passes(query, outcome.ranks, machine.router->profile().call_overhead_s);
  const int element_bytes = static_cast<int>(size_of(query.type));
  const std::vector<Bucket> buckets = fuse(*query.model, query.fusion_bytes, element_bytes);
  const BucketLayout layout = lay_out(buckets, max_units(outcome.ranks));
  Exchanges exchanges(study, query, outcome.ranks);
  std::size_t ops = (1 + plan.gradients.size()) * static_cast<std::size_t>(plan.ranks);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const std::int64_t bytes = layout.bucket_bytes(i, element_bytes);
    const TimeLimit share = TimeLimit::share_of_rest(buckets.size() - i);
    const Exchanged& exchanged = exchanges.of_size(bytes);
    if (const auto& refused = exchanged.refused) {
      outcome.skipped = refused->skipped;
      outcome.instead = refused->instead;
      outcome.problems = refused->problems;
      return outcome;
    }
    for (const ExchangeStage& stage : exchanged.stages) {
      ops += stage.program->ops.size() + static_cast<std::size_t>(stage.program->places());
    }
    limit_ops(ops);
    for (const std::string& note : exchanged.notes) {
      if (std::ranges::count(outcome.notes, note) == 0) outcome.notes.push_back(note);
    }
    plan.exchanges.push_back({buckets[i].last - 1, layout.units[i], exchanged.stages});
    outcome.buckets.push_back({buckets[i], bytes, exchanged.algorithm, 0, 0, 0});
  }
  outcome.iteration = build_iteration(plan);
  const Program& program = outcome.iteration.program;
  Verification verification = verify(program);
  outcome.order_consistent = verification.order_consistent;
  outcome.problems = std::move(verification.problems);
  if (!outcome.problems.empty()) return outcome;

  const Target target{machine.router.get(), machine.placement};
  RunOptions options = query.exchange.run;
  options.type = query.type;
  options.size_bytes = layout.all_units * layout.unit_elements * element_bytes;
  options.timeline = false;
  options.is_call = false;
  outcome.communication_s = simulator.run(communication_of(program), target, options).time_s;
  options.timeline = true;
  outcome.report = simulator.run(program, target, options);
  read_times(outcome);
  outcome.budget = own.granted();
  return outcome;
}

}  // namespace espalier
