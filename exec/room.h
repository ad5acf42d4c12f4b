// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace espalier {

/// What a run needs of one memory, and what it may take. Real numbers: a message may be larger than
/// any computer.
struct MemoryNeed {
  struct Part {
    std::string name;  ///< "inputs"
    double bytes = 0;
    bool grows = true;  ///< in proportion to the message
  };
  std::string owner;  ///< "this computer", "GPU 0"
  std::vector<Part> parts = {};
  double available = 0;  ///< bytes that the run may take

  /// Adds to the part of that name.
  void add(const std::string& name, double bytes, bool grows);
  /// Adds the input, output and scratch buffer of a place; `allocated` says how many bytes an
  /// allocation for a buffer of so many takes, its guards included.
  void add_buffers(const std::array<double, 3>& sizes,
                   const std::function<double(double)>& allocated);
  double bytes() const;
};

/// Nothing when everything fits. The error says what is short of memory, what needs it, and which
/// size would fit everywhere.
std::optional<OutOfMemory> find_shortage(std::span<const MemoryNeed> needs,
                                         std::int64_t size_bytes);

/// "1.5 GiB".
std::string format_memory(double bytes);

}  // namespace espalier
