// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "run/options.h"
#include "run/target.h"

namespace espalier {

/// What processes have to agree on before they run a program together, as hashes.
struct Fingerprint {
  std::uint64_t program = 0;
  std::uint64_t machine = 0;   ///< 0 without a topology
  std::uint64_t question = 0;  ///< size, type, operator, and how often it runs and is checked
  std::uint64_t build = 0;
  std::uint64_t memory = 0;  ///< what buffers are in, and how messages get there
  bool operator==(const Fingerprint&) const = default;
};

/// `memory`: ProcessMemory::name.
Fingerprint fingerprint(const Program& program, const Target& target, const RunOptions& options,
                        std::uint64_t build, std::string_view memory);

/// Who has something else than rank 0, and what, in a sentence each; nothing where all agree.
/// `prints`: by rank.
std::vector<std::string> disagreements(const std::vector<Fingerprint>& prints);

/// Of any bytes; the same in every process of a build.
std::uint64_t hash_bytes(std::string_view bytes);

/// Of the file that this code is in, the program or a library that it has loaded (Python's module);
/// 0 when it can't be read.
std::uint64_t hash_of_build();

}  // namespace espalier
