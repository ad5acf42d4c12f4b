// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>

#include "python/bindings.h"
#include "python/computing.h"
#include "python/values.h"
#include "topologies/load.h"

namespace espalier {

namespace py = pybind11;

KnownMachine::KnownMachine(std::shared_ptr<Session> known)
    : session(std::move(known)), topology(session->study().topology(session->question())) {}

namespace {

std::shared_ptr<KnownMachine> machine_of(MachineOrigin origin) {
  if (origin.name.empty()) {
    throw Error(ErrorKind::usage, "no machine is named",
                "one of espalier.machines(), a generic one such as \"ring:n=8\", or a file");
  }
  return compute(
      [&] { return std::make_shared<KnownMachine>(std::make_shared<Session>(std::move(origin))); },
      [] {});
}

std::vector<std::string> gpu_names(const KnownMachine& machine) {
  std::vector<std::string> names;
  for (const NodeId gpu : machine.topology->gpus()) {
    names.push_back(machine.topology->node(gpu).name);
  }
  return names;
}

std::vector<std::string> built_in_machines() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) names.push_back(entry.name);
  return names;
}

}  // namespace

void bind_session(py::module_& module) {
  // What copies of machines, results and plans have in common.
  py::class_<Session, std::shared_ptr<Session>>(module, "_Session", "What is known of a machine.")
      .def(py::pickle(
          [](const Session& one) {
            const MachineOrigin& origin = one.origin();
            return py::make_tuple(py::bytes(origin.name), py::bytes(origin.spec),
                                  py::bytes(origin.yaml));
          },
          [](const py::tuple& state) {
            MachineOrigin origin{state[0].cast<std::string>(), state[1].cast<std::string>(),
                                 state[2].cast<std::string>()};
            return compute([&] { return std::make_shared<Session>(std::move(origin)); }, [] {});
          }));
}

void bind_machine(py::module_& module) {
  using Of = const KnownMachine&;
  py::class_<KnownMachine, std::shared_ptr<KnownMachine>>(
      module, "Machine",
      "A machine: a name of the catalogue with what-ifs (\"dgx1-v100:without=gpu0-gpu3\"), a "
      "generic "
      "one (\"ring:n=16,gbps=50\"), or a file with YAML, a topology that NCCL wrote, or a table of "
      "nvidia-smi or amd-smi, as --topology takes them (docs/topologies.md).")
      .def(py::init([](const PathArgument& spec) { return machine_of(origin_of(spec.text)); }),
           py::arg("spec"))
      .def(py::pickle([](Of one) { return py::make_tuple(one.session); },
                      [](const py::tuple& state) {
                        return std::make_shared<KnownMachine>(
                            state[0].cast<std::shared_ptr<Session>>());
                      }))
      .def_property_readonly(
          "name", [](Of one) { return one.topology->name; }, "As it was asked for.")
      .def_property_readonly(
          "title", [](Of one) { return one.topology->title; }, "What it is, in one line.")
      .def_property_readonly("gpus", gpu_names, "Names of its GPUs, in the order of their numbers.")
      .def_property_readonly(
          "hosts", [](Of one) { return one.topology->hosts; }, "How many computers it is.")
      .def_property_readonly(
          "notes", [](Of one) { return one.topology->notes; },
          "What had to be guessed or left out of a file of another program.")
      .def_property_readonly(
          "sources", [](Of one) { return one.topology->sources; }, "Where its figures come from.")
      .def("__repr__", [](Of one) {
        return "<Machine " + one.topology->name + ": " +
               counted(one.topology->gpus().size(), "GPU") + ">";
      });
  module.def("machines", built_in_machines, "Names of the built-in machines.");
}

}  // namespace espalier

namespace pybind11::detail {

bool type_caster<espalier::MachineArgument>::load(handle source, bool) {
  if (isinstance<espalier::KnownMachine>(source)) {
    value.machine = source.cast<std::shared_ptr<espalier::KnownMachine>>();
    return true;
  }
  const auto word = espalier::path_of(source);
  if (!word) {
    throw type_error(espalier::printable(repr(source).cast<std::string>()) +
                     " is not a machine: a Machine, its name, or the path of its file");
  }
  value.machine = espalier::machine_of(espalier::origin_of(*word));
  return true;
}

}  // namespace pybind11::detail
