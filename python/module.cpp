// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "python/bindings.h"

PYBIND11_MODULE(_espalier, module) {
  module.doc() = "The compiled part of the package espalier, which is documented there.";
  module.attr("__version__") = ESPALIER_VERSION;
  espalier::bind_errors(module);
  espalier::bind_session(module);
  espalier::bind_machine(module);
  espalier::bind_results(module);
  espalier::bind_program(module);
  espalier::bind_sketch(module);
  espalier::bind_sweep(module);
  espalier::bind_plan(module);
  espalier::bind_tune(module);
  espalier::bind_train(module);
  espalier::bind_fit(module);
  espalier::bind_compare(module);
  espalier::bind_page(module);
}
