// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace espalier {

/// What the executor of MSCCL++ 0.9 takes for granted of a plan and does not check itself, rule by
/// rule, straight from the JSON: dense ids, numbers of channels and buffers within their tables,
/// equal numbers of channels at both ends, chunk counts that it can divide by, limits. Returns the
/// first rules that are broken, a line each; empty when none is. It shares no code with the reader.
std::string broken_mscclpp_rules(std::string_view text);

}  // namespace espalier
