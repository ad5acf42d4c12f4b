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
  // Those of one bundle that are used as often; of those that nobody used so far, all.
  struct Key {
    ResourceId stand = 0;
    std::uint32_t times = 0;
    ResourceId id = 0;
  };
  std::vector<Key> keys;
  for (const Wanted& one : wanted) {
    const Resource& resource = all_[one.id];
    if (resource.is_used && members(resource.stand) == 1) continue;
    keys.push_back({resource.is_used ? resource.stand : kNoResource, one.times, one.id});
  }
  std::ranges::sort(keys, {},
                    [](const Key& key) { return std::tuple(key.stand, key.times, key.id); });
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    const Key& first = keys[begin];
    std::vector<ResourceId> part;
    while (end < keys.size() && keys[end].stand == first.stand && keys[end].times == first.times) {
      part.push_back(keys[end++].id);
    }
    if (first.stand == kNoResource) {
      for (const ResourceId id : part) all_[id].is_used = true;
      bundle(std::move(part));
    } else {
      // Of a bundle that is split in three, either part may have kept what stood for it.
      split(all_[part.front()].stand, part, on_split);
    }
  }
}

/// The first to be full, and of those that are as narrow the one that came first.
ResourceId ResourceBundles::narrowest(std::span<const ResourceId> members) const {
  return *std::ranges::min_element(
      members, {}, [&](ResourceId id) { return std::pair(all_[id].bytes_per_tick, id); });
}

void ResourceBundles::bundle(std::vector<ResourceId> members) {
  const ResourceId stand = narrowest(members);
  for (const ResourceId id : members) {
    all_[id].stand = stand;
    all_[id].members.clear();
  }
  if (members.size() > 1) all_[stand].members = std::move(members);
}

void ResourceBundles::split(ResourceId stand, std::span<const ResourceId> part,
                            const OnSplit& on_split) {
  if (part.size() == members(stand)) return;
  const std::vector<ResourceId> before = all_[stand].members;
  std::vector<ResourceId> rest;
  std::ranges::set_difference(before, part, std::back_inserter(rest));
  CHECK(rest.size() + part.size() == before.size());
  const ResourceId of_part = narrowest(part);
  const ResourceId apart = of_part == stand ? narrowest(rest) : of_part;
  bundle(std::move(rest));
  bundle({part.begin(), part.end()});
  on_split(stand, apart);
}

}  // namespace espalier
