// SPDX-License-Identifier: Apache-2.0
#include "core/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"

namespace espalier {
namespace {

using Sizes = std::vector<std::int64_t>;

TEST(ParseBytes, ReadsUnitsOfBothKinds) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("1024"), 1024);
  EXPECT_EQ(parse_bytes("7B"), 7);
  EXPECT_EQ(parse_bytes("64KB"), 64 * 1000);
  EXPECT_EQ(parse_bytes("64kib"), 64 * 1024);
  EXPECT_EQ(parse_bytes("2M"), 2 * 1024 * 1024);
  EXPECT_EQ(parse_bytes("1GiB"), 1 << 30);
  EXPECT_EQ(parse_bytes("3gb"), 3'000'000'000);
  EXPECT_EQ(parse_bytes(" 4 MiB "), 4 << 20);
  EXPECT_EQ(parse_bytes("1024TiB"), std::int64_t{1} << 50);
  EXPECT_EQ(parse_bytes("1PiB"), std::int64_t{1} << 50);
  EXPECT_EQ(parse_bytes("1PB"), 1'000'000'000'000'000);
}

TEST(ParseBytes, ReadsFractionsThatAreWholeBytes) {
  EXPECT_EQ(parse_bytes("1.5MiB"), 1572864);  // 1.5 * 1048576
  EXPECT_EQ(parse_bytes("0.5KiB"), 512);
  EXPECT_EQ(parse_bytes("1.500000000000000000K"), 1536);
  EXPECT_EQ(parse_bytes("1.001KB"), 1001);
  EXPECT_EQ(parse_bytes("0.3KiB"), std::nullopt);  // 307.2
  EXPECT_EQ(parse_bytes("1.5"), std::nullopt);
  EXPECT_EQ(parse_bytes("999999999999999.999999999999999999T"), std::nullopt);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text : {"",        " ",        "-1",        "+1",
                           "KiB",     "1QB",      "1KiBB",     "1e9",
                           "0x10",    "1.",       ".5K",       "1..2",
                           "1,000",   "inf",      "nan",       "1125899906842625",
                           "1025TiB", "1.125PiB", "1024.5TiB", "99999999999999999999",
                           "1 2",     "1K iB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(DecimalSize, IsTheFirstOneInUnitsOfThousands) {
  EXPECT_EQ(decimal_size("1GB"), "1GB");
  EXPECT_EQ(decimal_size("1GiB, 64mb ,1kB"), "64mb");
  EXPECT_EQ(decimal_size("4KiB..1.5GB"), "1.5GB");
  EXPECT_EQ(decimal_size("4KB..1GiB"), "4KB");
  for (const char* other : {"1G", "1GiB", "64B", "1024", "8..1G", "0.3QB", "B", ""}) {
    EXPECT_EQ(decimal_size(other), std::nullopt) << other;
  }
}

TEST(ParseByteList, ReadsListsAndRanges) {
  EXPECT_EQ(parse_byte_list("1GiB"), Sizes{1 << 30});
  EXPECT_EQ(parse_byte_list("1KiB,3,0"), (Sizes{1024, 3, 0}));
  EXPECT_EQ(parse_byte_list("4KiB..32KiB"), (Sizes{4096, 8192, 16384, 32768}));
  EXPECT_EQ(parse_byte_list("3..20"), (Sizes{3, 6, 12}));  // 24 is past the end
  EXPECT_EQ(parse_byte_list("1..2,100"), (Sizes{1, 2, 100}));
  EXPECT_EQ(parse_byte_list("1..1024TiB").size(), 51u);  // 2^0 to 2^50
}

std::string byte_list_error(const std::string& text) {
  try {
    parse_byte_list(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.diagnostics().front().message;
  }
  return "accepted";
}

TEST(ParseByteList, NamesThePartThatIsWrong) {
  EXPECT_EQ(byte_list_error("1MiB,lots"), "'lots' is not a size in bytes");
  EXPECT_EQ(byte_list_error(""), "'' is not a size in bytes");
  EXPECT_EQ(byte_list_error("1,,2"), "'' is not a size in bytes");
  EXPECT_EQ(byte_list_error("1..x"), "'x' is not a size in bytes");
  EXPECT_EQ(byte_list_error("1..2..4"), "'2..4' is not a size in bytes");
  EXPECT_EQ(byte_list_error("0..8"), "the range '0..8' is empty or begins at 0");
  EXPECT_EQ(byte_list_error("9..8"), "the range '9..8' is empty or begins at 0");
}

TEST(ParseNumber, ReadsFiniteNumbersOnly) {
  EXPECT_EQ(parse_number("25"), 25.0);
  EXPECT_EQ(parse_number("+2.5e-1"), 0.25);
  EXPECT_EQ(parse_number("-.5"), -0.5);
  for (const char* text :
       {"", "+", "+-1", "1 ", " 1", "1x", "inf", "nan", "1e999", "0x1p3", "--1"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(ParseIntList, ReadsNumbersAndRanges) {
  EXPECT_EQ(parse_int_list("0,1,4"), (std::vector<int>{0, 1, 4}));
  EXPECT_EQ(parse_int_list("0-3"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(parse_int_list("5-5, 2"), (std::vector<int>{5, 2}));
  EXPECT_EQ(parse_int_list("2147483647"), std::vector<int>{2147483647});
  EXPECT_EQ(parse_int_list("2147483646-2147483647")->size(), 2u);
}

TEST(ParseIntList, RefusesEverythingElse) {
  for (const char* text : {"", "a", "1,", ",1", "-1", "3-1", "1-", "1-2-3", "1.5", "2147483648",
                           "0-2147483647", "0-1048576"}) {
    EXPECT_EQ(parse_int_list(text), std::nullopt) << text;
  }
}

TEST(FormatBytes, IsExactWhenShort) {
  EXPECT_EQ(format_bytes(0), "0B");
  EXPECT_EQ(format_bytes(1000), "1000B");
  EXPECT_EQ(format_bytes(64 * 1024), "64KiB");
  EXPECT_EQ(format_bytes(1 << 30), "1GiB");
  EXPECT_EQ(format_bytes(1536LL << 20), "1536MiB");
  EXPECT_EQ(format_bytes(std::int64_t{1} << 50), "1024TiB");
}

TEST(FormatBytes, HasThreeDigitsOtherwise) {
  EXPECT_EQ(format_bytes(100'000'000), "95.4MiB");  // 1e8 / 2^20 = 95.37
  EXPECT_EQ(format_bytes(10'001), "9.77KiB");       // 10001 / 1024 = 9.767
  EXPECT_EQ(format_bytes(-100'000'000), "-95.4MiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::min()), "-8388608TiB");
}

TEST(FormatSeconds, ChoosesTheUnit) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(5e-7), "500 ns");
  EXPECT_EQ(format_seconds(1.23e-5), "12.3 us");
  EXPECT_EQ(format_seconds(4.56e-3), "4.56 ms");
  EXPECT_EQ(format_seconds(1.2), "1.20 s");
  EXPECT_EQ(format_seconds(1234), "1234 s");
  EXPECT_EQ(format_seconds(999.6e-6), "1.00 ms");  // would read "1000 us"
  EXPECT_EQ(format_seconds(-2e-3), "-2.00 ms");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "inf s");
}

TEST(FormatGbps, HasTwoDecimals) {
  EXPECT_EQ(format_gbps(0), "0.00");
  EXPECT_EQ(format_gbps(23.954), "23.95");
  EXPECT_EQ(format_gbps(0.005), "0.01");
  EXPECT_EQ(format_gbps(1.0 / 1600), "0.000625");
  EXPECT_EQ(format_gbps(1234.5678), "1235");
}

}  // namespace
}  // namespace espalier
