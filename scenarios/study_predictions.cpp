// SPDX-License-Identifier: Apache-2.0
// What a study asks the simulator before a question is answered: chunk sizes, protocols, weighed
// parameters, the best of the catalogue.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/program_file.h"
#include "core/check.h"
#include "core/time_limit.h"
#include "core/words.h"
#include "run/blocks.h"
#include "scenarios/interpreted.h"
#include "scenarios/stated_protocol.h"
#include "scenarios/study.h"
#include "scenarios/study_cache.h"
#include "scenarios/tuner.h"
#include "scenarios/weighing.h"

namespace espalier {
namespace {

/// Programs with many more lanes than the profile has blocks are not weighed against others: lanes
/// that share a block wait for each other.
constexpr int kMaxLanesPerBlock = 3;

/// Simulations of programs with no more ops than these give up early enough by themselves.
constexpr std::size_t kFewOps = std::size_t{1} << 14;

constexpr const char* kNoOtherChunks = "other sizes were not tried: the time ran out";

bool crowds_blocks(const Program& program, const Profile& profile) {
  if (profile.blocks == 0) return false;
  return std::ranges::max(moving_lanes(program)) > kMaxLanesPerBlock * profile.blocks;
}

/// Pieces of an executing back end when no machine is named that could be simulated.
constexpr std::int64_t kUnguidedPieceBytes = std::int64_t{1} << 20;

}  // namespace

/// Those that can carry out a program: protocols that the machine's GPUs and links have.
std::vector<std::size_t> Study::runtimes(const Machine& machine, const Prepared& prepared) const {
  std::vector<std::size_t> usable = {0};
  for (std::size_t other = 1; other <= machine.other_runtimes.size(); ++other) {
    const Profile& profile = machine.runtime(other).profile();
    if (prepared.links.over_host && !profile.protocol.over_host_links) continue;
    if (prepared.links.in_switch && profile.in_switch.empty()) continue;
    usable.push_back(other);
  }
  return usable;
}

/// As it is: weighed parameters left open have their defaults. Under every runtime that can be the
/// fastest one: links carry the same under all of them, times the bytes on the wire.
Prediction Study::simulate(const Query& query, Machine& machine, double worthwhile_s) {
  const BlockProgram* const blocks = interpreted_blocks(query, machine);
  if (blocks != nullptr && why_not_used(*choice(query.algorithm).file->foreign, machine, query)) {
    Prediction own = predict(by_library(query));
    own.algorithm = query.algorithm;
    own.runtime = 0;
    return own;
  }
  const std::shared_ptr<Prepared> held = prepare(query, machine);
  Prepared& prepared = *held;
  if (prepared.skipped) return {prepared.skipped};
  if (prepared.is_wrong()) {
    const Diagnostic& problem = prepared.uncut->verdict->problems.front();
    return {fmt::format("the verifier refuses the program: {} ({}:{})", problem.message,
                        problem.where.file, problem.where.line)};
  }
  if (blocks != nullptr) return simulate_blocks(query, *blocks, machine, prepared);
  Met met;
  const double at_most_s = query.run.limits ? query.run.limits->time_s : kAnyTime;
  // In a hurry, what is best of a like message comes first.
  const Promise known = std::isfinite(time_left_s()) ? promise(query) : Promise{};
  const std::size_t first = known.prediction == nullptr ? 0 : known.prediction->runtime;
  Prediction best = simulate(query, machine, prepared, first, at_most_s, worthwhile_s, met);
  const auto with_more_rounds = [&] {
    cache_->build_more_rounds(query, machine);
    return simulate(query, machine, worthwhile_s);
  };
  if (met.is_unsteady) return with_more_rounds();
  const double wire = machine.runtime(first).profile().protocol.wire;
  std::vector<std::string> left_out;
  for (const std::size_t runtime : runtimes(machine, prepared)) {
    const Profile& profile = machine.runtime(runtime).profile();
    const double least_s = profile.call_overhead_s + met.busy_s * profile.protocol.wire / wire;
    const double to_beat_s = std::min(best.best.time_s, at_most_s);
    if (runtime == first || least_s >= to_beat_s || least_s > worthwhile_s) continue;
    if (std::isfinite(best.best.time_s) && is_time_up()) {
      left_out.push_back(profile.protocol.name);
      continue;
    }
    Met met_there;
    const Prediction other =
        simulate(query, machine, prepared, runtime, to_beat_s, worthwhile_s, met_there);
    if (met_there.is_unsteady) return with_more_rounds();
    if (shorter(other.best.time_s, best.best.time_s)) best = other;
  }
  if (std::isinf(best.best.time_s)) {
    best.skipped = met.stuck.empty() ? "it takes longer than was asked about" : met.stuck;
  }
  if (!left_out.empty()) {
    const bool is_one = left_out.size() == 1;
    best.note = fmt::format("protocol{} {} {} not tried: the time ran out", is_one ? "" : "s",
                            join(left_out, ", "), is_one ? "was" : "were");
  }
  return best;
}

void Study::Met::note(const RunReport& report) {
  busy_s = std::max(busy_s, report.simulated->busiest_link_s);
  if (report.simulated->end == SimEnd::stuck) stuck = report.simulated->stuck;
  is_unsteady = espalier::is_unsteady(report);
}

Prediction Study::simulate(const Query& query, Machine& machine, Prepared& prepared,
                           std::size_t runtime, double at_most_s, double worthwhile_s, Met& met) {
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.blocks = prepared.blocks;
  options.timeline = false;
  options.more_rounds = prepared.rounds_left_out;
  const std::int64_t max_ops = prepared.max_ops(query.chunk_bytes.has_value());
  const Target target{&machine.runtime(runtime), machine.placement, prepared.rotation.get()};
  // Where lanes of the whole program, or of larger pieces, are not alike, nobody looks again.
  bool may_be_alike = true;
  const auto with_pieces = [&](std::int64_t chunk_bytes, const SimLimits& limits) {
    options.limits = limits;
    options.only_times = may_be_alike;
    options.details = !query.only_times && !options.only_times;
    const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes, max_ops);
    options.found = leaves_whole(chunking) ? prepared.uncut->found : nullptr;
    RunReport report = simulator_->run(*prepared.cut(chunking).program, target, options);
    may_be_alike = may_be_alike && report.simulated->alike_lanes != AlikeLanes::few;
    met.note(report);
    if (report.simulated->end == SimEnd::finished) {
      prepared.keep_if_fastest(query.size_bytes, chunking, runtime, report, options.details);
    }
    return report;
  };
  // What cannot be fast enough however it is cut is not simulated at all.
  const double too_slow_s = std::min(at_most_s, worthwhile_s);
  const bool searches =
      !query.chunk_bytes && prepared.choice.algorithm->pipelined && prepared.may_be_cut;
  const std::int64_t asked_bytes = prepared.may_be_cut ? query.chunk_bytes.value_or(0) : 0;
  // Nothing is known beforehand of rounds left out, and those that are there are few.
  const bool is_large =
      asked_bytes > 0 || (prepared.whole->ops.size() > kFewOps && prepared.rounds_left_out == 0);
  LeastTimes least;
  if (searches || (is_large && std::isfinite(too_slow_s))) {
    least = simulator_->least_times(*prepared.whole, target, options, too_slow_s);
    met.busy_s = least.links_s;
    // Uncut: chunks that are asked for may be raised.
    if (least.of_chunks(0) > too_slow_s)
      return {{}, query.algorithm, runtime, {0, {}, kAnyTime, 0}};
  }
  if (searches) {
    const std::int64_t work =
        query.run.limits ? std::min(search_work_, query.run.limits->work) : search_work_;
    const ChunkQuestion asked{
        query.size_bytes, longest_share(*prepared.whole), work, at_most_s, worthwhile_s,
        least.of_chunks};
    return {{}, query.algorithm, runtime, best_chunks(query, runtime, asked, with_pieces)};
  }
  const RunReport report = with_pieces(asked_bytes, {.time_s = at_most_s});
  const bool is_cut = !leaves_whole(prepared.chunking(query.size_bytes, asked_bytes, max_ops));
  const bool is_done = report.simulated->end == SimEnd::finished;
  const double time_s = is_done ? report.time_s : std::numeric_limits<double>::infinity();
  return {{},
          query.algorithm,
          runtime,
          {is_cut ? asked_bytes : 0, {}, time_s, is_done ? report.algbw_gbps() : 0}};
}

