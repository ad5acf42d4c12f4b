// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/format.h"
#include "topologies/load.h"

/// What tools print of GPUs (rates of pairs, ways between them, peer access, NVLinks) is either a
/// machine that passes its own checks or an Error, alone or about a machine with as many GPUs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const espalier::Topology square = espalier::load_topology("p3.8xlarge");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const espalier::Format* format = espalier::recognise(text);
  if (format == nullptr || format->read_machine == nullptr) return 0;
  const espalier::Topology* const machines[] = {nullptr, &square};
  for (const espalier::Topology* as : machines) {
    try {
      CHECK(espalier::check_topology(format->read_machine({text, "fuzz.txt", as})).empty());
    } catch (const espalier::Error& error) {
      CHECK(!error.diagnostics().empty());
    }
  }
  return 0;
}
