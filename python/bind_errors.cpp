// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>

#include "core/error.h"
#include "python/bindings.h"
#include "python/hints.h"
#include "python/values.h"

namespace espalier {

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

/// As who calls from Python reads it.
Diagnostic in_python(Diagnostic diagnostic) {
  diagnostic.suggestion = hint_in_python(diagnostic.suggestion);
  return diagnostic;
}

/// With every problem, and what kind of error it is.
void raise(const Error& error) {
  std::vector<Diagnostic> said = error.diagnostics();
  std::ranges::transform(said, said.begin(), in_python);
  const py::object raised = error_type(text_of(Error(error.kind(), std::move(said)).what()));
  raised.attr("kind") = name_of(error.kind());
  raised.attr("diagnostics") = error.diagnostics();
  PyErr_SetObject(error_type.ptr(), raised.ptr());
}

void bind_diagnostic(py::module_& module) {
  using Of = const Diagnostic&;
  py::class_<Diagnostic>(module, "Diagnostic", "One problem in a plain sentence.")
      .def_property_readonly(
          "rule", [](Of one) { return text_of(one.rule); },
          "Number of the rule in docs/ir.md (\"R7\"), or empty.")
      .def_property_readonly(
          "message", [](Of one) { return text_of(one.message); }, "What is wrong.")
      .def_property_readonly(
          "suggestion", [](Of one) { return text_of(in_python(one).suggestion); },
          "What would be right, or empty.")
      .def_property_readonly(
          "file", [](Of one) { return text_of(one.where.file); }, "Empty if not known.")
      .def_property_readonly(
          "line", [](Of one) { return one.where.line; }, "From 1; 0: not known.")
      .def_property_readonly(
          "column", [](Of one) { return one.where.column; }, "From 1; 0: not known.")
      .def(py::pickle(
          [](Of one) {
            return py::make_tuple(py::bytes(one.rule), py::bytes(one.message),
                                  py::bytes(one.suggestion), py::bytes(one.where.file),
                                  one.where.line, one.where.column);
          },
          [](const py::tuple& state) {
            return Diagnostic{
                state[0].cast<std::string>(),
                state[1].cast<std::string>(),
                state[2].cast<std::string>(),
                {state[3].cast<std::string>(), state[4].cast<int>(), state[5].cast<int>()}};
          }))
      .def("__str__", [](Of one) { return text_of(render(in_python(one))); })
      .def("__repr__",
           [](Of one) { return text_of("<Diagnostic " + render(in_python(one)) + ">"); });
}

}  // namespace

void bind_errors(py::module_& module) {
  bind_diagnostic(module);
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
  module.def(
      "_refuse",
      [](const std::string& what, const std::string& right) {
        throw Error(ErrorKind::usage, what, right);
      },
      py::arg("what"), py::arg("right"));
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace espalier
