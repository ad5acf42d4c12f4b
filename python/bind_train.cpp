// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <cmath>

#include "core/file.h"
#include "core/units.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/questions.h"
#include "python/states.h"
#include "python/traces.h"
#include "report/objects.h"
#include "scenarios/records.h"
#include "scenarios/training_sweep.h"

namespace espalier {

namespace {

/// A model with the text that other processes read it from.
struct ModelText {
  std::string file;
  std::string text;
};

ModelText text_of_model(const std::string& spec) {
  for (const ModelEntry& entry : builtin_models()) {
    if (entry.name == spec) return {spec + ".yaml", entry.yaml};
  }
  load_model(spec);  // which says what is wrong with a name
  return {spec, read_file(spec)};
}

/// How long one GPU computes, as one says it.
struct StepArguments {
  std::optional<int> batch;
  std::optional<std::string> gpu_type;
  std::optional<double> compute_s;
};

void set_step(TrainingQuery& query, const Topology& machine, const StepArguments& step) {
  if (step.batch && (*step.batch < 1 || *step.batch > kMaxBatch)) {
    throw Error(ErrorKind::usage, fmt::format("a batch of {} samples", *step.batch),
                fmt::format("1 to {}", kMaxBatch));
  }
  if (!step.compute_s) {
    set_known_step(query, machine, step.gpu_type, step.batch);
    return;
  }
  if (step.gpu_type) throw Error(ErrorKind::usage, "compute and gpu_type exclude each other");
  if (!step.batch) throw Error(ErrorKind::usage, "compute also needs a batch");
  const double compute_ms = *step.compute_s * 1e3;
  if (!(compute_ms >= kMinComputeMs && compute_ms <= kMaxComputeMs)) {
    throw Error(ErrorKind::usage, fmt::format("{} s for an iteration", *step.compute_s),
                fmt::format("{} to {} s", kMinComputeMs * 1e-3, kMaxComputeMs * 1e-3));
  }
  set_given_step(query, compute_ms, *step.batch);
}

void require_ran(const TrainingOutcome& outcome) {
  if (outcome.skipped) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} is not possible here: {}", outcome.query.exchange.algorithm,
                            *outcome.skipped),
                outcome.instead);
  }
  if (!outcome.problems.empty()) throw Error(ErrorKind::input, outcome.problems);
}

KnownTraining train_machine(const MachineArgument& machine, const PathArgument& model,
                            const std::string& algorithm, const GpusArgument& gpus,
                            const GpusArgument& relays, const std::optional<int>& batch,
                            const std::optional<std::string>& gpu_type,
                            const std::optional<double>& compute_s, SizeArgument fusion,
                            const std::string& type, bool overlap, ChunkArgument chunk,
                            const std::string& profile, const std::string& links,
                            const std::optional<double>& budget) {
  TrainingQuery query;
  query.exchange =
      question_of({machine, "allreduce", gpus, relays, 0, profile, links, /*in_place=*/false});
  query.exchange.algorithm = algorithm;
  query.exchange.chunk_bytes = chunk.bytes;
  check_exchange(algorithm);
  query.type = data_type_named(type);
  query.fusion_bytes = fusion.bytes;
  query.overlap = overlap;
  const double budget_s = seconds_of(budget);
  return compute(
      [&] {
        const TimeLimit limit(budget_s);
        const auto [file, text] = text_of_model(model.text);
        query.model = std::make_shared<const Model>(parse_model(text, file));
        set_step(query, *machine->topology, {batch, gpu_type, compute_s});
        Session& session = *machine->session;
        KnownTraining made{train(session.study(), session.simulator(), query), machine->session,
                           file, text};
        require_ran(made.outcome);
        // Who wants programs and timelines asks again.
        made.outcome.iteration = {};
        made.outcome.report.timeline.clear();
        return made;
      },
      [&] { machine->session->forget(); });
}

py::tuple training_state(const KnownTraining& one) {
  const TrainingQuery& asked = one.outcome.query;
  return py::make_tuple(one.session, state_of(asked.exchange), static_cast<int>(asked.type),
                        asked.batch, asked.step_s, py::bytes(asked.step_source), asked.fusion_bytes,
                        asked.overlap, py::bytes(one.model_file), py::bytes(one.model_text),
                        packed(record_of(one.outcome)));
}

