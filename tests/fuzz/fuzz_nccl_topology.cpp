// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/format.h"

/// A topology file of NCCL is either a machine that passes its own checks, or an Error with a place
/// in it. What was read can be written, host by host, and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const espalier::Format* format = espalier::recognise(text);
  if (format == nullptr || format->read_machine == nullptr) return 0;
  try {
    const espalier::Topology machine = format->read_machine({text, "fuzz.xml"});
    CHECK(espalier::check_topology(machine).empty());
    if (format->write_machine == nullptr) return 0;
    const std::string written = format->write_machine(machine).text;
    CHECK(format->read_machine({written, "again.xml"}).gpus().size() <= machine.gpus().size());
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
