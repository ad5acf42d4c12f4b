// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/file.h"
#include "core/units.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/questions.h"
#include "python/states.h"
#include "scenarios/asked_table.h"
#include "scenarios/chooser.h"
#include "scenarios/nccl_rows.h"
#include "scenarios/records.h"
#include "scenarios/study_workers.h"
#include "scenarios/tuner.h"
#include "scenarios/turns.h"

namespace espalier {

namespace {

/// What is asked, so that it can be asked again for another runtime.
struct TuneQuestion {
  std::shared_ptr<Session> session;
  Query query;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> algorithms;  ///< as named
  bool all = false;
  int jobs = 1;
  double budget_s = 0;  ///< of searches; infinite: they are not limited
};

struct KnownTuning {
  TuneQuestion question;
  Tuning tuning;
  std::vector<Result> choices;  ///< by size
};

std::vector<std::string> candidates_of(const TuneQuestion& question) {
  std::vector<std::string> candidates;
  for (const std::string& word : question.algorithms) {
    if (is_chooser(word)) {
      throw Error(ErrorKind::usage, fmt::format("{} is not an algorithm to choose", word));
    }
    for (const std::string& one : variants_of(word)) {
      if (std::ranges::count(candidates, one) == 0) candidates.push_back(one);
    }
  }
  return candidates;
}

/// Chooses among the candidates, and asks what was chosen.
KnownTuning choose(TuneQuestion question, const std::vector<std::string>& candidates) {
  Session& session = *question.session;
  const TimeLimit limit(question.budget_s);
  Study& study = session.study();
  study.machine(question.query);  // which the workers then know
  KnownTuning made{std::move(question), {}, {}};
  {
    StudyWorkers workers(study, session.simulator(),
                         useful_workers(made.question.jobs, 2 * candidates.size()));
    const TimeLimit of_comparisons(kTimeToCompare * time_left_s());
    const PredictAll predict_all =
        std::isfinite(time_left_s())
            ? predict_in_turns(study, candidates.size(), made.question.sizes.size())
            : predict_with(workers, {});
    made.tuning = tune(study, made.question.query, made.question.sizes, candidates, predict_all);
  }
  Answers answers = ask_all(session, chosen_queries(made.question.query, made.tuning),
                            made.question.jobs, LateQuestions::asked);
  require_answers(answers);
  for (Outcome& outcome : answers.outcomes) {
    made.choices.push_back({std::move(outcome), made.question.session, nullptr});
  }
  return made;
}

KnownTuning tune_machine(const MachineArgument& machine, const std::string& collective,
                         const std::vector<SizeArgument>& sizes,
                         const std::vector<std::string>& algorithms, const GpusArgument& gpus,
                         const GpusArgument& relays, std::int64_t root, const std::string& profile,
                         const std::string& links, bool in_place, bool nccl, int jobs,
                         const std::optional<double>& budget) {
  require_workers(jobs);
  TuneQuestion question{machine->session, {}, {}, {}, false, jobs, seconds_of(budget)};
  question.query = question_of({machine, collective, gpus, relays, root, profile, links, in_place});
  question.query.against_nccl = nccl;
  for (const SizeArgument& size : sizes) question.sizes.push_back(size.bytes);
  if (sizes.empty()) throw Error(ErrorKind::usage, "no size is given");
  return compute(
      [&] {
        NamedAlgorithms named =
            words_of({algorithms.begin(), algorithms.end()}, question.query, *question.session);
        question.algorithms = std::move(named.words);
        question.all = named.all;
        return choose(question, candidates_of(question));
      },
      [&] { machine->session->forget(); });
}

/// NCCL's plugin can choose among what NCCL has only, so that this is another question.
std::string rows_for_nccl(const KnownTuning& made, const std::string& version) {
  const TunerFormat format{true, version};
  TuneQuestion question = made.question;
  if (question.query.profile == "kernel") question.query.profile = "nccl";
  std::vector<std::string> candidates = candidates_of(question);
  keep_nccl(question.session->study(), question.query, question.all, format, candidates);
  const KnownTuning again = choose(question, candidates);
  std::vector<Outcome> outcomes;
  for (const Result& choice : again.choices) outcomes.push_back(choice.outcome);
  return choices_csv(outcomes, question.session->study().machine(question.query), format);
}

void export_tuning(const KnownTuning& made, const PathArgument& file, const std::string& version) {
  const std::string& path = file.text;
  const std::string ending = std::filesystem::path(path).extension().string();
  const bool is_yaml = ending == ".yaml" || ending == ".yml";
  if (!is_yaml && ending != ".conf" && ending != ".csv") {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} does not say in which format choices are to be written", quote(path)),
        ".yaml for --algorithm tuned:FILE, .conf or .csv for NCCL's tuner plugin");
  }
  compute(
      [&] {
        write_file(path, is_yaml ? print_tuning(made.tuning.table) : rows_for_nccl(made, version));
      },
      [&] { made.question.session->forget(); });
}

py::tuple tuning_state(const KnownTuning& one) {
  const TuneQuestion& asked = one.question;
  return py::make_tuple(asked.session, state_of(asked.query), asked.sizes, asked.algorithms,
                        asked.all, asked.jobs, asked.budget_s, packed(record_of(one.tuning.table)),
                        one.choices);
}

/// With what Python shows of the choices.
KnownTuning tuning_from(const py::tuple& state) {
  KnownTuning one;
  one.question = {state[0].cast<std::shared_ptr<Session>>(),
                  query_from(state[1]),
                  state[2].cast<std::vector<std::int64_t>>(),
                  state[3].cast<std::vector<std::string>>(),
                  state[4].cast<bool>(),
                  state[5].cast<int>(),
                  state[6].cast<double>()};
  read_record(unpacked(state[7]), one.tuning.table);
  one.choices = state[8].cast<std::vector<Result>>();
  return one;
}

py::list rows_of(const KnownTuning& made) {
  py::list rows;
  for (const TuningRow& row : made.tuning.table.rows) {
    py::dict one;
    one["up_to"] = row.up_to_bytes;
    one["algorithm"] = row.algorithm;
    one["chunk"] = row.chunk_bytes;
    one["time"] = row.time_s;
    rows.append(one);
  }
  return rows;
}

}  // namespace

void bind_tune(py::module_& module) {
  py::class_<KnownTuning>(module, "Tuning", "The fastest algorithm for every message size.")
      .def_property_readonly("rows", rows_of,
                             "Which algorithm to use for messages of up to so many bytes.")
      .def_readonly("choices", &KnownTuning::choices,
                    "What the choice takes, for every size asked.")
      .def(
          "export", &export_tuning, py::arg("path"), py::kw_only(),
          py::arg("nccl_version") = std::string(kNewestTuner),
          "Writes the choices: as .yaml for --algorithm tuned:FILE, or as .conf or .csv for NCCL's "
          "example tuner plugin; the latter are chosen anew, among what that version of NCCL has.")
      .def(py::pickle(&tuning_state, &tuning_from))
      .def("__repr__", [](const KnownTuning& one) {
        return fmt::format("<Tuning {} on {}: {}>", to_string(one.question.query.collective),
                           one.question.session->machine(),
                           counted(one.tuning.table.rows.size(), "row"));
      });
  module.def("_tune", &tune_machine, py::arg("machine"), py::arg("collective"), py::arg("sizes"),
             py::arg("algorithms"), py::kw_only(), py::arg("gpus"), py::arg("relays"),
             py::arg("root"), py::arg("profile"), py::arg("links"), py::arg("in_place"),
             py::arg("nccl"), py::arg("jobs"), py::arg("budget"));
}

}  // namespace espalier