KnownTraining training_from(const py::tuple& state) {
  KnownTraining one{{},
                    state[0].cast<std::shared_ptr<Session>>(),
                    state[8].cast<std::string>(),
                    state[9].cast<std::string>()};
  TrainingQuery& asked = one.outcome.query;
  asked.model = std::make_shared<const Model>(parse_model(one.model_text, one.model_file));
  asked.exchange = query_from(state[1]);
  asked.type = static_cast<DataType>(state[2].cast<int>());
  asked.batch = state[3].cast<int>();
  asked.step_s = state[4].cast<double>();
  asked.step_source = state[5].cast<std::string>();
  asked.fusion_bytes = state[6].cast<std::int64_t>();
  asked.overlap = state[7].cast<bool>();
  read_record(unpacked(state[10]), one.outcome);
  return one;
}

std::size_t write_trace(const KnownTraining& one, const PathArgument& path, std::int64_t ops) {
  return compute([&] { return save_trace(training_trace(asked_again(one), most_ops(ops)), path); },
                 [&] { one.session->forget(); });
}

}  // namespace

TrainingOutcome asked_again(const KnownTraining& one) {
  return train(one.session->study(), one.session->simulator(), one.outcome.query);
}

void bind_train(py::module_& module) {
  using Of = const KnownTraining&;
  py::class_<KnownTraining>(module, "Training", "An iteration of data-parallel training.")
      .def_property_readonly(
          "time", [](Of one) { return one.outcome.iteration_s(); }, "Seconds of an iteration.")
      .def_property_readonly(
          "compute", [](Of one) { return one.outcome.compute_s; },
          "Seconds of the forward and the backward pass.")
      .def_property_readonly(
          "communication", [](Of one) { return one.outcome.communication_s; },
          "Seconds of all exchanges, one after the other and without computation.")
      .def_property_readonly(
          "exposed", [](Of one) { return one.outcome.exposed_s(); },
          "Seconds by which the iteration exceeds computation.")
      .def_property_readonly(
          "hidden", [](Of one) { return one.outcome.hidden_s(); },
          "Seconds of communication behind computation.")
      .def_property_readonly("samples_per_s", [](Of one) { return one.outcome.samples_per_s(); })
      .def_property_readonly(
          "efficiency", [](Of one) { return one.outcome.efficiency(); },
          "Samples per second, compared with those of as many GPUs that do not communicate.")
      .def_property_readonly("ranks", [](Of one) { return one.outcome.ranks; })
      .def_property_readonly(
          "batch", [](Of one) { return one.outcome.query.batch; }, "Samples of each GPU.")
      .def_property_readonly("model", [](Of one) { return one.outcome.query.model->name; })
      .def_property_readonly("algorithm",
                             [](Of one) { return one.outcome.query.exchange.algorithm; })
      .def_property_readonly(
          "buckets",
          [](Of one) { return py::list(to_python(training_json(one.outcome).at("buckets"))); },
          "Each fusion buffer: its bytes, and when it was ready and exchanged.")
      .def_property_readonly(
          "notes", [](Of one) { return one.outcome.notes; },
          "What to know about it, a sentence each.")
      .def_property_readonly(
          "record", [](Of one) { return py::dict(to_python(training_json(one.outcome))); },
          "Everything, as --json writes it (docs/reports.md).")
      .def("trace", &write_trace, py::arg("path"), py::kw_only(), py::arg("ops") = 50'000,
           "Writes the timeline, as Result.trace does.")
      .def(py::pickle(&training_state, &training_from))
      .def("__repr__", [](Of one) {
        return fmt::format("<Training {} with {}: {}, {} exposed, {:.1f} samples/s>",
                           one.outcome.query.model->name, one.outcome.query.exchange.algorithm,
                           format_seconds(one.outcome.iteration_s()),
                           format_seconds(one.outcome.exposed_s()), one.outcome.samples_per_s());
      });
  module.def("train", &train_machine, py::arg("machine"), py::arg("model"),
             py::arg("algorithm") = "ring", py::kw_only(), py::arg("gpus") = py::none(),
             py::arg("relays") = py::none(), py::arg("batch") = py::none(),
             py::arg("gpu_type") = py::none(), py::arg("compute") = py::none(),
             py::arg("fusion") = "64MiB", py::arg("dtype") = "float", py::arg("overlap") = true,
             py::arg("chunk") = py::none(), py::arg("profile") = "kernel", py::arg("links") = "all",
             py::arg("budget") = py::none(),
             "An iteration of a model on a machine (docs/training.md). `compute`: seconds of one "
             "GPU for a `batch`, where the model does not know it; `fusion`: bytes of the buffers "
             "that gradients are collected in; `overlap`: exchange during the backward pass.");
}

}  // namespace espalier
