// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "formats/format.h"

namespace espalier {

inline const Format& mscclpp_format() {
  return **std::ranges::find(all_formats(), "mscclpp-json", &Format::name);
}

}  // namespace espalier
