// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

namespace espalier {

/// Whether tests that take samples are to take everything: `./dev test --all`.
inline bool all_cases_wanted() {
  const char* all = std::getenv("ESPALIER_ALL_TESTS");
  return all != nullptr && std::string_view(all) == "1";
}

/// The first `always` cases and `drawn` of the others, in their order; all of them where that is
/// wanted. The same ones in every run with the same seed, which is printed.
template <class Case>
std::vector<Case> sample(const std::vector<Case>& cases, std::size_t always, std::size_t drawn,
                         std::uint64_t seed) {
  if (all_cases_wanted() || cases.size() <= always + drawn) return cases;
  std::mt19937_64 random(seed);
  std::vector<Case> chosen;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    // Each of those left is as likely as any other to be among those still missing (Knuth's
    // algorithm S), whatever the standard library.
    const std::size_t missing = always + drawn - chosen.size();
    if (i < always || random() % (cases.size() - i) < missing) chosen.push_back(cases[i]);
  }
  std::printf("a sample of %zu of %zu cases, seed %llu; ./dev test --all takes them all\n",
              chosen.size(), cases.size(), static_cast<unsigned long long>(seed));
  return chosen;
}

}  // namespace espalier
