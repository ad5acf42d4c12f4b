// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/format.h"
#include "ir/verify.h"

/// A graph file of NCCL is either a right program whose rings can be written again, or has reasons
/// why it is none, or is an Error with a place in it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const espalier::Format* format = espalier::recognise(text);
  if (format == nullptr || format->name != "nccl-graph") return 0;
  try {
    const espalier::ForeignProgram foreign = format->read_program({text, "fuzz.xml"});
    CHECK(foreign.has_program == foreign.verification.ok());
    if (!foreign.has_program) return 0;
    CHECK(foreign.program.lines.size() == foreign.program.ops.size());
    const std::string again = format->write_program(foreign.program, {}).text;
    const espalier::ForeignProgram read = format->read_program({again, "again.xml"});
    CHECK(read.has_program && format->write_program(read.program, {}).text == again);
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
