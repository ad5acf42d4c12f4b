// SPDX-License-Identifier: Apache-2.0
#include "report/fields.h"

#include <algorithm>
#include <iterator>

#include "core/words.h"
#include "report/objects.h"
#include "topologies/launch_costs.h"

namespace espalier {

namespace {

template <class Value>
Json if_any(bool condition, const Value& value) {
  return condition ? Json(value) : left_out();
}
template <class Value>
Json or_null(bool condition, const Value& value) {
  return condition ? Json(value) : Json();
}
Json if_not_empty(const std::string& text) { return if_any(!text.empty(), text); }

bool was_asked(const AskedBy& asked_by) { return asked_by != AskedBy{}; }
bool has_machine(const Outcome& one) { return !one.query.topology.empty(); }

/// Times of an executing back end depend on type, operator and iterations, and those of the
/// simulator do not.
const ExecutedPart* executed(const Outcome& one) {
  return one.report.executed ? &*one.report.executed : nullptr;
}

const SimulatedPart* simulated(const Outcome& one) {
  return one.report.simulated ? &*one.report.simulated : nullptr;
}

Json error_json(const Outcome& one) {
  if (!one.error) return {};
  return {{"relative", rounded(one.error->relative)},
          {"from", one.error->from},
          {"is_estimate", one.error->is_estimate}};
}

Json nccl_json(const Outcome& one) {
  if (!one.nccl) return left_out();
  const std::optional<double> speedup = speedup_of(one);
  return {{"algorithm", one.nccl->algorithm},
          {"library", one.nccl->library},
          {"version", version_text(one.nccl->version)},
          {"time_s", rounded(one.nccl->time_s)},
          {"speedup", speedup ? rounded(*speedup) : Json()}};
}

template <class Answer>
Json budget_or_none(const Answer& one) {
  return one.budget ? budget_json(*one.budget) : left_out();
}

/// What was asked.
std::vector<ReportField<Outcome>> question_fields() {
  using Of = const Outcome&;
  return {
      {"kind", [](Of) { return Json("report"); }},
      {"scenario", [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.scenario); }},
      {"block", [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.block); }},
      {"topology", [](Of one) { return or_null(has_machine(one), one.query.topology); }},
      {"collective", [](Of one) { return Json(to_string(one.query.collective)); }},
      {"algorithm", [](Of one) { return Json(one.query.algorithm); }},
      {"chosen", [](Of one) { return if_not_empty(one.chosen); }},
      {"profile", [](Of one) { return or_null(has_machine(one), one.query.profile); }},
      {"ran_under",
       [](Of one) {
         const bool is_other =
             has_machine(one) && one.profile != profile_word(one.query.profile).runtime;
         return if_any(is_other, one.profile);
       }},
      {"protocol", [](Of one) { return if_not_empty(one.protocol); }},
      {"links_scope", [](Of one) { return or_null(has_machine(one), to_string(one.query.links)); }},
      {"gpus", [](Of one) { return gpu_numbers(one.query, one.ranks); }},
      {"relays", [](Of one) { return if_any(!one.query.relays.empty(), one.query.relays); }},
      {"ranks", [](Of one) { return Json(one.ranks); }},
      {"root", [](Of one) { return or_null(info(one.query.collective).rooted, one.query.root); }},
      {"in_place", [](Of one) { return Json(one.query.in_place); }},
      {"dtype",
       [](Of one) { return or_null(executed(one) != nullptr, to_string(one.query.run.type)); }},
      {"op",
       [](Of one) {
         return or_null(executed(one) != nullptr && info(one.query.collective).reduces,
                        to_string(one.query.run.op));
       }},
      {"iters", [](Of one) { return or_null(executed(one) != nullptr, one.query.run.iterations); }},
  };
}

