// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "algorithms/program_file.h"
#include "core/units.h"
#include "python/bindings.h"
#include "python/computing.h"
#include "python/questions.h"
#include "python/states.h"
#include "report/objects.h"
#include "scenarios/records.h"

namespace espalier {

namespace {

KnownPlan plan_machine(const MachineArgument& machine, const std::string& collective,
                       const std::string& algorithm, const GpusArgument& gpus,
                       const GpusArgument& relays, std::int64_t root, const std::string& profile,
                       const std::string& links, bool in_place,
                       const std::optional<double>& budget) {
  Query query = question_of({machine, collective, gpus, relays, root, profile, links, in_place});
  query.algorithm = algorithm;
  const std::vector<std::string> planners = planning_algorithms(query.collective);
  const std::string name = algorithm.substr(0, algorithm.find(':'));
  if (std::ranges::count(planners, name) == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("{} plans no trees for {}", quote(name), to_string(query.collective)),
                "one of: " + join(planners, ", "));
  }
  const double budget_s = seconds_of(budget);
  return compute(
      [&] {
        const TimeLimit limit(budget_s);
        auto planned = std::make_shared<Planned>(plan_query(machine->session->study(), query));
        return KnownPlan{std::move(planned), machine->session->state(), machine->session};
      },
      [&] { machine->session->forget(); });
}

}  // namespace

std::shared_ptr<KnownProgram> program_of(const Planned& planned) {
  const std::string name =
      fmt::format("{}_{}", planned.query.algorithm, to_string(planned.query.collective));
  return std::make_shared<KnownProgram>(KnownProgram{program_file_of(planned.program, name)});
}

namespace {

std::shared_ptr<KnownProgram> program_of_plan(const KnownPlan& plan) {
  std::shared_ptr<KnownProgram> program = program_of(*plan.planned);
  if (plan.planned->program.vias.empty()) return program;
  Query fabric = plan.planned->query;
  fabric.links = LinkScope::fabric;
  program->within_fabric = {plan.session, std::move(fabric)};
  return program;
}

py::tuple plan_state(const KnownPlan& plan) {
  return py::make_tuple(plan.session, state_of(plan.planned->query),
                        packed(record_of(*plan.planned)));
}

KnownPlan plan_from(const py::tuple& state) {
  auto session = state[0].cast<std::shared_ptr<Session>>();
  Planned planned;
  planned.query = query_from(state[1]);
  read_record(unpacked(state[2]), planned);
  compute([&] { complete_plan(session->study(), planned); }, [] {});
  return {std::make_shared<Planned>(std::move(planned)), session->state(), session};
}

}  // namespace

void bind_plan(py::module_& module) {
  using Of = const KnownPlan&;
  py::class_<KnownPlan>(module, "Plan", "Trees for a machine, and the proof of how good they are.")
      .def_property_readonly(
          "rate", [](Of one) { return one.planned->forest.algbw_gbps; },
          "GB/s of the message; bandwidth only.")
      .def_property_readonly(
          "exact", [](Of one) { return one.planned->forest.exact_algbw; },
          "The rate as a fraction: \"600/7\".")
      .def_property_readonly(
          "fraction", [](Of one) { return one.planned->fraction; }, "Rate divided by the bound.")
      .def_property_readonly(
          "bound", [](Of one) { return one.planned->bound.algbw_gbps; },
          "The rate that no schedule of GPUs beats, in GB/s of the message.")
      .def_property_readonly(
          "certificate", [](Of one) { return one.planned->bound.certificate; },
          "The proof of the bound: a cut, a partition or prices, and their arithmetic.")
      .def_property_readonly(
          "trees", [](Of one) { return py::list(to_python(plan_json(*one.planned).at("trees"))); },
          "What each tree carries, and its edges.")
      .def_property_readonly(
          "record", [](Of one) { return py::dict(to_python(plan_json(*one.planned))); },
          "Everything, as --json writes it (docs/reports.md).")
      .def(
          "program", &program_of_plan,
          "The program that follows the plan. A format whose runtime chooses ways over the machine "
          "by itself is given the plan within the GPU fabric instead, which export() says.")
      .def(py::pickle(&plan_state, &plan_from))
      .def("__repr__", [](Of one) {
        return fmt::format("<Plan {} {}: {} GB/s, {:.1f} % of the bound>",
                           one.planned->query.algorithm, to_string(one.planned->query.collective),
                           format_gbps(one.planned->forest.algbw_gbps),
                           100 * one.planned->fraction);
      });
  module.def("plan", &plan_machine, py::arg("machine"), py::arg("collective") = "allreduce",
             py::kw_only(), py::arg("algorithm") = "optimal", py::arg("gpus") = py::none(),
             py::arg("relays") = py::none(), py::arg("root") = 0, py::arg("profile") = "kernel",
             py::arg("links") = "all", py::arg("in_place") = false, py::arg("budget") = py::none(),
             "The best trees for a machine. `budget`: seconds that the search may take.");
}

}  // namespace espalier
