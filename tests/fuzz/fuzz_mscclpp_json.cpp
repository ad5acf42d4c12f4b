// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/format.h"
#include "ir/verify.h"

/// A plan of MSCCL++ is either an Error with a place in it, or judged; a program that comes out of
/// it is right.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const espalier::Format* format = espalier::recognise(text);
  if (format == nullptr || format->name != "mscclpp-json") return 0;
  try {
    const espalier::ForeignProgram foreign = format->read_program({text, "fuzz.json"});
    CHECK(!foreign.facts.empty());
    CHECK(foreign.has_program == !foreign.program.ops.empty());
    if (foreign.has_program) CHECK(espalier::verify(foreign.program).ok());
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
