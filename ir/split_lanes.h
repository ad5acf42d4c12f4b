// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace espalier {

/// The program with lanes of at most `most` ops: after these, a lane goes on as another one, whose
/// first op waits for the last one before it. For runtimes whose thread blocks have room for no
/// more. \pre lanes are fewer than 65536 then
Program split_lanes(const Program& program, int most);

}  // namespace espalier
