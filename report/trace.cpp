// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "ir/print.h"
#include "report/json.h"

namespace espalier {

namespace {

/// What the viewer draws a lane of a place as.
struct Track {
  int process = 0;
  int thread = 0;
};

/// One event a line, written as it is made: a document tree of millions of events would not fit.
class TraceText {
 public:
  template <class TrackOf>
  void add_ops(const Program& program, const std::vector<OpTiming>& timeline, const OpName& name,
               const TrackOf& track_of) {
    for (const OpTiming& timing : timeline) {
      const Op& op = program.ops[timing.op];
      const Track track = track_of(op);
      Json details = {{"op", timing.op}};
      if (timing.landing_s > 0) details["landing_us"] = rounded(timing.landing_s * 1e6);
      add({{"name", name(timing.op)},
           {"cat", op.kind == OpKind::compute ? "compute"
                   : op.kind == OpKind::wait  ? "wait"
                   : op.src_count > 1         ? "combine"
                                              : "copy"},
           {"ph", "X"},
           {"pid", track.process},
           {"tid", track.thread},
           {"ts", rounded(timing.start_s * 1e6)},
           {"dur", rounded((timing.end_s - timing.start_s) * 1e6)},
           {"args", std::move(details)}});
    }
  }

  void name_process(Track track, const std::string& name) { add_name("process_name", track, name); }
  void name_thread(Track track, const std::string& name) { add_name("thread_name", track, name); }

  std::string finish() { return std::move(text_) + "\n]}\n"; }

 private:
  void add(const Json& event) {
    if (!std::exchange(first_, false)) text_ += ",\n";
    text_ += event.dump();
  }
  void add_name(const char* what, Track track, const std::string& name) {
    add({{"name", what},
         {"ph", "M"},
         {"pid", track.process},
         {"tid", track.thread},
         {"args", {{"name", name}}}});
  }

  std::string text_ = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  bool first_ = true;
};

/// Places and lanes that the timeline knows, in order.
std::set<std::pair<PlaceId, int>> lanes_of(const Program& program,
                                           const std::vector<OpTiming>& timeline) {
  std::set<std::pair<PlaceId, int>> lanes;
  for (const OpTiming& timing : timeline) {
    const Op& op = program.ops[timing.op];
    lanes.emplace(op.at, op.lane);
  }
  return lanes;
}

/// Every op called what it does.
OpName plain_name(const Program& program) {
  return [&program](OpId op) { return to_string(program, op); };
}

}  // namespace

std::string trace_json(const Outcome& outcome) {
  CHECK(outcome.program != nullptr);
  return trace_json(*outcome.program, outcome.report, plain_name(*outcome.program));
}

std::string trace_json(const Program& program, const RunReport& report, const OpName& name) {
  TraceText text;
  text.add_ops(program, report.timeline, name, [](const Op& op) { return Track{op.at, op.lane}; });
  PlaceId named = -1;
  for (const auto& [place, lane] : lanes_of(program, report.timeline)) {
    const Track track{place, lane};
    if (place != named) text.name_process(track, place_name(program, place));
    named = place;
    text.name_thread(track, fmt::format("lane {}", lane));
  }
  return text.finish();
}

std::string comparison_trace_json(const Outcome& predicted, const Outcome& measured) {
  TraceText text;
  int process = 0;
  for (const Outcome* outcome : {&predicted, &measured}) {
    CHECK(outcome->program != nullptr);
    const Program& program = *outcome->program;
    const std::vector<OpTiming>& timeline = outcome->report.timeline;
    std::map<std::pair<PlaceId, int>, int> threads;
    for (const auto& lane : lanes_of(program, timeline)) threads.emplace(lane, threads.size());
    text.name_process({process, 0}, outcome == &predicted ? "predicted" : "measured");
    for (const auto& [lane, thread] : threads) {
      text.name_thread({process, thread},
                       fmt::format("{} lane {}", place_name(program, lane.first), lane.second));
    }
    text.add_ops(program, timeline, plain_name(program), [&](const Op& op) {
      return Track{process, threads.at({op.at, op.lane})};
    });
    ++process;
  }
  return text.finish();
}

OpName training_op_name(const TrainingOutcome& outcome) {
  return [&iteration = outcome.iteration](OpId id) {
    const std::string& part = iteration.parts[iteration.part_of[id]];
    const Op& op = iteration.program.ops[id];
    if (op.kind == OpKind::combine) return part + ": " + to_string(iteration.program, id);
    return op.lane == kComputeLane ? part : part + " begins";
  };
}

std::string training_trace(const TrainingOutcome& outcome) {
  return trace_json(outcome.iteration.program, outcome.report, training_op_name(outcome));
}

}  // namespace espalier
