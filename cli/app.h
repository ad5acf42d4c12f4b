// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace espalier {

/// The whole command line tool, callable in-process: `arguments` without the program's name,
/// results to `out`, talk to `err`. Returns the exit code (0 ok, 1 a check or expectation failed, 2
/// bad usage or input, 3 not possible here). Never throws.
int run_app(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace espalier
