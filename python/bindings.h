// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "python/session.h"
#include "scenarios/planned.h"
#include "scenarios/training_study.h"

// What the module is made of, one function for each file.

namespace espalier {

void bind_errors(pybind11::module_& module);
void bind_session(pybind11::module_& module);
void bind_machine(pybind11::module_& module);
void bind_sketch(pybind11::module_& module);
void bind_results(pybind11::module_& module);
void bind_program(pybind11::module_& module);
void bind_sweep(pybind11::module_& module);
void bind_plan(pybind11::module_& module);
void bind_tune(pybind11::module_& module);
void bind_train(pybind11::module_& module);
void bind_fit(pybind11::module_& module);
void bind_compare(pybind11::module_& module);
void bind_page(pybind11::module_& module);

/// A machine as Python has it.
struct KnownMachine {
  /// Throws what opening it throws.
  explicit KnownMachine(std::shared_ptr<Session> known);

  std::shared_ptr<Session> session;
  std::shared_ptr<const Topology> topology;
};

/// A machine, or what names one.
struct MachineArgument {
  std::shared_ptr<const KnownMachine> machine;

  const KnownMachine* operator->() const { return machine.get(); }
};

/// An answer as Python has it, with what it takes to ask for its timeline.
struct Result {
  Outcome outcome;
  std::shared_ptr<Session> session;
  std::shared_ptr<const KnownProgram> program;  ///< null: an algorithm of the catalogue
};

/// A plan as Python has it, with the study whose machine it refers to.
struct KnownPlan {
  std::shared_ptr<const Planned> planned;
  std::shared_ptr<const void> study;
  std::shared_ptr<Session> session;
};

/// An iteration of training as Python has it, without its program and timeline.
struct KnownTraining {
  TrainingOutcome outcome;
  std::shared_ptr<Session> session;
  std::string model_file;
  std::string model_text;
};
/// With both.
TrainingOutcome asked_again(const KnownTraining& one);

/// The program that follows a plan.
std::shared_ptr<KnownProgram> program_of(const Planned& planned);

}  // namespace espalier

namespace pybind11::detail {

template <>
struct type_caster<espalier::MachineArgument> {
  PYBIND11_TYPE_CASTER(espalier::MachineArgument, const_name("Machine | str | os.PathLike[str]"));
  bool load(handle source, bool);
};

}  // namespace pybind11::detail
