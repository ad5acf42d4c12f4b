// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/flow_engine.h"

namespace espalier {

/// SimGrid's engine, from a library of its own (espalier_simgrid) that is loaded when it is first
/// asked for: SimGrid and what it needs take longer to load than most questions to answer
/// (docs/decisions/0025-simgrid-when-asked.md). It is looked for as any library: in the program's
/// run path, in LD_LIBRARY_PATH, or among those that are loaded.
///
/// Throws Error{runtime} where it can't be loaded, and Error{unsupported} in another thread than
/// the one that asked first: SimGrid would leave a program there as it is, as if it were stuck.
FlowEngine& simgrid_engine();

}  // namespace espalier
