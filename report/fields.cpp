// SPDX-License-Identifier: Apache-2.0
#include "report/fields.h"

#include <algorithm>
#include <iterator>

#include "core/words.h"
#include "report/objects.h"

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

/// What was asked.
std::vector<ReportField<Outcome>> question_fields() {
  using Of = const Outcome&;
  return {
      {"schema", 0, true, [](Of) { return Json("espalier.report/1"); }},
      {"scenario", kStudyColumns, true,
       [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.scenario); }},
      {"block", kStudyColumns + 1, true,
       [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.block); }},
      {"topology", 1, true, [](Of one) { return or_null(has_machine(one), one.query.topology); }},
      {"collective", 5, true, [](Of one) { return Json(to_string(one.query.collective)); }},
      {"algorithm", 8, true, [](Of one) { return Json(one.query.algorithm); }},
      {"chosen", 9, true, [](Of one) { return if_not_empty(one.chosen); }},
      {"profile", 4, true, [](Of one) { return or_null(has_machine(one), one.query.profile); }},
      {"links_scope", kStudyColumns + 2, true,
       [](Of one) { return or_null(has_machine(one), to_string(one.query.links)); }},
      {"gpus", 0, true, [](Of one) { return gpu_numbers(one.query, one.ranks); }},
      {"gpus", 2, false,
       [](Of one) { return Json(format_ranges(gpu_numbers(one.query, one.ranks))); }},
      {"relays", 0, true,
       [](Of one) { return if_any(!one.query.relays.empty(), one.query.relays); }},
      {"relays", kStudyColumns + 3, false,
       [](Of one) { return Json(format_ranges(one.query.relays)); }},
      {"ranks", 3, true, [](Of one) { return Json(one.ranks); }},
      {"root", 6, true,
       [](Of one) { return or_null(info(one.query.collective).rooted, one.query.root); }},
      {"in_place", 7, true, [](Of one) { return Json(one.query.in_place); }},
      {"dtype", 10, true,
       [](Of one) { return or_null(executed(one) != nullptr, to_string(one.query.run.type)); }},
      {"op", 11, true,
       [](Of one) {
         return or_null(executed(one) != nullptr && info(one.query.collective).reduces,
                        to_string(one.query.run.op));
       }},
      {"iters", 0, true,
       [](Of one) { return or_null(executed(one) != nullptr, one.query.run.iterations); }},
  };
}

