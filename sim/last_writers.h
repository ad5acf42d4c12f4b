// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ir/program.h"
#include "ir/rounds.h"

namespace espalier {

/// An op, and another one that wrote last some of what it reads or overwrites.
struct Touched {
  OpId op = 0;
  OpId writer = 0;
  bool is_read_here = false;  ///< the op reads it at its own place
};

/// Calls `visit` for all of them, perhaps several times. Ops come in an order in which they can run
/// (texts may name later ops), so that one op's need not follow each other. `rounds`: of the
/// program, of which the ops of the first alone are looked at.
void for_each_touched(const Program& program, const Rounds& rounds,
                      const std::function<void(const Touched&)>& visit);

}  // namespace espalier
