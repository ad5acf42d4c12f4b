// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "run/target.h"

namespace espalier {

/// How many bytes a program touches in the memory of each node: what its ops read and write, every
/// byte once however often, and, where operands are stored on arrival before they are added up
/// (ReductionMode::separate), what is stored. Runs follow each other, so that all of it has been
/// touched before, and is found in a cache if the cache holds all of it. `message_bytes`: the whole
/// message.
std::vector<double> touched_bytes(const Program& program, const Target& target,
                                  double message_bytes);

}  // namespace espalier
