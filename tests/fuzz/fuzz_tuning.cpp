// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "scenarios/tuning_table.h"

/// A tuning table is either right, and then read as it is written, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  try {
    const TuningTable table =
        parse_tuning({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    CHECK(!table.rows.empty());
    const std::string text = print_tuning(table);
    CHECK(print_tuning(parse_tuning(text, "printed.yaml")) == text);
  } catch (const Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