/// What came out.
std::vector<ReportField<Outcome>> answer_fields() {
  using Of = const Outcome&;
  return {
      {"size_bytes", [](Of one) { return Json(one.report.message_bytes); }},
      {"chunk_bytes", [](Of one) { return Json(one.chunk_bytes); }},
      {"chunk_note", [](Of one) { return if_not_empty(one.chunk_note); }},
      {"program_note", [](Of one) { return if_not_empty(one.program_note); }},
      {"budget", budget_or_none<Outcome>},
      {"backend", [](Of one) { return Json(one.backend); }},
      {"engine",
       [](Of one) { return one.report.simulated ? Json(one.report.simulated->engine) : Json(); }},
      {"notes",
       [](Of one) {
         return executed(one) != nullptr && !executed(one)->notes.empty()
                    ? Json(executed(one)->notes)
                    : left_out();
       }},
      {"time_s", [](Of one) { return rounded(one.report.time_s); }},
      {"launch",
       [](Of one) { return or_null(simulated(one) != nullptr, to_string(one.query.launch)); }},
      {"back_to_back_s",
       [](Of one) {
         return simulated(one) != nullptr ? rounded(simulated(one)->back_to_back_s) : Json();
       }},
      {"benchmark_s",
       [](Of one) { return one.benchmark_s > 0 ? rounded(one.benchmark_s) : Json(); }},
      {"error", error_json},
      {"expected_error", [](Of one) { return one.error ? rounded(one.error->relative) : Json(); },
       false},
      {"nccl", nccl_json},
      {"explain", [](Of one) { return if_any(!one.explanation.empty(), one.explanation); }},
      {"speedup",
       [](Of one) {
         const std::optional<double> speedup = speedup_of(one);
         return speedup ? rounded(*speedup) : Json();
       },
       false},
      {"min_time_s",
       [](Of one) {
         return executed(one) != nullptr ? rounded(executed(one)->min_time_s) : Json();
       }},
      {"max_time_s",
       [](Of one) {
         return executed(one) != nullptr ? rounded(executed(one)->max_time_s) : Json();
       }},
      {"rank_times_s",
       [](Of one) {
         if (executed(one) == nullptr || executed(one)->rank_times_s.empty()) return left_out();
         Json times = Json::array();
         for (const double time_s : executed(one)->rank_times_s) times.push_back(rounded(time_s));
         return times;
       }},
      {"algbw_gbps", [](Of one) { return rounded(one.report.algbw_gbps()); }},
      {"busbw_gbps", [](Of one) { return rounded(one.busbw_gbps()); }},
      {"bound_gbps", [](Of one) { return one.bound ? rounded(one.bound->algbw_gbps) : Json(); },
       false},
      {"bound_time_s", [](Of one) { return one.bound ? rounded(one.least_s()) : Json(); }, false},
      {"fraction", [](Of one) { return one.bound ? rounded(one.fraction) : Json(); }, false},
      {"transfers", [](Of one) { return Json(one.report.transfers); }},
      {"verified", [](Of one) { return Json(one.verified); }},
      {"order_consistent", [](Of one) { return Json(one.order_consistent); }},
      {"wrong",
       [](Of one) {
         return executed(one) != nullptr && executed(one)->wrong ? Json(*executed(one)->wrong)
                                                                 : Json();
       }},
      {"refused", [](Of) { return Json(false); }, false},
      {"skipped", [](Of) { return Json(); }, false},
  };
}

}  // namespace

const std::vector<std::string_view>& table_columns() {
  static const std::vector<std::string_view> columns = {
      "topology", "gpus", "ranks", "profile", "protocol", "collective", "root", "in_place",
      "algorithm", "chosen", "dtype", "op", "backend", "size_bytes", "chunk_bytes", "time_s",
      "launch", "benchmark_s", "expected_error", "speedup", "min_time_s", "max_time_s",
      "algbw_gbps", "busbw_gbps", "bound_gbps", "bound_time_s", "fraction", "transfers", "wrong",
      // Of studies that say what was measured.
      "measured_s", "measured_error",
      // Of training.
      "model", "batch", "step_s", "fusion_bytes", "overlap", "message_bytes", "compute_s",
      "communication_s", "exposed_s", "hidden_s", "iteration_s", "samples_per_s", "efficiency",
      // Of all rows: who asked, and what became of it.
      "scenario", "block", "links_scope", "relays", "refused", "skipped"};
  return columns;
}

const std::vector<ReportField<Outcome>>& outcome_fields() {
  static const std::vector<ReportField<Outcome>> fields = [] {
    std::vector<ReportField<Outcome>> all = question_fields();
    std::ranges::copy(answer_fields(), std::back_inserter(all));
    return all;
  }();
  return fields;
}

