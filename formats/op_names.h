// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "ir/program.h"

namespace espalier {

/// What a foreign file calls the parts of a program that was made of it.
struct ForeignNames {
  std::function<std::string(OpId)> op;             ///< "gpu 0, thread block 1, step 2 (rrc)"
  std::function<std::string(const Slice&)> slice;  ///< "s[1] of gpu 2"
};

/// Replaces every "op 12" and "r2.tmp[1]" in messages and suggestions by the file's names, and
/// lanes by the thread blocks that they are. Several ops may have one name; what is then said twice
/// is said once. Private to the room.
void use_foreign_names(std::vector<Diagnostic>& problems, const ForeignNames& names);

/// "s[1] of gpu 2", "o[0:4] of gpu 1". `buffer`: the file's letter for it.
std::string foreign_slice(std::string_view buffer, std::int64_t begin, std::int64_t end, int gpu);

}  // namespace espalier
