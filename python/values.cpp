// SPDX-License-Identifier: Apache-2.0
#include "python/values.h"

#include <fmt/format.h>

#include "core/units.h"

namespace espalier {

namespace {

[[noreturn]] void refuse(const py::handle& given, const std::string& what,
                         const std::string& right) {
  const auto text = py::repr(given).cast<std::string>();
  throw Error(ErrorKind::usage, fmt::format("{} is not {}", printable(text), what), right);
}

/// Where something of another type stands.
[[noreturn]] void refuse_type(const py::handle& given, const std::string& what,
                              const std::string& right) {
  const auto text = py::repr(given).cast<std::string>();
  throw py::type_error(fmt::format("{} is not {}: {}", printable(text), what, right));
}

bool is_number(const py::handle& source) {
  return PyIndex_Check(source.ptr()) != 0 && !PyBool_Check(source.ptr());
}

/// Of what `is_number`; those that are too large stay so.
std::int64_t number_of(const py::handle& source) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(source.ptr()));
  if (!index) throw py::error_already_set();
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  return overflow == 0 ? number : overflow * std::numeric_limits<std::int64_t>::max();
}

std::int64_t message_size_of(const py::handle& source, const char* right) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // as parse_bytes has it
  if (is_number(source)) {
    const std::int64_t bytes = number_of(source);
    if (bytes >= 0 && bytes <= kMostBytes) return bytes;
  } else if (const auto bytes = parse_bytes(source.cast<std::string>())) {
    return *bytes;
  }
  refuse(source, "a size", right);
}

}  // namespace

std::optional<std::string> path_of(py::handle given) {
  const auto path = py::reinterpret_steal<py::object>(PyOS_FSPath(given.ptr()));
  if (path && py::isinstance<py::str>(path)) return path.cast<std::string>();
  PyErr_Clear();
  return std::nullopt;
}

py::str text_of(const std::string& bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

py::object to_python(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: {
      py::dict made;
      for (const auto& [key, value] : json.items()) made[py::str(key)] = to_python(value);
      return made;
    }
    case Json::value_t::array: {
      py::list made;
      for (const Json& value : json) made.append(to_python(value));
      return made;
    }
    case Json::value_t::string:
      return text_of(json.get_ref<const std::string&>());
    case Json::value_t::boolean:
      return py::bool_(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return py::int_(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return py::float_(json.get<double>());
    default:
      return py::none();
  }
}

namespace {

/// Whether the frame runs code of this package, as that of Algorithm.build.
bool is_ours(const py::object& frame) {
  const py::object name = frame.attr("f_globals").attr("get")("__name__", "");
  return py::isinstance<py::str>(name) && name.cast<std::string>().starts_with("espalier.");
}

}  // namespace

Location calling_line() {
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  if (!frame) return {};
  while (!frame.is_none() && is_ours(frame)) frame = frame.attr("f_back");
  if (frame.is_none()) return {};
  return {frame.attr("f_code").attr("co_filename").cast<std::string>(),
          frame.attr("f_lineno").cast<int>(), 0};
}

void refuse_here(const std::string& what, const std::string& right) {
  throw Error(ErrorKind::usage, {{"", what, right, calling_line()}});
}

Collective collective_named(const std::string& name) {
  if (const auto known = parse_collective(name)) return *known;
  std::vector<std::string> names;
  for (const CollectiveInfo& one : all_collectives()) names.emplace_back(one.name);
  throw Error(ErrorKind::usage, "unknown collective " + quote(name),
              did_you_mean(name, names, collective_synonyms()));
}

DataType data_type_named(const std::string& name) {
  if (name == "float16") return DataType::float16;
  if (name == "float32") return DataType::float32;
  if (name == "float64") return DataType::float64;
  return value_named("type", name, all_data_types(), data_type_synonyms());
}

}  // namespace espalier

namespace pybind11::detail {

using espalier::number_of;

bool type_caster<espalier::PathArgument>::load(handle source, bool) {
  auto path = espalier::path_of(source);
  if (!path) espalier::refuse_type(source, "a name or a path", "text, or a path of pathlib");
  value.text = std::move(*path);
  return true;
}

bool type_caster<espalier::SizeArgument>::load(handle source, bool) {
  static constexpr const char* kRight = "a number of bytes, or text such as \"64KiB\"";
  if (!espalier::is_number(source) && !isinstance<str>(source)) {
    espalier::refuse_type(source, "a size", kRight);
  }
  value.bytes = espalier::message_size_of(source, kRight);
  return true;
}

bool type_caster<espalier::ChunkArgument>::load(handle source, bool) {
  if (source.is_none()) return true;
  const bool is_text = isinstance<str>(source);
  if (is_text && source.cast<std::string>() == "auto") return true;
  static constexpr const char* kRight = "auto, 0 for whole messages, or a size such as \"4MiB\"";
  if (!espalier::is_number(source) && !is_text) espalier::refuse_type(source, "a size", kRight);
  value.bytes = espalier::message_size_of(source, kRight);
  return true;
}

bool type_caster<espalier::GpusArgument>::load(handle source, bool) {
  static constexpr const char* kRight = "None for all, \"0-3,6\", or a list of numbers";
  if (source.is_none()) return true;
  if (isinstance<str>(source)) {
    const auto text = source.cast<std::string>();
    if (text == "all") return true;
    auto numbers = espalier::parse_int_list(text);
    if (!numbers || numbers->empty()) espalier::refuse(source, "a set of GPUs", kRight);
    value.numbers = std::move(*numbers);
    return true;
  }
  if (PyIter_Check(source.ptr()) == 0 && !hasattr(source, "__iter__")) {
    espalier::refuse_type(source, "a set of GPUs", kRight);
  }
  for (const handle number : reinterpret_borrow<iterable>(source)) {
    if (!espalier::is_number(number)) espalier::refuse_type(number, "the number of a GPU", kRight);
    const std::int64_t gpu = number_of(number);
    if (gpu < 0 || gpu > std::numeric_limits<int>::max()) {
      espalier::refuse(source, "a set of GPUs", kRight);
    }
    value.numbers.push_back(static_cast<int>(gpu));
  }
  if (value.numbers.empty()) espalier::refuse(source, "a set of GPUs", kRight);
  return true;
}

// Only algorithms have blocks, and their authors are told the line.
bool type_caster<espalier::BlocksArgument>::load(handle source, bool) {
  if (espalier::is_number(source)) {
    value.range = {number_of(source), 1};
    return true;
  }
  const std::string given = espalier::printable(repr(source).cast<std::string>());
  if (PyRange_Check(source.ptr()) == 0) {
    espalier::refuse_here(given + " is not a block",
                          "a number, or range(first, last + 1) for blocks that follow each other");
  }
  const std::int64_t first = number_of(source.attr("start"));
  if (number_of(source.attr("step")) != 1) {
    espalier::refuse_here(given + " is not a range of blocks",
                          "blocks that follow each other, step 1");
  }
  value.range = {first, number_of(source.attr("stop")) - first};
  return true;
}

}  // namespace pybind11::detail
