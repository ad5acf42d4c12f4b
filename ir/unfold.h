// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"

namespace espalier {

/// The fold of a program in which every group of ranks does with its blocks of the message what the
/// others do with theirs: buffers as long as the message are turned by a group's blocks, those of
/// one block and those of a sendrecv are not. \pre `groups` divides the ranks and the units
Fold turned_by_blocks(const Contract& contract, int groups);
/// By so many groups, and by every number that divides it, the one with the most groups first. \pre
/// as above
std::vector<Fold> all_turned_by_blocks(const Contract& contract, int groups);

/// Whether groups, ranks, lanes and periods fit each other and the contract's buffers.
bool is_valid(const Fold& fold, const Contract& contract);

/// Whether every rank is promised what the one of the group before is, moved: without that, what
/// is right for the first group says nothing of the others. \pre is_valid
bool keeps_contract(const Fold& fold, const Contract& contract);

/// Whether pieces of its ops would fold, too: none moves whole periods of turned units, of which
/// every group would have to begin with other pieces than the next.
bool may_be_cut(const Program& program);

/// A program of one op: that of the group so many after the first. It depends on nothing, and names
/// a way only if it is of the first group: how a machine turns is not known here.
Program op_of_group(const Program& program, OpId id, int group);

/// All ops of a folded program: of every op those of all groups, one after the other. Every rank's
/// lanes keep their order. A program that is not folded stays as it is. \pre no op of a folded one
/// names a way
Program unfold(const Program& program);

}  // namespace espalier
