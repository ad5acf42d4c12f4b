// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/findings.h"
#include "ir/program.h"

// Rules that can be checked op by op: R1, R2, R4, R8 and half of R3. Private to this room.
namespace espalier {

/// R1 for the contract and the places. The other steps of `verify` need it to hold.
bool check_contract(const Program& program, Findings& findings);

/// R1, R2, R4, R8 and the names of dependencies (R3), op by op. `block`: units after which
/// positions repeat (R4).
void check_ops(const Program& program, std::int64_t block, Findings& findings);

}  // namespace espalier
