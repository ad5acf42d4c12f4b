// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/flow_engine.h"

namespace espalier {

/// Flows that use the same resources, each as many times.
using ClassId = std::uint32_t;

/// Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, section
/// 6.5.2). Flows of one class have one rate, so classes are solved for, whatever the number of
/// flows; and of those only the ones that share resources, directly or through others, with a class
/// whose number of flows has changed.
class MaxMin {
 public:
  /// \pre bytes_per_s > 0.
  ResourceId add_resource(double bytes_per_s);

  /// The class of flows over these resources, in whatever order; one listed k times carries the
  /// bytes k times. \pre not empty.
  ClassId class_of(std::span<const ResourceId> resources);
  std::size_t classes() const { return classes_.size(); }

  /// A flow of the class begins to move, or ends.
  void add(ClassId id) { change(id, 1); }
  void remove(ClassId id) { change(id, -1); }
  std::uint32_t flows(ClassId id) const { return classes_[id].flows; }

  /// Bytes/s of each flow of the class, as of the last `solve`.
  double rate(ClassId id) const { return classes_[id].rate; }

  /// Makes rates agree with the flows there are. The classes with flows whose rates may have
  /// changed, valid until the next call; in an order that depends on the calls before only.
  std::span<const ClassId> solve();

 private:
  struct Use {
    ResourceId resource = 0;
    std::uint32_t times = 0;
    std::uint32_t position = 0;  ///< among the users of the resource, while there are flows
  };
  struct Class {
    std::uint32_t first_use = 0;
    std::uint32_t use_count = 0;
    std::uint32_t flows = 0;
    std::uint32_t solved_flows = 0;  ///< those the rate was found for
    bool is_touched = false;         ///< listed in touched_
    bool is_reached = false;         ///< by the solve under way, and without a rate
    double rate = 0;
  };
  struct User {
    ClassId id = 0;
    std::uint32_t use = 0;
  };
  struct Resource {
    double bytes_per_s = 0;
    std::vector<User> users;  ///< classes with flows
    bool is_reached = false;
    double left = 0;           ///< bytes/s not given to flows yet
    std::uint64_t weight = 0;  ///< how often flows without a rate use it
  };
  struct Level {
    double rate = 0;
    ResourceId resource = 0;
  };
  struct ListHash {
    std::size_t operator()(const std::vector<ResourceId>& list) const;
  };

  std::span<Use> uses(const Class& one) { return {uses_.data() + one.first_use, one.use_count}; }
  void change(ClassId id, int by);
  void join(ClassId id);
  void leave(ClassId id);
  void reach_class(ClassId id);
  void reach_resources();
  void fill();
  void fix(ClassId id, double rate);

  std::vector<Resource> resources_;
  std::vector<Class> classes_;
  std::vector<Use> uses_;  ///< of all classes
  std::unordered_map<std::vector<ResourceId>, ClassId, ListHash> by_resources_;
  std::vector<ResourceId> list_;    ///< scratch of class_of
  std::vector<ClassId> touched_;    ///< their flows changed since the last solve
  std::vector<ClassId> reached_;    ///< by the latest solve
  std::vector<ResourceId> shared_;  ///< resources of those
  std::vector<Level> levels_;       ///< heap of the solve under way, the lowest on top
};

}  // namespace espalier
