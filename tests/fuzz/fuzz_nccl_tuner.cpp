// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "formats/nccl_tuner.h"

/// A file of NCCL's tuner plugin is rows, or an Error with a line; rows that may be written are
/// the same when they are read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const espalier::TunerFile file = espalier::parse_tuner_csv(text, "fuzz.conf");
    const std::string written = espalier::tuner_csv(file.rows, "2.28");
    CHECK(espalier::parse_tuner_csv(written, "again.conf").rows.size() == file.rows.size());
  } catch (const espalier::Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
