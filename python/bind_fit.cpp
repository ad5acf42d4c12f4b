// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "core/file.h"
#include "nccl/version.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/questions.h"
#include "report/fit.h"
#include "run/launch.h"
#include "scenarios/fit_logs.h"
#include "scenarios/fitted_file.h"
#include "sim/simulator.h"
#include "topologies/launch_costs.h"

namespace espalier {

namespace {

/// A fit as Python has it: what others read of it.
struct KnownFit {
  std::string record;   ///< as `fit_json` writes it
  std::string profile;  ///< as `print_fitted_profile` does
  std::vector<std::string> notes;

  py::dict object() const { return py::dict(to_python(Json::parse(record))); }
  Json part(const char* name) const { return Json::parse(record).at(name); }
};

int version_of(const std::string& name) {
  const auto version = library_version(name);
  if (version) return *version;
  throw Error(ErrorKind::usage, quote(name) + " is not a version of NCCL", "such as \"2.21\"");
}

KnownFit fit_to(const FitLogsRequest& request, const Topology& machine, double budget_s) {
  KnownFit made;
  FitRequest asked{machine, request.question.profile, {}};
  DiagnosticList problems;
  const FitLogs logs = read_fit_logs([&](const std::string& note) { made.notes.push_back(note); },
                                     request, machine, problems);
  check_algorithm(logs, request.question.algorithm, problems);
  problems.throw_if_any();
  asked.times = logs.times;
  asked.budget_s = budget_s;
  Simulator simulator;
  const ProfileFit fit = fit_profile(asked, simulator);
  require_met(fit, logs);
  made.record = fit_json(fit, asked);
  made.profile = print_fitted_profile(fit, asked, sources_of(fit, logs));
  return made;
}

KnownFit fit(const std::vector<PathArgument>& logs, const MachineArgument& machine,
             const GpusArgument& gpus, const std::optional<std::string>& collective, bool in_place,
             const std::string& algorithm, const std::string& profile,
             const std::optional<std::string>& launch,
             const std::optional<std::string>& nccl_version, const std::string& links,
             const std::optional<double>& budget) {
  FitLogsRequest request;
  for (const PathArgument& log : logs) request.files.push_back(log.text);
  if (logs.empty()) throw Error(ErrorKind::usage, "no log is given");
  request.question = question_of({machine, "allreduce", gpus, {}, 0, profile, links, in_place});
  request.question.algorithm = algorithm;
  if (collective) request.collective = collective_named(*collective);
  request.in_place = in_place;
  request.has_launch = launch.has_value();
  if (launch) request.question.launch = value_named("launch", *launch, all_launch_modes());
  if (nccl_version) request.question.library_version = version_of(*nccl_version);
  const double budget_s = seconds_of(budget);
  return compute([&] { return fit_to(request, *machine->topology, budget_s); }, [] {});
}

}  // namespace

void bind_fit(py::module_& module) {
  using Of = const KnownFit&;
  py::class_<KnownFit>(module, "Fit", "Constants of a profile, fitted to measured times.")
      .def_property_readonly(
          "constants", [](Of one) { return py::list(to_python(one.part("constants"))); },
          "Each with its value before and after, and how far the times determine it.")
      .def_property_readonly(
          "times", [](Of one) { return py::list(to_python(one.part("results"))); },
          "What was measured, and what is simulated for it before and after.")
      .def_property_readonly(
          "notes", [](Of one) { return one.notes; },
          "What had to be guessed or left out of the logs, a sentence each.")
      .def_property_readonly(
          "profile", [](Of one) { return text_of(one.profile); },
          "As a file of profiles, which `profile=\"./fitted.yaml\"` uses.")
      .def_property_readonly("record", &KnownFit::object,
                             "Everything, as --json writes it (docs/fitting.md).")
      .def(
          "export", [](Of one, const PathArgument& path) { write_file(path.text, one.profile); },
          py::arg("path"), "Writes the profile.")
      .def(py::pickle(
          [](Of one) {
            return py::make_tuple(py::bytes(one.record), py::bytes(one.profile), one.notes);
          },
          [](const py::tuple& state) {
            return KnownFit{state[0].cast<std::string>(), state[1].cast<std::string>(),
                            state[2].cast<std::vector<std::string>>()};
          }))
      .def("__repr__", [](Of one) {
        return fmt::format("<Fit to {}>", counted(one.part("results").size(), "time"));
      });
  module.def("_fit", &fit, py::arg("logs"), py::arg("machine"), py::kw_only(), py::arg("gpus"),
             py::arg("collective"), py::arg("in_place"), py::arg("algorithm"), py::arg("profile"),
             py::arg("launch"), py::arg("nccl_version"), py::arg("links"), py::arg("budget"));
}

}  // namespace espalier
