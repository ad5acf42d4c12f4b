// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace espalier {

// `amd-smi topology` prints the same figures as tables, as CSV (--csv) and as JSON (--json).
// Private to the room.

/// What a table of it is about.
enum class AmdSmiTopic : std::uint8_t { type, weight, hops, bandwidth, access };

/// Its figures, whichever form they had.
struct AmdSmiTables {
  struct Gpu {
    std::string name;  ///< "GPU0"
    int line = 0;      ///< of its row, or object
  };
  using Words = std::vector<std::vector<std::string>>;
  std::vector<Gpu> gpus;
  std::map<AmdSmiTopic, Words>
      tables;                      ///< a word for every pair of GPUs; empty where there is none
  std::vector<std::string> notes;  ///< what was left out
};

/// Whether a text looks like one of the forms.
bool has_amd_smi_tables(std::string_view text);

/// Throws Error{input} with everything that is wrong, line by line.
AmdSmiTables read_amd_smi_tables(std::string_view text, const std::string& file);

}  // namespace espalier