const std::vector<ReportField<TrainingOutcome>>& training_fields() {
  using Of = const TrainingOutcome&;
  static const std::vector<ReportField<TrainingOutcome>> fields = {
      {"kind", [](Of) { return Json("training"); }},
      {"scenario", [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.scenario); }},
      {"block", [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.block); }},
      {"model", [](Of one) { return Json(one.query.model->name); }},
      {"topology", [](Of one) { return Json(one.query.exchange.topology); }},
      {"algorithm", [](Of one) { return Json(one.query.exchange.algorithm); }},
      {"profile", [](Of one) { return Json(one.query.exchange.profile); }},
      {"links_scope", [](Of one) { return Json(to_string(one.query.exchange.links)); }},
      {"gpus", [](Of one) { return gpu_numbers(one.query.exchange, one.ranks); }},
      {"relays",
       [](Of one) {
         return if_any(!one.query.exchange.relays.empty(), one.query.exchange.relays);
       }},
      {"ranks", [](Of one) { return Json(one.ranks); }},
      {"batch", [](Of one) { return Json(one.query.batch); }},
      {"step_s", [](Of one) { return rounded(one.query.step_s); }},
      {"step_source", [](Of one) { return Json(one.query.step_source); }},
      {"dtype", [](Of one) { return Json(to_string(one.query.type)); }},
      {"fusion_bytes", [](Of one) { return Json(one.query.fusion_bytes); }},
      {"overlap", [](Of one) { return Json(one.query.overlap); }},
      {"message_bytes", [](Of one) { return Json(one.report.message_bytes); }},
      {"compute_s", [](Of one) { return rounded(one.compute_s); }},
      {"communication_s", [](Of one) { return rounded(one.communication_s); }},
      {"exposed_s", [](Of one) { return rounded(one.exposed_s()); }},
      {"hidden_s", [](Of one) { return rounded(one.hidden_s()); }},
      {"iteration_s", [](Of one) { return rounded(one.iteration_s()); }},
      {"samples_per_s", [](Of one) { return rounded(one.samples_per_s()); }},
      {"efficiency", [](Of one) { return rounded(one.efficiency()); }},
      {"notes", [](Of one) { return if_any(!one.notes.empty(), one.notes); }},
      {"budget", budget_or_none<TrainingOutcome>},
      {"transfers", [](Of one) { return Json(one.report.transfers); }},
      {"verified", [](Of) { return Json(true); }},  // otherwise it is refused
      {"order_consistent", [](Of one) { return Json(one.order_consistent); }},
      {"engine", [](Of one) { return Json(one.report.simulated->engine); }},
      {"refused", [](Of) { return Json(false); }, false},
      {"skipped", [](Of) { return Json(); }, false},
  };
  return fields;
}

const std::vector<ReportField<Skipped>>& skipped_fields() {
  using Of = const Skipped&;
  static const std::vector<ReportField<Skipped>> fields = {
      {"kind", [](Of) { return Json("skipped"); }},
      {"scenario", [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.scenario); }},
      {"block", [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.block); }},
      {"topology", [](Of one) { return or_null(!one.topology.empty(), one.topology); }},
      {"profile", [](Of one) { return or_null(!one.topology.empty(), one.profile); }},
      {"links_scope", [](Of one) { return or_null(!one.topology.empty(), to_string(one.links)); }},
      {"gpus", [](Of one) { return or_null(!one.gpus.empty(), one.gpus); }},
      {"relays", [](Of one) { return if_any(!one.relays.empty(), one.relays); }},
      {"ranks", [](Of one) { return or_null(one.ranks > 0, one.ranks); }},
      {"in_place", [](Of one) { return one.in_place ? Json(*one.in_place) : Json(); }},
      {"collective", [](Of one) { return Json(one.collective); }},
      {"algorithm", [](Of one) { return Json(one.algorithm); }},
      {"model", [](Of one) { return if_not_empty(one.model); }},
      {"refused", [](Of one) { return Json(one.is_refused); }},
      {"reason", [](Of one) { return Json(one.reason); }},
      {"instead", [](Of one) { return if_not_empty(one.instead); }},
      {"budget", budget_or_none<Skipped>},
      {"skipped", [](Of one) { return Json(one.reason); }, false},
  };
  return fields;
}

}  // namespace espalier