/// In a hurry, those that were best of a like message come first.
ChunkChoice Study::best_chunks(const Query& query, std::size_t runtime, ChunkQuestion asked,
                               const SimulatePieces& simulate) {
  const bool hurries = std::isfinite(time_left_s()) && is_cuttable(asked);
  const Promise known = hurries ? promise(query) : Promise{};
  ChunkChoice best{0, {}, kAnyTime, 0};
  if (known.prediction != nullptr && known.prediction->runtime == runtime) {
    best = simulate_as_before(query, known, simulate);
  }
  if (std::isfinite(best.time_s) && is_time_up()) return best;
  asked.at_most_s = std::min(asked.at_most_s, best.time_s);
  ChunkChoice found = search_chunk(asked, simulate);
  best.note = found.note;
  return found.time_s < best.time_s || std::isinf(best.time_s) ? found : best;
}

/// In as many pieces as were best of another message: so it takes no longer than that one promises.
ChunkChoice Study::simulate_as_before(const Query& query, const Promise& known,
                                      const SimulatePieces& simulate) {
  const double scale = static_cast<double>(query.size_bytes) /
                       static_cast<double>(std::max<std::int64_t>(known.size_bytes, 1));
  const double scaled = std::ceil(static_cast<double>(known.prediction->best.chunk_bytes) * scale);
  const auto chunk_bytes = static_cast<std::int64_t>(scaled);
  const RunReport report = simulate(chunk_bytes, {});
  if (report.simulated->end != SimEnd::finished) return {0, {}, kAnyTime, 0};
  return {chunk_bytes, kNoOtherChunks, report.time_s, report.algbw_gbps()};
}

