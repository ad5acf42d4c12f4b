// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "core/units.h"
#include "ir/collective.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/states.h"
#include "python/traces.h"
#include "python/values.h"
#include "report/objects.h"
#include "scenarios/baseline.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

/// A bound with how near it an answer came.
struct JudgedBound {
  Bound bound;
  double fraction = 0;
  double least_s = 0;
};

/// Throws Error{usage} where none was asked for.
JudgedBound bound_of(const Result& result) {
  const Outcome& outcome = result.outcome;
  if (!outcome.bound) {
    throw Error(ErrorKind::usage, "no bound is known of what was run or compared",
                "simulate() and sweep() find one");
  }
  return JudgedBound{*outcome.bound, outcome.fraction, outcome.least_s()};
}

/// The busiest first.
std::vector<LinkUse> links_of(const Result& result) {
  if (!result.outcome.report.simulated) return {};
  std::vector<LinkUse> links = result.outcome.report.simulated->links;
  std::ranges::stable_sort(links, std::ranges::greater{}, &LinkUse::utilization);
  return links;
}

std::vector<std::string> notes_of(const Result& result) {
  const Outcome& outcome = result.outcome;
  std::vector<std::string> notes;
  for (const std::string* note : {&outcome.program_note, &outcome.chunk_note}) {
    if (!note->empty()) notes.push_back(*note);
  }
  if (const auto& executed = outcome.report.executed) {
    notes.insert(notes.end(), executed->notes.begin(), executed->notes.end());
  }
  return notes;
}

std::optional<std::int64_t> wrong_of(const Result& result) {
  const auto& executed = result.outcome.report.executed;
  return executed ? executed->wrong : std::nullopt;
}

std::string description_of(const Result& result) {
  const Outcome& outcome = result.outcome;
  return fmt::format("<Result {} {} {}: {}, {} GB/s>", algorithm_label(outcome),
                     to_string(outcome.query.collective),
                     describe_size(outcome.report.message_bytes),
                     format_seconds(outcome.report.time_s), format_gbps(outcome.busbw_gbps()));
}

std::size_t write_trace(const Result& result, const PathArgument& path, std::int64_t ops) {
  if (!result.outcome.report.simulated) {
    throw Error(ErrorKind::usage, "an execution has no timeline", "simulate() has");
  }
  return compute(
      [&] {
        const std::size_t most = most_ops(ops);
        const Outcome again =
            result.session->ask_with_timeline(result.outcome, result.program, traced_ops(most));
        return save_trace(trace_of(again, most), path);
      },
      [&] { result.session->forget(); });
}

void bind_parts(py::module_& module) {
  py::class_<JudgedBound>(module, "Bound", "What no schedule can beat, and how near one came.")
      .def_readonly("fraction", &JudgedBound::fraction,
                    "The least time that the bound allows, divided by the time taken; 0 where no "
                    "time can be excluded.")
      .def_readonly("time", &JudgedBound::least_s, "The least time for this message, in seconds.")
      .def_property_readonly(
          "rate", [](const JudgedBound& one) { return one.bound.algbw_gbps; },
          "The rate that no schedule beats, in GB/s of the message.")
      .def_property_readonly(
          "exact", [](const JudgedBound& one) { return one.bound.exact; },
          "The rate as a fraction: \"600/7\".")
      .def_property_readonly(
          "kind", [](const JudgedBound& one) { return one.bound.kind; },
          "How it is proved: \"cut\", \"partition\" or \"lp\".")
      .def_property_readonly(
          "certificate", [](const JudgedBound& one) { return one.bound.certificate; },
          "The proof: the cut, partition or prices, and their arithmetic.")
      .def(py::pickle(
          [](const JudgedBound& one) {
            return py::make_tuple(one.bound.algbw_gbps, one.bound.exact, one.bound.kind,
                                  py::bytes(one.bound.certificate), one.fraction, one.least_s);
          },
          [](const py::tuple& state) {
            return JudgedBound{{state[0].cast<double>(), state[1].cast<std::string>(),
                                state[2].cast<std::string>(), state[3].cast<std::string>()},
                               state[4].cast<double>(),
                               state[5].cast<double>()};
          }))
      .def("__repr__", [](const JudgedBound& one) {
        return fmt::format("<Bound {} GB/s, {:.1f} % reached>", format_gbps(one.bound.algbw_gbps),
                           100 * one.fraction);
      });
  py::class_<LinkUse>(module, "Link", "What a link carried, or a GPU's memory or arithmetic.")
      .def_readonly("name", &LinkUse::name, "\"gpu0->gpu3 nvlink2\".")
      .def_readonly("bytes", &LinkUse::bytes)
      .def_readonly("busy", &LinkUse::busy_s, "Seconds.")
      .def_readonly("utilization", &LinkUse::utilization, "Share of the time that it is busy.")
      .def_readonly("is_link", &LinkUse::is_link, "False for memory and arithmetic of a node.")
      .def(py::pickle(
          [](const LinkUse& one) {
            return py::make_tuple(py::bytes(one.name), one.bytes, one.busy_s, one.utilization,
                                  one.is_link, one.alike);
          },
          [](const py::tuple& state) {
            return LinkUse{state[0].cast<std::string>(), state[1].cast<double>(),
                           state[2].cast<double>(),      state[3].cast<double>(),
                           state[4].cast<bool>(),        state[5].cast<int>()};
          }))
      .def("__repr__", [](const LinkUse& one) {
        return fmt::format("<Link {}: {:.1f} % busy>", one.name, 100 * one.utilization);
      });
}

}  // namespace

