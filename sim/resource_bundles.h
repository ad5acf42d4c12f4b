// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/flow_engine.h"

namespace espalier {

/// A bundle: resources that every flow so far uses together, equally often. A flow between two
/// nodes goes through a port, a bus, an adapter and a cable that no flow uses without the others.
/// The narrowest of them is full first, so it represents the bundle. A kind of flows that uses a
/// part of a bundle splits it; what was split stays so.
class ResourceBundles {
 public:
  struct Wanted {
    ResourceId id = 0;
    std::uint32_t times = 0;  ///< how often a flow uses it
  };
  /// A bundle was split in two. `known` still represents one part, `apart` now represents the
  /// other: whoever used `known` uses `apart` as often.
  using OnSplit = std::function<void(ResourceId known, ResourceId apart)>;

  /// Resources are numbered as they come. \pre bytes_per_tick > 0.
  void add(double bytes_per_tick);

  /// The member that represents its bundle.
  ResourceId representative(ResourceId id) const { return all_[id].representative; }
  /// Its bundle, in order. \pre it represents that
  std::span<const ResourceId> members(ResourceId representative) const {
    const Resource& one = all_[representative];
    if (one.members.empty()) return {&one.representative, 1};
    return one.members;
  }

  /// A new kind of flows uses these. \pre each is listed once
  void use(std::span<const Wanted> wanted, const OnSplit& on_split);

 private:
  struct Resource {
    double bytes_per_tick = 0;
    ResourceId representative = 0;
    bool is_used = false;
    std::vector<ResourceId> members;  ///< of one that represents a bundle; empty: itself alone
  };

  void bundle(std::vector<ResourceId> members);
  void split(ResourceId known, std::span<const ResourceId> part, const OnSplit& on_split);
  ResourceId narrowest(std::span<const ResourceId> members) const;

  std::vector<Resource> all_;
};

}  // namespace espalier
