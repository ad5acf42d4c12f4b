// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/check.h"
#include "ir/print.h"
#include "report/counted_in.h"
#include "report/gzip.h"
#include "report/json.h"

namespace espalier {

namespace {

/// What the viewer draws a lane of a place as.
struct Track {
  int process = 0;
  int thread = 0;
};

/// As many as that, in their order.
std::vector<OpTiming> longest(const std::vector<OpTiming>& timeline, std::size_t most) {
  if (timeline.size() <= most) return timeline;
  std::vector<std::size_t> order(timeline.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_kept_first = [&](std::size_t a, std::size_t b) {
    const double a_s = timeline[a].end_s - timeline[a].start_s;
    const double b_s = timeline[b].end_s - timeline[b].start_s;
    return a_s != b_s ? a_s > b_s : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(order.begin(), end, order.end(), is_kept_first);
  std::sort(order.begin(), end);
  std::vector<OpTiming> kept;
  kept.reserve(most);
  for (auto place = order.begin(); place != end; ++place) kept.push_back(timeline[*place]);
  return kept;
}

/// One event a line, written as it is made: a document tree of millions of events would not fit.
class TraceText {
 public:
  explicit TraceText(std::size_t most_ops) : most_ops_(most_ops) {}

  template <class TrackOf>
  void add_ops(const Program& program, const RunReport& report, const OpName& name,
               const TrackOf& track_of) {
    const std::vector<OpTiming> kept = longest(report.timeline, most_ops_);
    trace_.ops += kept.size();
    trace_.left_out += report.timeline.size() - kept.size();
    for (const OpTiming& timing : kept) {
      const Op& op = program.ops[timing.op];
      const Track track = track_of(op);
      Json details = {{"op", report.number(timing.op)}};
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
    if (report.repeated() != nullptr) add_counted_in(program, report, track_of);
  }

  void name_process(Track track, const std::string& name) { add_name("process_name", track, name); }
  void name_thread(Track track, const std::string& name) { add_name("thread_name", track, name); }

  Trace finish() {
    const std::string counted_in =
        trace_.counted_in > 0 ? fmt::format(", \"ops_counted_in\": {}", trace_.counted_in) : "";
    trace_.json +=
        fmt::format("\n], \"otherData\": {{\"ops\": {}, \"shorter_ops_left_out\": {}{}}}}}\n",
                    trace_.ops, trace_.left_out, counted_in);
    return std::move(trace_);
  }

 private:
  /// A slice of every lane.
  template <class TrackOf>
  void add_counted_in(const Program& program, const RunReport& report, const TrackOf& track_of) {
    struct Slice {
      Track track;
      CountedIn when;
      std::size_t ops = 0;
    };
    std::map<std::pair<PlaceId, int>, Slice> slices;
    const CountedOps counted(program, report);
    for (const OpTiming& timing : report.timeline) {
      const auto when = counted.of(timing);
      if (!when) continue;
      const Op& op = program.ops[timing.op];
      Slice& slice = slices.try_emplace({op.at, op.lane}, Slice{track_of(op), *when}).first->second;
      slice.ops += static_cast<std::size_t>(when->times);
    }
    trace_.counted_rounds = counted_rounds(*report.repeated());
    for (const auto& [lane, slice] : slices) {
      trace_.counted_in += slice.ops;
      add({{"name", trace_.counted_rounds},
           {"cat", "rounds"},
           {"ph", "X"},
           {"pid", slice.track.process},
           {"tid", slice.track.thread},
           {"ts", rounded(slice.when.start_s * 1e6)},
           {"dur", rounded((slice.when.end_s - slice.when.start_s) * 1e6)},
           {"args", {{"ops", slice.ops}}}});
    }
  }

  void add(const Json& event) {
    if (!std::exchange(first_, false)) trace_.json += ",\n";
    trace_.json += event.dump();
  }
  void add_name(const char* what, Track track, const std::string& name) {
    add({{"name", what},
         {"ph", "M"},
         {"pid", track.process},
         {"tid", track.thread},
         {"args", {{"name", name}}}});
  }

  std::size_t most_ops_;
  Trace trace_{.json = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"};
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
OpName plain_name(const Program& program, const RunReport& report) {
  return [&](OpId op) { return op_text(program, report, op); };
}

}  // namespace

Trace trace_of(const Outcome& outcome, std::size_t most_ops) {
  CHECK(outcome.program != nullptr);
  return trace_of(*outcome.program, outcome.report, plain_name(*outcome.program, outcome.report),
                  most_ops);
}

Trace trace_of(const Program& program, const RunReport& report, const OpName& name,
               std::size_t most_ops) {
  TraceText text(most_ops);
  text.add_ops(program, report, name, [](const Op& op) { return Track{op.at, op.lane}; });
  PlaceId named = -1;
  for (const auto& [place, lane] : lanes_of(program, report.timeline)) {
    const Track track{place, lane};
    if (place != named) text.name_process(track, place_name(program, place));
    named = place;
    text.name_thread(track, fmt::format("lane {}", lane));
  }
  return text.finish();
}

Trace comparison_trace(const Outcome& predicted, const Outcome& measured, std::size_t most_ops) {
  TraceText text(most_ops);
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
    text.add_ops(program, outcome->report, plain_name(program, outcome->report), [&](const Op& op) {
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

Trace training_trace(const TrainingOutcome& outcome, std::size_t most_ops) {
  return trace_of(outcome.iteration.program, outcome.report, training_op_name(outcome), most_ops);
}

std::string trace_file(const Trace& trace, const std::string& path) {
  return path.ends_with(".gz") ? gzip(trace.json) : trace.json;
}

}  // namespace espalier