void bind_results(py::module_& module) {
  bind_parts(module);
  using Of = const Result&;
  py::class_<Result>(module, "Result", "What came out of a simulation or an execution.")
      .def_property_readonly(
          "time", [](Of one) { return one.outcome.report.time_s; },
          "Seconds of one call; of an execution the mean over its iterations.")
      .def_property_readonly(
          "size", [](Of one) { return one.outcome.report.message_bytes; },
          "Bytes of the message, as nccl-tests counts them, after rounding to whole elements.")
      .def_property_readonly(
          "algbw", [](Of one) { return one.outcome.report.algbw_gbps(); },
          "GB/s (1e9 bytes) of the message.")
      .def_property_readonly(
          "busbw", [](Of one) { return one.outcome.busbw_gbps(); },
          "Bus bandwidth in GB/s, as nccl-tests has it.")
      .def_property_readonly(
          "algorithm", [](Of one) { return algorithm_that_ran(one.outcome); },
          "The one that ran, where the choice was left open.")
      .def_property_readonly(
          "collective", [](Of one) { return std::string(to_string(one.outcome.query.collective)); })
      .def_property_readonly("ranks", [](Of one) { return one.outcome.ranks; })
      .def_property_readonly(
          "chunk", [](Of one) { return one.outcome.chunk_bytes; },
          "Bytes of the pieces it was cut into; 0: it was not.")
      .def_property_readonly(
          "profile", [](Of one) { return one.outcome.profile; }, "Under which it ran.")
      .def_property_readonly(
          "protocol", [](Of one) { return one.outcome.protocol; },
          "Of the profile; empty where that has none.")
      .def_property_readonly(
          "order_consistent", [](Of one) { return one.outcome.order_consistent; },
          "Every rank combines in the same order, so that all agree to the last bit.")
      .def_property_readonly("bound", bound_of,
                             "Of a simulation. Executions and comparisons have none: Error.")
      .def_property_readonly(
          "error",
          [](Of one) {
            return one.outcome.error ? std::optional(one.outcome.error->relative) : std::nullopt;
          },
          "How far off a simulated time is expected to be: 0.1 is 10 %. None for executions.")
      .def_property_readonly("links", links_of, "Of a simulation, the busiest first.")
      .def_property_readonly(
          "speedup", [](Of one) { return speedup_of(one.outcome); },
          "How many times as fast as NCCL; None where that was not asked or is not known.")
      .def_property_readonly("wrong", wrong_of,
                             "Wrong elements of an execution; None where they were not checked.")
      .def_property_readonly("notes", notes_of, "What to know about it, a sentence each.")
      .def_property_readonly(
          "record", [](Of one) { return py::dict(to_python(report_json(one.outcome))); },
          "Everything, as --json writes it (docs/reports.md).")
      .def(
          "trace", &write_trace, py::arg("path"), py::kw_only(), py::arg("ops") = 50'000,
          "Writes the timeline of a simulation for ui.perfetto.dev, with the longest so many `ops` "
          "(0: all), compressed where the name ends in .gz. Returns how many are not in it.")
      .def(py::pickle([](Of one) { return state_of(one); },
                      [](const py::tuple& state) { return result_from(state); }))
      .def("__repr__", description_of);
}

}  // namespace espalier
