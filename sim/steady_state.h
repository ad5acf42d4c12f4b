// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"
#include "sim/op_flows.h"
#include "sim/op_history.h"
#include "sim/simulation.h"

namespace espalier {

/// Counts the rounds that a program has not (RunOptions::more_rounds) into what a simulation of
/// those that it has came to. False, and nothing is changed, where these have not come to repeat
/// themselves.
///
/// They have where what is under way at one time is what was under way some rounds before, so much
/// later. What happens next follows from which op every lane is at, from what ops under way still
/// have to move, and from the results that are there for ops to come. Which ops are under way tells
/// what rate each has, so what they still have to move is the same if all that happened since the
/// first of them began is the same. That is what is compared: the dates of all ops since then, in
/// the round and in the one so many rounds before. (So are steps of FIFOs and turns on blocks: who
/// waits for them follows from what has begun and ended.) What comes later then goes on repeating
/// itself, as long as rounds follow: each costs the same (OpCosts::is_settled), and has units and
/// dependencies of its own (ir/rounds.h), so that it waits for no other but behind it on its lanes.
/// What ends the program begins in the same state, and takes as long.
///
/// `number`: by op of the program, which one of the history and of the flows that is; null: the
/// same. `of_ops`: the program's. `flows`: those that were simulated, which the machine of `of_ops`
/// counts.
bool count_in_rounds(const Simulation& of, const std::vector<OpId>* number, MachineFlows& of_ops,
                     OpFlows& flows, OpHistory& history);

}  // namespace espalier
