// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "topologies/route.h"

// Private to the room.

namespace espalier {

/// What routes contend for: each direction of a full-duplex link, both directions of a half-duplex
/// one together, a shared medium. Numbered as they are met.
class LinkResources {
 public:
  explicit LinkResources(const Router& router) : router_(router) {}

  int resource(const Hop& hop);
  /// Those that a route crosses, in order.
  std::vector<int> of(const Route& route);

  int count() const { return static_cast<int>(bytes_per_s_.size()); }
  /// Whole bytes per second under the router's profile.
  std::int64_t bytes_per_s(int resource) const {
    return bytes_per_s_[static_cast<std::size_t>(resource)];
  }

 private:
  const Router& router_;
  std::map<std::string, int> media_;
  std::map<int, int> of_link_;  ///< by link and direction
  std::vector<std::int64_t> bytes_per_s_;
};

}  // namespace espalier
