// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/link_resources.h"

#include <cmath>
#include <cstddef>

namespace espalier {

int LinkResources::resource(const Hop& hop) {
  const Link& link = router_.topology().link(hop.link);
  int key = hop.link * 2 + (link.duplex == Duplex::full && hop.forward ? 1 : 0);
  if (link.duplex == Duplex::shared) key = media_.try_emplace(link.medium, key).first->second;
  const auto [known, is_new] = of_link_.try_emplace(key, count());
  if (is_new) {
    bytes_per_s_.push_back(
        static_cast<std::int64_t>(std::llround(router_.capacity_gbps(hop.link) * 1e9)));
  }
  return known->second;
}

std::vector<int> LinkResources::of(const Route& route) {
  std::vector<int> crossed;
  for (const Hop& hop : route.hops) crossed.push_back(resource(hop));
  return crossed;
}

}  // namespace espalier
