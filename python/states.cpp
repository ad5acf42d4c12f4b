// SPDX-License-Identifier: Apache-2.0
#include "python/states.h"

#include <pybind11/stl.h>

#include <utility>

#include "python/values.h"
#include "scenarios/records.h"

namespace espalier {

py::bytes packed(const Json& record) { return py::bytes(one_line(record)); }
Json unpacked(py::handle state) { return Json::parse(state.cast<std::string>()); }

py::tuple state_of(const Location& where) {
  return py::make_tuple(py::bytes(where.file), where.line, where.column);
}

Location location_from(py::handle state) {
  const auto parts = state.cast<py::tuple>();
  return {parts[0].cast<std::string>(), parts[1].cast<int>(), parts[2].cast<int>()};
}

py::tuple state_of(const Query& query) {
  const RunOptions& run = query.run;
  return py::make_tuple(packed(record_of(query)), run.size_bytes, run.iterations, run.warmup,
                        run.check, run.timeout_s);
}

Query query_from(py::handle state) {
  const auto parts = state.cast<py::tuple>();
  Query query;
  read_record(unpacked(parts[0]), query);
  query.run.size_bytes = parts[1].cast<std::int64_t>();
  query.run.iterations = parts[2].cast<int>();
  query.run.warmup = parts[3].cast<int>();
  query.run.check = parts[4].cast<bool>();
  query.run.timeout_s = parts[5].cast<double>();
  return query;
}

py::tuple state_of(const Result& result) {
  // Python has programs that may be changed, which none of them is.
  return py::make_tuple(state_of(result.outcome.query), packed(record_of(result.outcome)),
                        result.session, std::const_pointer_cast<KnownProgram>(result.program));
}

Result result_from(py::handle state) {
  const auto parts = state.cast<py::tuple>();
  Result result{{}, parts[2].cast<std::shared_ptr<Session>>(), nullptr};
  if (!parts[3].is_none()) result.program = parts[3].cast<std::shared_ptr<KnownProgram>>();
  result.outcome.query = query_from(parts[0]);
  read_record(unpacked(parts[1]), result.outcome);
  return result;
}

}  // namespace espalier
