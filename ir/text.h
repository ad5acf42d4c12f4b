// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ir/program.h"

namespace espalier {

/// The text form of docs/ir.md. parse_program(print_program(p)) is the same program as p.
std::string print_program(const Program& program);

/// Throws Error{input} with every syntax problem (file:line:column). The program returned is well
/// formed but may break rules: `verify` tells.
Program parse_program(std::string_view text, const std::string& file);

}  // namespace espalier
