// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "topologies/load.h"

/// A topology file is either a machine that passes its own checks, or an Error with a place in it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const espalier::Topology topology =
        espalier::parse_topology({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    CHECK(espalier::check_topology(topology).empty());
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
