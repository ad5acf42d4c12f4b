// SPDX-License-Identifier: Apache-2.0
#include "scenarios/stated_protocol.h"

#include <cstddef>
#include <string>

#include "algorithms/program_file.h"
#include "core/words.h"

namespace espalier {

std::optional<Query> under_stated_protocol(const Query& query, const AlgorithmChoice& choice,
                                           const Machine& machine) {
  if (!choice.file || !choice.file->foreign || query.topology.empty()) return std::nullopt;
  const ProfileWord word = profile_word(query.profile);
  const std::string stated = lower_case(choice.file->foreign->protocol);
  if (stated.empty() || !word.protocol.empty() || machine.router->profile().interprets) {
    return std::nullopt;
  }
  for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
    if (machine.runtime(runtime).profile().protocol.name != stated) continue;
    Query asked = query;
    asked.profile = word.runtime + ":" + stated;
    return asked;
  }
  return std::nullopt;
}

}  // namespace espalier
