// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace espalier {

/// Bytes that the last caches before this computer's memory hold, all of them together; 0 where
/// that is not known. `root`: another folder than "/" for tests, with sys/.
std::int64_t last_caches_bytes(const std::filesystem::path& root = "/");

/// The same, as far as four times as much is half of the memory that is free here at most: what a
/// probe of this memory should exceed.
std::int64_t caches_to_exceed();

}  // namespace espalier
