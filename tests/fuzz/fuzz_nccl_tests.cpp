// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/format.h"
#include "formats/measured_tables.h"

/// Output of nccl-tests is either tables that can be described, with rows, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const espalier::Format* format = espalier::recognise(text);
  if (format == nullptr || format->read_tables == nullptr) return 0;
  try {
    const espalier::MeasuredTables read = format->read_tables({text, "fuzz.txt"});
    CHECK(!read.tables.empty());
    CHECK(!espalier::describe(read).empty());
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
