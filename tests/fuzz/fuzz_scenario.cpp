// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "scenarios/scenario.h"

/// A scenario file is either a list of queries, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const espalier::Scenario scenario =
        espalier::parse_scenario({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    CHECK(!scenario.blocks.empty());
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
