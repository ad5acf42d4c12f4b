// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/flow_engine.h"

namespace espalier {

/// Which resources all flows so far use together, each as often as the others: a bundle. A flow
/// between two nodes goes through a port, a bus, an adapter and a cable that no flow uses without
/// the others. The narrowest of them is full first, so it stands for the bundle. A kind of flows
/// that uses a part of a bundle splits it; what was split stays so.
class ResourceBundles {
 public:
  struct Wanted {
    ResourceId id = 0;
    std::uint32_t times = 0;  ///< how often a flow uses it
  };
  /// A bundle was split: what stands for the other part is used by all that use what `known` stands
  /// for.
  using OnSplit = std::function<void(ResourceId known, ResourceId apart)>;

  /// Resources are numbered as they come. \pre bytes_per_tick > 0.
  void add(double bytes_per_tick);
  std::size_t size() const { return all_.size(); }
  double bytes_per_tick(ResourceId id) const { return all_[id].bytes_per_tick; }

  /// Which one stands for it.
  ResourceId stand(ResourceId id) const { return all_[id].stand; }
  /// How many it stands for. \pre it stands for itself
  std::size_t members(ResourceId stand) const {
    return std::max<std::size_t>(1, all_[stand].members.size());
  }

  /// A new kind of flows uses these. \pre each is listed once
  void use(std::span<const Wanted> wanted, const OnSplit& on_split);

 private:
  struct Resource {
    double bytes_per_tick = 0;
    ResourceId stand = 0;
    bool is_used = false;
    std::vector<ResourceId> members;  ///< of one that stands for others, too; in order
  };

  void bundle(std::vector<ResourceId> members);
  void split(ResourceId stand, std::span<const ResourceId> part, const OnSplit& on_split);
  ResourceId narrowest(std::span<const ResourceId> members) const;

  std::vector<Resource> all_;
};

}  // namespace espalier
