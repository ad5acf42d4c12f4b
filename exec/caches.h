// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace espalier {

/// Bytes that the last caches before this computer's memory hold, all of them together; 0 where
/// that is not known. `root`: another folder than "/" for tests, with sys/.
std::int64_t last_caches_bytes(const std::filesystem::path& root = "/");

}  // namespace espalier
