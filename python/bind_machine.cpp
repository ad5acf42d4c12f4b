// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>

#include "python/bindings.h"
#include "python/computing.h"
#include "python/values.h"
#include "topologies/load.h"

namespace espalier {

namespace py = pybind11;

KnownMachine::KnownMachine(const std::string& spec)
    : session(std::make_shared<Session>(spec)),
      topology(session->study().topology(session->question())) {}

namespace {

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

void bind_machine(py::module_& module) {
  using Of = const KnownMachine&;
  py::class_<KnownMachine>(
      module, "Machine",
      "A machine: a name of the catalogue with what-ifs (\"dgx1-v100:without=gpu0-gpu3\"), a "
      "generic "
      "one (\"ring:n=16,gbps=50\"), or a file with YAML, a topology that NCCL wrote, or a table of "
      "nvidia-smi or amd-smi, as --topology takes them (docs/topologies.md).")
      .def(py::init([](const PathArgument& spec) {
             return compute([&] { return std::make_unique<KnownMachine>(spec.text); }, [] {});
           }),
           py::arg("spec"))
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
