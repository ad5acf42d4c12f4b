// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace espalier {

/// Tables of measured times in other programs' output.
struct MeasuredTables {};

}  // namespace espalier
