// SPDX-License-Identifier: Apache-2.0
#include "core/hash_numbers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/hash.h"

namespace espalier {
namespace {

TEST(HashNumbers, CountInOrderOfFirstAppearance) {
  HashNumbers numbers;
  EXPECT_EQ(numbers.find(mix64(7)), HashNumbers::kNone);
  constexpr std::uint32_t kMany = 10'000;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(numbers.number(mix64(i)), i);
    EXPECT_EQ(numbers.number(mix64(i / 2)), i / 2);
  }
  EXPECT_EQ(numbers.size(), kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_EQ(numbers.find(mix64(i)), i);
  EXPECT_EQ(numbers.find(mix64(kMany)), HashNumbers::kNone);
}

TEST(HashNumbers, WhatHasOneHashIsToldApartByWhoKeepsIt) {
  HashNumbers numbers;
  std::vector<std::string> kept;
  const auto number = [&](const std::string& word) {
    const std::uint32_t found = numbers.number(
        mix64(word.size()), [&](std::uint32_t known) { return kept[known] == word; });
    if (found == kept.size()) kept.push_back(word);
    return found;
  };
  EXPECT_EQ(number("oak"), 0u);
  EXPECT_EQ(number("elm"), 1u);
  EXPECT_EQ(number("yew"), 2u);
  EXPECT_EQ(number("elm"), 1u);
  EXPECT_EQ(number("rowan"), 3u);
}

}  // namespace
}  // namespace espalier