/// What came out.
std::vector<ReportField<Outcome>> answer_fields() {
  using Of = const Outcome&;
  return {
      {"size_bytes", 13, true, [](Of one) { return Json(one.report.message_bytes); }},
      {"chunk_bytes", 14, true, [](Of one) { return Json(one.chunk_bytes); }},
      {"chunk_note", 0, true, [](Of one) { return if_not_empty(one.chunk_note); }},
      {"program_note", 0, true, [](Of one) { return if_not_empty(one.program_note); }},
      {"backend", 12, true, [](Of one) { return Json(one.backend); }},
      {"engine", 0, true,
       [](Of one) { return one.report.simulated ? Json(one.report.simulated->engine) : Json(); }},
      {"notes", 0, true,
       [](Of one) {
         return executed(one) != nullptr && !executed(one)->notes.empty()
                    ? Json(executed(one)->notes)
                    : left_out();
       }},
      {"time_s", 15, true, [](Of one) { return rounded(one.report.time_s); }},
      {"min_time_s", 16, true,
       [](Of one) {
         return executed(one) != nullptr ? rounded(executed(one)->min_time_s) : Json();
       }},
      {"max_time_s", 17, true,
       [](Of one) {
         return executed(one) != nullptr ? rounded(executed(one)->max_time_s) : Json();
       }},
      {"algbw_gbps", 18, true, [](Of one) { return rounded(one.report.algbw_gbps()); }},
      {"busbw_gbps", 19, true, [](Of one) { return rounded(one.busbw_gbps()); }},
      {"bound_gbps", 20, false,
       [](Of one) { return one.bound ? rounded(one.bound->algbw_gbps) : Json(); }},
      {"fraction", 21, false, [](Of one) { return one.bound ? rounded(one.fraction) : Json(); }},
      {"transfers", 22, true, [](Of one) { return Json(one.report.transfers); }},
      {"verified", 0, true, [](Of one) { return Json(one.verified); }},
      {"order_consistent", 0, true, [](Of one) { return Json(one.order_consistent); }},
      {"wrong", 23, true,
       [](Of one) {
         return executed(one) != nullptr && executed(one)->wrong ? Json(*executed(one)->wrong)
                                                                 : Json();
       }},
  };
}

}  // namespace

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
      {"schema", 0, true, [](Of) { return Json("espalier.training/1"); }},
      {"scenario", kStudyColumns, true,
       [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.scenario); }},
      {"block", kStudyColumns + 1, true,
       [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.block); }},
      {"model", 6, true, [](Of one) { return Json(one.query.model->name); }},
      {"topology", 1, true, [](Of one) { return Json(one.query.exchange.topology); }},
      {"algorithm", 5, true, [](Of one) { return Json(one.query.exchange.algorithm); }},
      {"profile", 4, true, [](Of one) { return Json(one.query.exchange.profile); }},
      {"links_scope", kStudyColumns + 2, true,
       [](Of one) { return Json(to_string(one.query.exchange.links)); }},
      {"gpus", 0, true, [](Of one) { return gpu_numbers(one.query.exchange, one.ranks); }},
      {"gpus", 2, false,
       [](Of one) { return Json(format_ranges(gpu_numbers(one.query.exchange, one.ranks))); }},
      {"relays", 0, true,
       [](Of one) {
         return if_any(!one.query.exchange.relays.empty(), one.query.exchange.relays);
       }},
      {"relays", kStudyColumns + 3, false,
       [](Of one) { return Json(format_ranges(one.query.exchange.relays)); }},
      {"ranks", 3, true, [](Of one) { return Json(one.ranks); }},
      {"batch", 7, true, [](Of one) { return Json(one.query.batch); }},
      {"step_s", 8, true, [](Of one) { return rounded(one.query.step_s); }},
      {"step_source", 0, true, [](Of one) { return Json(one.query.step_source); }},
      {"dtype", 9, true, [](Of one) { return Json(to_string(one.query.type)); }},
      {"fusion_bytes", 10, true, [](Of one) { return Json(one.query.fusion_bytes); }},
      {"overlap", 11, true, [](Of one) { return Json(one.query.overlap); }},
      {"message_bytes", 12, true, [](Of one) { return Json(one.report.message_bytes); }},
      {"compute_s", 13, true, [](Of one) { return rounded(one.compute_s); }},
      {"communication_s", 14, true, [](Of one) { return rounded(one.communication_s); }},
      {"exposed_s", 15, true, [](Of one) { return rounded(one.exposed_s()); }},
      {"hidden_s", 16, true, [](Of one) { return rounded(one.hidden_s()); }},
      {"iteration_s", 17, true, [](Of one) { return rounded(one.iteration_s()); }},
      {"samples_per_s", 18, true, [](Of one) { return rounded(one.samples_per_s()); }},
      {"efficiency", 19, true, [](Of one) { return rounded(one.efficiency()); }},
      {"notes", 0, true, [](Of one) { return if_any(!one.notes.empty(), one.notes); }},
      {"transfers", 20, true, [](Of one) { return Json(one.report.transfers); }},
      {"verified", 0, true, [](Of) { return Json(true); }},  // otherwise it is refused
      {"order_consistent", 0, true, [](Of one) { return Json(one.order_consistent); }},
      {"engine", 0, true, [](Of one) { return Json(one.report.simulated->engine); }},
  };
  return fields;
}

const std::vector<ReportField<Skipped>>& skipped_fields() {
  using Of = const Skipped&;
  static const std::vector<ReportField<Skipped>> fields = {
      {"schema", 0, true, [](Of) { return Json("espalier.skipped/1"); }},
      {"scenario", kStudyColumns, true,
       [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.scenario); }},
      {"block", kStudyColumns + 1, true,
       [](Of one) { return if_any(was_asked(one.asked_by), one.asked_by.block); }},
      {"topology", kFills, true,
       [](Of one) { return or_null(!one.topology.empty(), one.topology); }},
      {"profile", kFills, true, [](Of one) { return or_null(!one.topology.empty(), one.profile); }},
      {"links_scope", kStudyColumns + 2, true,
       [](Of one) { return or_null(!one.topology.empty(), to_string(one.links)); }},
      {"gpus", 0, true, [](Of one) { return or_null(!one.gpus.empty(), one.gpus); }},
      {"gpus", kFills, false, [](Of one) { return Json(format_ranges(one.gpus)); }},
      {"relays", 0, true, [](Of one) { return if_any(!one.relays.empty(), one.relays); }},
      {"relays", kStudyColumns + 3, false, [](Of one) { return Json(format_ranges(one.relays)); }},
      {"collective", kFills, true, [](Of one) { return Json(one.collective); }},
      {"algorithm", kFills, true, [](Of one) { return Json(one.algorithm); }},
      {"model", kFills, true, [](Of one) { return if_not_empty(one.model); }},
      {"refused", 0, true, [](Of one) { return if_any(one.is_refused, true); }},
      {"reason", 0, true, [](Of one) { return Json(one.reason); }},
      {"instead", 0, true, [](Of one) { return if_not_empty(one.instead); }},
      {"skipped", kStudyColumns + 4, false, [](Of one) { return Json(one.reason); }},
  };
  return fields;
}

}  // namespace espalier
