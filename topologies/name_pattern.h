// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// The names a pattern stands for: "gpu[0-2,5]" is gpu0 gpu1 gpu2 gpu5, several brackets run like
/// the digits of a number, and a name without brackets is itself. Nothing, and what is wrong in
/// `problem`, on brackets that don't close or hold no numbers, and for more than `limit` names.
std::optional<std::vector<std::string>> expand_names(std::string_view pattern, std::size_t limit,
                                                     std::string& problem);

}  // namespace espalier
