// SPDX-License-Identifier: Apache-2.0
#include "topologies/link_rates.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace espalier {
namespace {

/// GB/s of data.
double capacity(const Link& link, const Profile& profile, const LinkProfile* row) {
  const bool is_measured = link.measured_gbps > 0;
  if (profile.uses_measured && is_measured) return link.measured_gbps / profile.protocol.wire;
  const double efficiency = row == nullptr ? 1 : row->efficiency;
  double gbps = link.gbps * link.count * efficiency;
  // What a copy engine does not get through a host's links or a NIC, a kernel does not either.
  const bool by_kernel = !profile.protocol.name.empty();
  if (is_measured && by_kernel && link.link_class != LinkClass::gpu_fabric) {
    gbps = std::min(gbps, link.measured_gbps);
  }
  return gbps / profile.protocol.wire;
}

/// By link, what the profile says of its kind; null: nothing.
std::vector<const LinkProfile*> rows_of(const Topology& topology, const Profile& profile) {
  std::vector<const LinkProfile*> rows;
  rows.reserve(topology.links.size());
  const Link* before = nullptr;
  for (const Link& link : topology.links) {
    if (before != nullptr && before->kind == link.kind) {  // mostly
      rows.push_back(rows.back());
    } else {
      const auto known = profile.links.find(link.kind);
      rows.push_back(known == profile.links.end() ? nullptr : &known->second);
    }
    before = &link;
  }
  return rows;
}

std::vector<double> capacities(const Topology& topology, const Profile& profile,
                               const std::vector<const LinkProfile*>& rows) {
  std::vector<double> all;
  all.reserve(topology.links.size());
  std::unordered_map<std::string_view, double> of_medium;
  for (const Link& link : topology.links) {
    all.push_back(capacity(link, profile, rows[all.size()]));
    if (link.duplex != Duplex::shared) continue;
    double& least = of_medium.emplace(link.medium, all.back()).first->second;
    least = std::min(least, all.back());
  }
  // A medium has one rate, whatever kinds of links share it.
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Link& link = topology.links[i];
    if (link.duplex == Duplex::shared) all[i] = of_medium.at(link.medium);
  }
  return all;
}

}  // namespace

LinkRates link_rates(const Topology& topology, const Profile& profile) {
  LinkRates rates;
  rates.rows = rows_of(topology, profile);
  rates.gbps = capacities(topology, profile, rates.rows);
  return rates;
}

}  // namespace espalier
