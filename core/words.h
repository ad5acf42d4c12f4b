// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& words, std::string_view separator);
std::string_view trim(std::string_view text);

/// The candidate nearest to `word` by edit distance (transpositions count one), or an empty string
/// when nothing is near enough to be a likely typing error.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean 'ring'?" or, when nothing is near, "one of: chain, ring, ..." (at most 20 words).
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace espalier
