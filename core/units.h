// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Parses a size in bytes: "0", "1024", "64KB" (1000s), "1GiB" (1024s), "1.5MiB". Units are
/// case-insensitive; "K", "M", "G" alone mean KiB, MiB, GiB as in nccl-tests. Returns
/// nothing for bad text, for a negative or fractional number of bytes, and above 2^50.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// Parses "1GiB", "1MiB,4MiB" or "4KiB..1GiB" (powers of two from the first, the last included when
/// it is reached). Throws Error{usage} naming the part that is wrong.
std::vector<std::int64_t> parse_byte_list(std::string_view text);

/// The first size of such a list that is written in decimal units: "1GB", but not "1G" or "1GiB".
/// Nothing when there is none.
std::optional<std::string> decimal_size(std::string_view list);

/// Parses a finite decimal number: "25", "-0.5", "1e-3". Returns nothing for anything else.
std::optional<double> parse_number(std::string_view text);

/// Parses "0,1,4", "0-7" and mixtures. Returns nothing for bad text,
/// negative numbers, a descending range, and more than 2^20 numbers.
std::optional<std::vector<int>> parse_int_list(std::string_view text);

/// "1GiB", "64KiB", "1536MiB", "1000B": the largest binary unit that divides exactly when that
/// takes at most four digits, else three digits of the largest unit: "95.4MiB".
std::string format_bytes(std::int64_t bytes);

/// "1GiB", or "40000000 bytes" where three digits would not say exactly how many.
std::string describe_size(std::int64_t bytes);

/// Three digits: "500 ns", "12.3 us", "4.56 ms", "1.20 s"; zero is "0 s".
std::string format_seconds(double seconds);

/// Bandwidth in GB/s = 1e9 bytes/s without the unit: two decimals below
/// 1000, none above; three significant digits for what would be 0.00.
std::string format_gbps(double gbps);

}  // namespace espalier
