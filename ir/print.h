// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/program.h"

namespace espalier {

/// "r3", "h0" or "g1".
std::string place_name(const Program& program, PlaceId place);
/// "r3.out[0:4]" or "h0.tmp[2]".
std::string to_string(const Program& program, const Slice& slice);
/// The op as a line of the text form, without its number.
std::string to_string(const Program& program, OpId op);
/// The text form of docs/ir.md, which parse_program (ir/text.h) reads.
std::string print_program(const Program& program);

}  // namespace espalier
