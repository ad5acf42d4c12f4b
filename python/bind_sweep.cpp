// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "core/units.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/questions.h"
#include "report/csv.h"
#include "report/fields.h"
#include "report/objects.h"

namespace espalier {

namespace {

/// What ran, and what was skipped, which becomes records.
struct Swept {
  std::vector<Result> results;
  std::vector<Skipped> skipped;
};

py::tuple sweep(const MachineArgument& machine, const std::string& collective,
                const std::vector<SizeArgument>& sizes,
                const std::vector<AlgorithmArgument>& algorithms, const GpusArgument& gpus,
                const GpusArgument& relays, std::int64_t root, const std::string& profile,
                ChunkArgument chunk, const std::string& links, bool in_place, bool nccl, int jobs,
                const std::optional<double>& budget) {
  Session& session = *machine->session;
  Query question = question_of({machine, collective, gpus, relays, root, profile, links, in_place});
  question.chunk_bytes = chunk.bytes;
  question.against_nccl = nccl;
  if (sizes.empty()) throw Error(ErrorKind::usage, "no size is given");
  const double budget_s = seconds_of(budget);
  const Swept swept = compute(
      [&] {
        const TimeLimit limit(budget_s);
        const NamedAlgorithms named = words_of(algorithms, question, session);
        std::vector<Query> queries;
        for (const SizeArgument& size : sizes) {
          for (const std::string& word : named.words) {
            Query& query = queries.emplace_back(question);
            query.size_bytes = size.bytes;
            query.algorithm = word;
          }
        }
        Answers answers = ask_all(session, queries, jobs, LateQuestions::skipped);
        label_programs(algorithms, session, question, answers.skipped);
        require_answers(answers);
        Swept made{{}, std::move(answers.skipped)};
        for (Outcome& outcome : answers.outcomes) {
          auto program = asked_program(algorithms, session, outcome);
          if (program) outcome.query.algorithm = program->label();
          made.results.push_back({std::move(outcome), machine->session, std::move(program)});
        }
        return made;
      },
      [&] { session.forget(); });
  py::list skipped;
  for (const Skipped& one : swept.skipped) skipped.append(to_python(skipped_json(one)));
  return py::make_tuple(swept.results, skipped);
}

/// The columns of CSV that these results have, as lists.
py::dict columns(const std::vector<Result>& results) {
  py::dict made;
  for (const std::string_view name : table_columns()) {
    const ReportField<Outcome>* const field = find_field(outcome_fields(), name);
    if (field == nullptr) continue;
    py::list column;
    for (const Result& result : results) {
      const Json value = field->value(result.outcome);
      // As cells of CSV have lists: "0-5".
      column.append(value.is_array() ? text_of(csv_text(value)) : to_python(value));
    }
    made[py::str(std::string(name))] = column;
  }
  return made;
}

std::vector<std::int64_t> sizes(SizeArgument first, const std::optional<SizeArgument>& last) {
  if (!last) return {first.bytes};
  if (first.bytes < 1 || last->bytes < first.bytes) {
    throw Error(ErrorKind::usage, "sizes from a first one up to a larger one");
  }
  std::vector<std::int64_t> all;
  for (std::int64_t size = first.bytes; size <= last->bytes; size *= 2) all.push_back(size);
  return all;
}

}  // namespace

void bind_sweep(py::module_& module) {
  module.def("_sweep", &sweep, py::arg("machine"), py::arg("collective"), py::arg("sizes"),
             py::arg("algorithms"), py::kw_only(), py::arg("gpus"), py::arg("relays"),
             py::arg("root"), py::arg("profile"), py::arg("chunk"), py::arg("links"),
             py::arg("in_place"), py::arg("nccl"), py::arg("jobs"), py::arg("budget"));
  module.def("_columns", &columns, py::arg("results"));
  module.def("sizes", &sizes, py::arg("first"), py::arg("last") = py::none(),
             "Message sizes in bytes: powers of two times the first, up to the last.");
}

}  // namespace espalier
