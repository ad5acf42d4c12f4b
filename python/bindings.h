// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "python/session.h"
#include "scenarios/planned.h"

// What the module is made of, one function for each file.

namespace espalier {

void bind_errors(pybind11::module_& module);
void bind_machine(pybind11::module_& module);
void bind_sketch(pybind11::module_& module);
void bind_results(pybind11::module_& module);
void bind_program(pybind11::module_& module);
void bind_sweep(pybind11::module_& module);
void bind_plan(pybind11::module_& module);
void bind_tune(pybind11::module_& module);
void bind_page(pybind11::module_& module);

/// A machine as Python has it.
struct KnownMachine {
  explicit KnownMachine(const std::string& spec);

  std::shared_ptr<Session> session;
  std::shared_ptr<const Topology> topology;
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

}  // namespace espalier
