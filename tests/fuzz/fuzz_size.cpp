// SPDX-License-Identifier: Apache-2.0
// The small parsers of the command line: sizes, lists, machines and algorithms with parameters.
#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/algorithm.h"
#include "core/check.h"
#include "core/error.h"
#include "core/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = espalier::parse_bytes(text)) {
    CHECK(*bytes >= 0);
    CHECK(*bytes <= std::int64_t{1} << 50);
  }
  if (const auto numbers = espalier::parse_int_list(text)) {
    for (const int number : *numbers) CHECK(number >= 0);
  }
  try {
    for (const std::int64_t bytes : espalier::parse_byte_list(text)) CHECK(bytes >= 0);
  } catch (const espalier::Error& error) {
    CHECK(error.kind() == espalier::ErrorKind::usage);
  }
  try {
    CHECK(espalier::parse_algorithm(text).algorithm != nullptr);
  } catch (const espalier::Error& error) {
    CHECK(error.kind() == espalier::ErrorKind::usage);
  }
  return 0;
}
