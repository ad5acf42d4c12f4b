// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/format.h"
#include "ir/verify.h"

/// An algorithm of MSCCL is an Error with a place in it, a wrong program with reasons, or a program
/// that is right, too, when it is read; and what can be written of that is read back by its writer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const espalier::Format* format = espalier::recognise(text);
  if (format == nullptr || format->name != "msccl-xml") return 0;
  try {
    const espalier::ForeignProgram foreign = format->read_program({text, "fuzz.xml"});
    if (!foreign.has_program) return 0;
    CHECK(foreign.verification.ok());
    CHECK(espalier::verify(foreign.program).ok());
    format->write_program(foreign.program, {});
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