/// The earlier prediction of the same algorithm that promises most of the query.
Study::Promise Study::promise(const Query& query) {
  Promise best;
  const Cache::ProgramKey key = cache_->prediction_key(query, machine(query)).first;
  const auto look = [&](const std::map<std::int64_t, Prediction>& known) {
    for (const auto& [size_bytes, prediction] : known) {
      if (prediction.skipped) continue;
      const double time_s = promised_s(prediction.best.time_s, size_bytes, query.size_bytes);
      if (time_s < best.time_s) best = {time_s, size_bytes, &prediction};
    }
  };
  const auto look_for = [&](const std::optional<std::int64_t>& chunk_bytes) {
    const auto known = cache_->predictions.find({key, chunk_bytes});
    if (known != cache_->predictions.end()) look(known->second);
  };
  look_for(query.chunk_bytes);
  // Who asks for the chunks that were found to be best asks for the protocol, too.
  if (query.chunk_bytes && best.prediction == nullptr) look_for(std::nullopt);
  if (!is_library(choice(query.algorithm))) return best;
  // Which has another program for every size.
  for (const auto& [other, known] : cache_->predictions) {
    if (cache_->is_same_but_for_size(other.first, key)) look(known);
  }
  return best;
}

/// The plan itself and the rest of the catalogue: the fastest.
Prediction Study::predict_portfolio(const Query& query) {
  const std::vector<std::string> candidates =
      portfolio_candidates(choice(query.algorithm), query.collective);
  const auto best = choose_algorithm(*this, query, candidates);
  if (best) return best->prediction;
  Query asked = query;
  asked.algorithm = candidates.front();
  return predict(asked);
}

/// The fastest of the values that weighed parameters can have.
Prediction Study::weigh(const Query& query, Machine& machine, double worthwhile_s) {
  const auto with = [&](const AlgorithmChoice& one) {
    Query asked = query;
    asked.algorithm = spec_of(one);
    return asked;
  };
  WeighedBy by;
  by.program = [&](const AlgorithmChoice& one) { return prepare(with(one), machine)->whole; };
  by.is_crowded = [&](const Program& program) {
    return crowds_blocks(program, machine.router->profile());
  };
  by.predict = [&](const AlgorithmChoice& one, double its_worthwhile_s) {
    return predict(with(one), its_worthwhile_s);
  };
  const Promise known = std::isfinite(time_left_s()) ? promise(query) : Promise{};
  if (known.prediction != nullptr) by.as_before = choice(known.prediction->algorithm);
  by.worthwhile_s = worthwhile_s;
  return espalier::weigh(choice(query.algorithm), by);
}

