// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ir/print.h"
#include "ir/program.h"

namespace espalier {

/// Reads the text form of docs/ir.md; parse_program(print_program(p)) is the same program as p.
/// Throws Error{input} with every syntax problem (file:line:column). The program returned is well
/// formed but may break rules: `verify` tells.
Program parse_program(std::string_view text, const std::string& file);

}  // namespace espalier
