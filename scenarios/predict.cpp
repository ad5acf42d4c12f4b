// SPDX-License-Identifier: Apache-2.0
// The part of a study that asks the simulator before it answers: chunk sizes and weighed
// parameters.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/check.h"
#include "scenarios/study.h"
#include "scenarios/study_cache.h"

namespace espalier {

namespace {

/// Pieces of an executing back end when no machine is named that could be simulated.
constexpr std::int64_t kUnguidedPieceBytes = std::int64_t{1} << 20;
/// How a plan is written decides how long its transfers are. Cut into so many pieces, they
/// pipeline.
constexpr double kManyPieces = 16;

}  // namespace

/// As it is: weighed parameters left open have their defaults.
Prediction Study::simulate(const Query& query, Machine& machine) {
  Prepared& prepared = prepare(query, machine);
  if (prepared.skipped) return {prepared.skipped};
  if (prepared.is_wrong()) {
    const Diagnostic& problem = prepared.uncut.verification->problems.front();
    return {fmt::format("the verifier refuses the program: {} ({}:{})", problem.message,
                        problem.where.file, problem.where.line)};
  }
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.timeline = false;
  const std::int64_t max_ops = max_ops_when_cut(*prepared.whole, query.chunk_bytes.has_value());
  const auto with_pieces = [&](std::int64_t chunk_bytes, const SimLimits& limits) {
    options.limits = limits;
    const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes, max_ops);
    return simulator_->run(*prepared.cut(chunking).program,
                           {machine.router.get(), machine.placement}, options);
  };
  if (!query.chunk_bytes && prepared.choice.algorithm->pipelined) {
    return {{},
            query.algorithm,
            search_chunk({query.size_bytes, longest_share(*prepared.whole), search_work_},
                         with_pieces)};
  }
  const std::int64_t asked_bytes = query.chunk_bytes.value_or(0);
  const RunReport report = with_pieces(asked_bytes, {});
  const bool is_cut = !leaves_whole(prepared.chunking(query.size_bytes, asked_bytes, max_ops));
  return {{}, query.algorithm, {is_cut ? asked_bytes : 0, {}, report.time_s, report.algbw_gbps()}};
}

/// One open parameter after the other, those before at their best. Values that make the same
/// program are tried once.
Prediction Study::weigh(const Query& query, Machine& machine) {
  AlgorithmChoice choice = this->choice(query.algorithm);
  const std::vector<const AlgorithmParameter*> open = open_parameters(choice);
  for (const AlgorithmParameter* parameter : open) {
    choice.parameters[parameter->name] = parameter->default_value;
  }
  std::vector<std::shared_ptr<const Program>> tried;
  Prediction best;
  double pieces = 0;  // of the longest transfer of the best
  const auto try_parameters = [&](const AlgorithmChoice& one) {
    Query asked = query;
    asked.algorithm = spec_of(one);
    const Prepared& prepared = prepare(asked, machine);
    const bool is_known = prepared.whole && std::ranges::any_of(tried, [&](const auto& program) {
                            return same_program(*program, *prepared.whole);
                          });
    if (is_known) return;
    if (prepared.whole) tried.push_back(prepared.whole);
    const Prediction made = predict(asked);
    const bool is_first = best.algorithm.empty() && !best.skipped;
    if (is_first ||
        (!made.skipped && (best.skipped || shorter(made.best.time_s, best.best.time_s)))) {
      best = made;
      choice = one;
      pieces = made.best.chunk_bytes == 0
                   ? 1
                   : static_cast<double>(query.size_bytes) * longest_share(*prepared.whole) /
                         static_cast<double>(made.best.chunk_bytes);
    }
  };
  try_parameters(choice);
  for (const AlgorithmParameter* parameter : open) {
    if (!parameter->of_plan && pieces >= kManyPieces) continue;
    for (const std::int64_t value : parameter->tried) {
      AlgorithmChoice other = choice;
      other.parameters[parameter->name] = value;
      try_parameters(other);
    }
  }
  return best;
}

Prediction Study::predict(const Query& query) {
  CHECK(simulator_ != nullptr && !query.topology.empty());
  Machine& machine = this->machine(query);
  auto& known = cache_->predictions[{Cache::program_key(query, machine), query.chunk_bytes}];
  if (const auto found = known.find(query.size_bytes); found != known.end()) return found->second;
  const bool is_open = query.size_bytes > 0 && !open_parameters(choice(query.algorithm)).empty();
  const Prediction made = is_open ? weigh(query, machine) : simulate(query, machine);
  return known.emplace(query.size_bytes, made).first->second;
}

double Study::shortest_time_s(const Query& query) {
  const auto known =
      cache_->predictions.find({Cache::program_key(query, machine(query)), query.chunk_bytes});
  double least_s = 0;
  if (known == cache_->predictions.end()) return least_s;
  for (const auto& [size_bytes, prediction] : known->second) {
    const double share = size_bytes <= query.size_bytes ? 1
                                                        : static_cast<double>(query.size_bytes) /
                                                              static_cast<double>(size_bytes);
    least_s = std::max(least_s, prediction.best.time_s * share);
  }
  return least_s;
}

std::int64_t Study::choose_chunk(const Query& query, const Prepared& prepared, Outcome& outcome) {
  if (query.chunk_bytes) return *query.chunk_bytes;
  if (!prepared.choice.algorithm->pipelined || query.size_bytes == 0) return 0;
  if (simulator_ == nullptr || query.topology.empty()) return kUnguidedPieceBytes;
  const auto ops = static_cast<std::int64_t>(prepared.whole->ops.size());
  if (2 * ops * kWorkPerOp > search_work_) {
    outcome.chunk_note =
        chunk_note_too_costly(largest_piece_bytes(*prepared.whole, query.size_bytes) / 2);
    return 0;
  }
  const Prediction prediction = predict(query);
  outcome.chunk_note = prediction.best.note;
  return prediction.best.chunk_bytes;
}

}  // namespace espalier
