// SPDX-License-Identifier: Apache-2.0
#include "sim/resource_bundles.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace espalier {

void ResourceBundles::add(double bytes_per_tick) {
  CHECK(bytes_per_tick > 0);
  const auto id = static_cast<ResourceId>(all_.size());
  all_.push_back({bytes_per_tick, id, false, {}});
}

void ResourceBundles::use(std::span<const Wanted> wanted, const OnSplit& on_split) {
  // Those of one bundle that are used equally often; of those that nobody used so far, all.
  struct Key {
    ResourceId representative = 0;
    std::uint32_t times = 0;
    ResourceId id = 0;
  };
  std::vector<Key> keys;
  for (const Wanted& one : wanted) {
    const Resource& resource = all_[one.id];
    if (!resource.is_used) {
      keys.push_back({kNoResource, one.times, one.id});
    } else if (members(resource.representative).size() > 1) {
      keys.push_back({resource.representative, one.times, one.id});
    }
  }
  std::ranges::sort(
      keys, {}, [](const Key& key) { return std::tuple(key.representative, key.times, key.id); });
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    const auto [known, times, id] = keys[begin];
    std::vector<ResourceId> part;
    while (end < keys.size() && keys[end].representative == known && keys[end].times == times) {
      part.push_back(keys[end++].id);
    }
    if (known == kNoResource) {
      for (const ResourceId fresh : part) all_[fresh].is_used = true;
      bundle(std::move(part));
    } else {
      // An earlier part may have been split off this bundle: look again what represents it.
      split(all_[id].representative, part, on_split);
    }
  }
}

/// The first to be full; of equally narrow ones, the one that was added first.
ResourceId ResourceBundles::narrowest(std::span<const ResourceId> members) const {
  return *std::ranges::min_element(
      members, {}, [&](ResourceId id) { return std::pair(all_[id].bytes_per_tick, id); });
}

void ResourceBundles::bundle(std::vector<ResourceId> members) {
  const ResourceId representative = narrowest(members);
  for (const ResourceId id : members) {
    all_[id].representative = representative;
    all_[id].members.clear();
  }
  if (members.size() > 1) all_[representative].members = std::move(members);
}

void ResourceBundles::split(ResourceId known, std::span<const ResourceId> part,
                            const OnSplit& on_split) {
  if (part.size() == members(known).size()) return;
  std::vector<ResourceId> rest;
  std::ranges::set_difference(members(known), part, std::back_inserter(rest));
  CHECK(rest.size() + part.size() == members(known).size());
  const ResourceId of_part = narrowest(part);
  const ResourceId apart = of_part == known ? narrowest(rest) : of_part;
  bundle(std::move(rest));
  bundle({part.begin(), part.end()});
  on_split(known, apart);
}

}  // namespace espalier
