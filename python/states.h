// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "core/error.h"
#include "python/bindings.h"
#include "report/json.h"

// How answers and programs are pickled: as tuples of what Python knows, every figure to the last
// bit. Names may have bytes that are not UTF-8, so that texts go as bytes.

namespace espalier {

pybind11::bytes packed(const Json& record);
Json unpacked(pybind11::handle state);

pybind11::tuple state_of(const Location& where);
Location location_from(pybind11::handle state);

/// All of a question but files and devices of the computer that it was asked on.
pybind11::tuple state_of(const Query& query);
Query query_from(pybind11::handle state);

/// With the session and the program that it was asked with. Its timeline is found again by whoever
/// wants it.
pybind11::tuple state_of(const Result& result);
Result result_from(pybind11::handle state);

}  // namespace espalier
