// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace espalier {

/// Bytes of this computer's memory that this process may still take: what is free, or would be if
/// caches gave way, here and in its control groups, and what its limit of addresses leaves.
/// Infinite where nothing is known. `root`: another folder than "/" for tests, with proc/ and sys/.
double free_memory_bytes(const std::filesystem::path& root = "/");

/// As Inventory has it: 0 where nothing is known, and else at least 1.
std::int64_t as_bytes(double free_bytes);

/// The share of it that a run may take: the rest is for everybody else.
inline constexpr double kFreeMemoryShare = 0.8;

}  // namespace espalier