Prediction Study::predict(const Query& query, double worthwhile_s) {
  CHECK(simulator_ != nullptr && !query.topology.empty());
  Machine& machine = this->machine(query);
  if (const std::optional<Query> decided = decided_by_library(query, machine)) {
    Prediction made = predict(*decided);
    made.algorithm = query.algorithm;
    if (std::isinf(time_left_s())) return made;
    // For who has no time to try all: see promise.
    return cache_->predictions[cache_->prediction_key(query, machine)]
        .insert_or_assign(query.size_bytes, std::move(made))
        .first->second;
  }
  if (const auto stated = under_stated_protocol(query, choice(query.algorithm), machine)) {
    return predict(*stated, worthwhile_s);
  }
  if (!query.only_times) {
    Query alone = query;
    alone.only_times = true;
    return predict(alone, worthwhile_s);
  }
  const Cache::PredictionKey key = cache_->prediction_key(query, machine);
  auto& known = cache_->predictions[key];
  const AlgorithmChoice& asked = choice(query.algorithm);
  const auto found = known.find(query.size_bytes);
  const auto hurried = cache_->hurried.find({key, query.size_bytes});
  // As with plans; but what is chosen of predictions is chosen anew, as there may be others by now.
  const bool may_be_better = hurried != cache_->hurried.end() &&
                             (is_portfolio(asked) || (hurried->second.second != asked_ &&
                                                      time_left_s() > hurried->second.first));
  if (found != known.end() && !may_be_better) {
    if (found->second.is_cut_short) note_cut_short();
    return found->second;
  }
  if (const Prediction* const searched = found_by_search(query, machine)) {
    return known.insert_or_assign(query.size_bytes, *searched).first->second;
  }
  const double had_s = time_left_s();
  const TimeLimit own(std::numeric_limits<double>::infinity());
  const bool is_open = !open_parameters(asked).empty();
  Prediction made = is_portfolio(asked) ? predict_portfolio(query)
                    : is_open           ? weigh(query, machine, worthwhile_s)
                                        : simulate(query, machine, worthwhile_s);
  made.is_cut_short = own.has_cut_short();
  if (query.run.limits || made.is_bounded || made.best.time_s > worthwhile_s) return made;
  if (made.is_cut_short) {
    cache_->hurried.insert_or_assign({key, query.size_bytes}, std::pair(had_s, asked_));
  } else if (hurried != cache_->hurried.end()) {
    cache_->hurried.erase(hurried);
  }
  return known.insert_or_assign(query.size_bytes, std::move(made)).first->second;
}

/// The prediction of a query that asks for the very chunks that a search found to be the best,
/// under whatever protocol; null where there is none. Programs of more ops are cut into other
/// pieces when it is asked for them.
const Prediction* Study::found_by_search(const Query& query, Machine& machine) {
  if (!query.chunk_bytes || query.run.limits) return nullptr;
  const auto searches =
      cache_->predictions.find({cache_->prediction_key(query, machine).first, std::nullopt});
  if (searches == cache_->predictions.end()) return nullptr;
  const auto found = searches->second.find(query.size_bytes);
  if (found == searches->second.end() || found->second.skipped || found->second.is_cut_short ||
      found->second.best.chunk_bytes != *query.chunk_bytes) {
    return nullptr;
  }
  const std::shared_ptr<const Prepared> held = prepare(query, machine);
  const Prepared& prepared = *held;
  const auto pieces = [&](bool is_asked) {
    return prepared.chunking(query.size_bytes, *query.chunk_bytes, prepared.max_ops(is_asked));
  };
  return pieces(true) == pieces(false) ? &found->second : nullptr;
}

double Study::shortest_time_s(const Query& query) {
  const Machine& machine = this->machine(query);
  if (const auto stated = under_stated_protocol(query, choice(query.algorithm), machine)) {
    return shortest_time_s(*stated);
  }
  const auto known = cache_->predictions.find(cache_->prediction_key(query, machine));
  double least_s = 0;
  if (known == cache_->predictions.end()) return least_s;
  for (const auto& [size_bytes, prediction] : known->second) {
    least_s = std::max(
        least_s, least_by(prediction.best.time_s, size_bytes, query.size_bytes, *machine.topology));
  }
  return least_s;
}

double Study::longest_time_s(const Query& query) { return promise(query).time_s; }

std::int64_t Study::choose_chunk(const Query& query, const Prepared& prepared, Outcome& outcome) {
  if (!prepared.may_be_cut) {
    outcome.chunk_note =
        "not cut, which would be faster: groups of ranks would no longer behave alike, and there "
        "are too many ranks to simulate them one by one";
    return 0;
  }
  if (query.chunk_bytes) return *query.chunk_bytes;
  if (!prepared.choice.algorithm->pipelined || query.size_bytes == 0) return 0;
  if (simulator_ == nullptr || query.topology.empty()) return kUnguidedPieceBytes;
  const auto ops = prepared.groups() * static_cast<std::int64_t>(prepared.whole->ops.size());
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
