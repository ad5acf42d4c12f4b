// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace espalier {

/// The program `count` times side by side, each for an equal part of the message (of every block)
/// and on lanes of its own: for runtimes in which a lane is one thread block, which can't use a
/// link by itself. Lane l becomes lanes l, l + n, l + 2n, ..., where the program has lanes up to n
/// - 1. Slices of several blocks become one op for each. Dependencies follow from data flow. \pre
/// `program` passed `verify`, its lanes and units times `count` are within limits
Program instances(const Program& program, int count);

}  // namespace espalier
