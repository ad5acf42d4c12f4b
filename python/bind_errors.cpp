// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "core/error.h"
#include "python/bindings.h"

namespace espalier {

namespace py = pybind11;

namespace {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::input:
      return "input";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::runtime:
      return "runtime";
  }
  return "";
}

/// `espalier.Error`, for as long as the interpreter lives.
py::handle error_type;

void raise(const Error& error) {
  const py::object raised = error_type(error.what());
  raised.attr("kind") = name_of(error.kind());
  raised.attr("diagnostics") = error.diagnostics();
  PyErr_SetObject(error_type.ptr(), raised.ptr());
}

}  // namespace

void bind_errors(py::module_& module) {
  py::class_<Diagnostic>(module, "Diagnostic", "One problem in a plain sentence.")
      .def(py::init([](std::string rule, std::string message, std::string suggestion,
                       std::string file, int line, int column) {
             return Diagnostic{std::move(rule),
                               std::move(message),
                               std::move(suggestion),
                               {std::move(file), line, column}};
           }),
           py::arg("rule"), py::arg("message"), py::arg("suggestion") = "", py::arg("file") = "",
           py::arg("line") = 0, py::arg("column") = 0)
      .def_readonly("rule", &Diagnostic::rule,
                    "Number of the rule in docs/ir.md (\"R7\"), or empty.")
      .def_readonly("message", &Diagnostic::message, "What is wrong.")
      .def_readonly("suggestion", &Diagnostic::suggestion, "What would be right, or empty.")
      .def_property_readonly(
          "file", [](const Diagnostic& one) { return one.where.file; }, "Empty if not known.")
      .def_property_readonly(
          "line", [](const Diagnostic& one) { return one.where.line; }, "From 1; 0: not known.")
      .def_property_readonly(
          "column", [](const Diagnostic& one) { return one.where.column; }, "From 1; 0: not known.")
      .def("__str__", [](const Diagnostic& one) { return render(one); })
      .def("__repr__", [](const Diagnostic& one) { return "<Diagnostic " + render(one) + ">"; });

  py::dict members;
  members["__doc__"] =
      "What was asked for is wrong, or not possible here. `kind` is \"usage\" or \"input\" for "
      "what "
      "is wrong, \"unsupported\" for what is not possible (no route, no memory) and \"runtime\" "
      "for "
      "what went wrong on the way; `diagnostics` are all problems that were found.";
  members["__module__"] = "espalier";
  members["kind"] = "usage";
  members["diagnostics"] = py::tuple();
  error_type = py::reinterpret_steal<py::object>(
                   PyErr_NewException("espalier.Error", PyExc_Exception, members.ptr()))
                   .release();
  module.attr("Error") = error_type;
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
  module.def(
      "_raise",
      [](const std::vector<Diagnostic>& diagnostics) {
        throw Error(ErrorKind::input, diagnostics);
      },
      py::arg("diagnostics"));
}

}  // namespace espalier
