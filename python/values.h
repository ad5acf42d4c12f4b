// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/words.h"
#include "ir/collective.h"
#include "ir/data.h"
#include "python/sketch.h"
#include "report/json.h"

// What people write in Python for what the library has types of its own for. Signatures and stubs
// call these types what people may write.

namespace espalier {

namespace py = pybind11;

/// The name of a file, as text or as pathlib has it.
struct PathArgument {
  std::string text;
};
/// 65536, "64KiB".
struct SizeArgument {
  std::int64_t bytes = 0;
};
/// "auto" or None, or a size; 0: do not cut.
struct ChunkArgument {
  std::optional<std::int64_t> bytes;
};
/// "0-5", "0,2,4", [0, 2, 4], range(6), or None for all.
struct GpusArgument {
  std::vector<int> numbers;
};
/// 3, or range(2, 4) for several that follow each other.
struct BlocksArgument {
  BlockRange range;
};

/// What names a file, or nothing where something else is given.
std::optional<std::string> path_of(py::handle given);

/// Bytes that are not UTF-8, of a file that somebody quotes, become U+FFFD.
py::str text_of(const std::string& bytes);

/// Lists, dicts, strings and numbers.
py::object to_python(const Json& json);

/// Where the Python code stands that called into this package.
Location calling_line();
/// What an author of an algorithm got wrong, on that line.
[[noreturn]] void refuse_here(const std::string& what, const std::string& right);

/// The one of `all` that to_string calls `name`. Throws Error{usage} with did-you-mean where there
/// is none; `what`: "link scope".
template <class All>
typename All::value_type value_named(const std::string& what, const std::string& name,
                                     const All& all, const Synonyms& synonyms = {}) {
  std::vector<std::string> names;
  for (const auto& value : all) {
    names.emplace_back(to_string(value));
    if (names.back() == name) return value;
  }
  throw Error(ErrorKind::usage, "unknown " + what + " " + quote(name),
              did_you_mean(name, names, synonyms));
}

/// Throws Error{usage} likewise, also for what other libraries call it.
Collective collective_named(const std::string& name);
/// Also by the names that numpy has for them. Throws Error{usage} likewise.
DataType data_type_named(const std::string& name);

}  // namespace espalier

namespace pybind11::detail {

template <>
struct type_caster<espalier::PathArgument> {
  PYBIND11_TYPE_CASTER(espalier::PathArgument, const_name("str | os.PathLike[str]"));
  bool load(handle source, bool);
};
template <>
struct type_caster<espalier::SizeArgument> {
  PYBIND11_TYPE_CASTER(espalier::SizeArgument, const_name("SupportsIndex | str"));
  bool load(handle source, bool);
};
template <>
struct type_caster<espalier::ChunkArgument> {
  PYBIND11_TYPE_CASTER(espalier::ChunkArgument, const_name("SupportsIndex | str | None"));
  bool load(handle source, bool);
};
template <>
struct type_caster<espalier::GpusArgument> {
  PYBIND11_TYPE_CASTER(espalier::GpusArgument, const_name("str | Iterable[SupportsIndex] | None"));
  bool load(handle source, bool);
};
template <>
struct type_caster<espalier::BlocksArgument> {
  PYBIND11_TYPE_CASTER(espalier::BlocksArgument, const_name("SupportsIndex | range"));
  bool load(handle source, bool);
};

}  // namespace pybind11::detail
