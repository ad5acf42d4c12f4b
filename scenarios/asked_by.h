// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace espalier {

/// The block of a scenario that asked; empty if none did.
struct AskedBy {
  std::string scenario;  ///< its name
  std::string block;     ///< its title
  bool operator==(const AskedBy&) const = default;
};

}  // namespace espalier
