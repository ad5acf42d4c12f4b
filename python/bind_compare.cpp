// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "core/file.h"
#include "probe/doubts.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/questions.h"
#include "python/states.h"
#include "report/survey.h"
#include "scenarios/tables.h"
#include "surveys.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// What was measured of a computer, as Python has it.
struct KnownSurvey {
  std::shared_ptr<KnownMachine> machine;
  std::string record;  ///< as `survey_json` writes it
};

const BackendEntry& executing_backend(const std::string& name) {
  const BackendEntry& entry = find_backend(name);
  if (!entry.executes) throw Error(ErrorKind::usage, name + " executes nothing");
  return entry;
}

KnownSurvey probe_this(const BackendEntry& entry, const std::vector<int>& devices,
                       const std::optional<int>& ranks, double timeout_s) {
  if (!devices.empty() && !entry.has_devices) {
    throw Error(ErrorKind::usage, fmt::format("{} has no devices", entry.name));
  }
  const int count = ranks.value_or(devices.empty() ? ranks_to_probe(entry, kHostRanks)
                                                   : static_cast<int>(devices.size()));
  if (count < 1) throw Error(ErrorKind::usage, fmt::format("{} ranks", count), "one at least");
  const ProbeRequest request = probe_request_for(entry, {devices}, count, timeout_s);
  const Survey survey =
      survey_machine(request, [](std::size_t) { return [](const std::string&) {}; });
  const Topology found = probed_machine(survey);
  auto session = std::make_shared<Session>(MachineOrigin{found.name, {}, print_topology(found)});
  return {std::make_shared<KnownMachine>(std::move(session)), survey_json(survey, found.title)};
}

KnownSurvey probe(const std::string& backend, const std::vector<int>& devices,
                  const std::optional<int>& ranks, double timeout_s) {
  const BackendEntry& entry = executing_backend(backend);
  return compute([&] { return probe_this(entry, devices, ranks, timeout_s); }, [] {});
}

/// One program, simulated and run.
struct KnownComparison {
  Result predicted;
  Result measured;
  double error = 0;
  std::optional<bool> as_probed = {};
};

struct CompareArguments {
  const std::vector<SizeArgument>& sizes;
  const std::vector<AlgorithmArgument>& algorithms;
  const BackendEntry& backend;
  const std::vector<int>& devices;
  const Topology& machine;
};

/// \pre both sessions have the same machine, so that they call programs the same
std::vector<Query> queries_of(const Query& question, const CompareArguments& arguments,
                              Session& predicting, Session& measuring) {
  const NamedAlgorithms named = words_of(arguments.algorithms, question, predicting);
  words_of(arguments.algorithms, question, measuring);
  std::vector<Query> queries;
  for (const SizeArgument& size : arguments.sizes) {
    for (const std::string& word : named.words) {
      Query& query = queries.emplace_back(question);
      query.size_bytes = size.bytes;
      query.algorithm = word;
    }
  }
  return queries;
}

std::vector<KnownComparison> compare_on(const std::shared_ptr<Session>& predicting,
                                        const Query& question, const CompareArguments& arguments) {
  const bool is_probed = !predicting->origin().yaml.empty();
  std::unique_ptr<Backend> backend = arguments.backend.make({arguments.devices, !is_probed});
  const FigureCheck check =
      question.gpus.empty()
          ? figure_check(arguments.backend, {}, *backend, arguments.machine, question.run.timeout_s)
          : FigureCheck{};
  auto measuring = std::make_shared<Session>(predicting->origin(), std::move(backend));
  const std::vector<Query> queries = queries_of(question, arguments, *predicting, *measuring);
  const Comparisons found = compare_table(
      queries, [&](const Query& query) { return predicting->study().ask(query); },
      [&](const Query& query) { return measuring->study().ask(query); },
      [](const Outcome&, const Comparison*) {}, {}, check);
  Answers answers = found.measured;
  label_programs(arguments.algorithms, *predicting, question, answers.skipped);
  require_answers(answers);
  std::vector<KnownComparison> made;
  for (const Comparison& row : found.rows) {
    const auto program = asked_program(arguments.algorithms, *predicting, row.predicted);
    made.push_back(
        {{row.predicted, predicting, program}, {row.measured, measuring, program}, row.error()});
    if (row.changed) made.back().as_probed = row.changed->empty();
    for (Result* const one : {&made.back().predicted, &made.back().measured}) {
      if (program) one->outcome.query.algorithm = program->label();
    }
  }
  return made;
}

std::vector<KnownComparison> compare(
    const std::optional<MachineArgument>& machine, const std::string& collective,
    const std::vector<SizeArgument>& sizes, const std::vector<AlgorithmArgument>& algorithms,
    const std::string& backend, const std::optional<int>& ranks, const std::vector<int>& devices,
    const GpusArgument& gpus, std::int64_t root, const std::string& type, const std::string& op,
    int iterations, int warmup, ChunkArgument chunk, const std::string& profile,
    const std::string& links, bool in_place, double timeout_s) {
  const BackendEntry& entry = executing_backend(backend);
  if (sizes.empty()) throw Error(ErrorKind::usage, "no size is given");
  MachineArgument on;
  if (machine) {
    if (ranks) throw Error(ErrorKind::usage, "machine and ranks exclude each other");
    on = *machine;
  } else {
    on.machine =
        compute([&] { return probe_this(entry, devices, ranks, timeout_s).machine; }, [] {});
  }
  Query question = question_of({on, collective, gpus, {}, root, profile, links, in_place});
  question.chunk_bytes = chunk.bytes;
  question.judge = false;
  question.run.type = data_type_named(type);
  question.run.op = value_named("operator", op, all_reduce_ops(), reduce_op_synonyms());
  question.run.iterations = iterations;
  question.run.warmup = warmup;
  question.run.timeout_s = timeout_s;
  return compute(
      [&] {
        return compare_on(on->session, question,
                          {sizes, algorithms, entry, devices, *on.machine->topology});
      },
      [&] { on->session->forget(); });
}

/// Why a machine may not be this computer.
std::vector<std::string> doubts(const MachineArgument& machine, const std::string& backend,
                                const std::vector<int>& devices) {
  return doubts_about(*machine->topology, measured_in_place_of_gpus(executing_backend(backend), {}),
                      devices);
}

void bind_survey(py::module_& module) {
  using Of = const KnownSurvey&;
  py::class_<KnownSurvey>(module, "Survey", "What was measured of this computer.")
      .def_property_readonly(
          "machine", [](Of one) { return one.machine; },
          "The machine that explains what was measured.")
      .def_property_readonly(
          "record", [](Of one) { return py::dict(to_python(Json::parse(one.record))); },
          "Everything, as --json writes it (docs/probing.md).")
      .def(
          "export",
          [](Of one, const PathArgument& path) {
            write_file(path.text, one.machine->session->origin().yaml);
          },
          py::arg("path"), "Writes the machine as a topology file.")
      .def(py::pickle([](Of one) { return py::make_tuple(one.machine, py::bytes(one.record)); },
                      [](const py::tuple& state) {
                        return KnownSurvey{state[0].cast<std::shared_ptr<KnownMachine>>(),
                                           state[1].cast<std::string>()};
                      }))
      .def("__repr__", [](Of one) { return "<Survey of " + one.machine->topology->title + ">"; });
  module.def("probe", &probe, py::arg("backend") = "host", py::kw_only(),
             py::arg("devices") = std::vector<int>(), py::arg("ranks") = py::none(),
             py::arg("timeout") = 60.0,
             "Measures this computer (docs/probing.md): all its GPUs, those named, or so many "
             "`ranks` on one of them or on its threads.");
}

}  // namespace

void bind_compare(py::module_& module) {
  bind_survey(module);
  using Of = const KnownComparison&;
  py::class_<KnownComparison>(module, "Comparison", "One program, simulated and run here.")
      .def_readonly("predicted", &KnownComparison::predicted)
      .def_readonly("measured", &KnownComparison::measured)
      .def_readonly("error", &KnownComparison::error,
                    "What the prediction is off by, as a share of the median time measured: 0.1 is "
                    "10 % too long.")
      .def_readonly("as_probed", &KnownComparison::as_probed,
                    "Whether key figures of the computer still were as probed right before and "
                    "after; None where there was nothing to check.")
      .def(py::pickle(
          [](Of one) {
            return py::make_tuple(state_of(one.predicted), state_of(one.measured), one.error,
                                  one.as_probed);
          },
          [](const py::tuple& state) {
            return KnownComparison{result_from(state[0]), result_from(state[1]),
                                   state[2].cast<double>(), state[3].cast<std::optional<bool>>()};
          }))
      .def("__repr__", [](Of one) {
        return fmt::format("<Comparison {}: {:+.1f} %>", one.predicted.outcome.query.algorithm,
                           100 * one.error);
      });
  module.def("_compare", &compare, py::arg("machine"), py::arg("collective"), py::arg("sizes"),
             py::arg("algorithms"), py::kw_only(), py::arg("backend"), py::arg("ranks"),
             py::arg("devices"), py::arg("gpus"), py::arg("root"), py::arg("dtype"), py::arg("op"),
             py::arg("iterations"), py::arg("warmup"), py::arg("chunk"), py::arg("profile"),
             py::arg("links"), py::arg("in_place"), py::arg("timeout"));
  module.def("doubts", &doubts, py::arg("machine"), py::kw_only(), py::arg("backend") = "host",
             py::arg("devices") = std::vector<int>(),
             "Why a machine that comparisons are made with may not be this computer.");
}

}  // namespace espalier
