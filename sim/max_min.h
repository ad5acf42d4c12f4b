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
/// flows; and of those only the ones whose rates may change. Rates are right exactly when every
/// class has a bottleneck: a full resource on which no other class is faster. So a class whose
/// bottleneck is none of the resources where something changes keeps its rate, and so does one
/// whose bottleneck still is one when the others have been solved for.
class MaxMin {
 public:
  /// \pre bytes_per_tick > 0.
  ResourceId add_resource(double bytes_per_tick);

  /// The class of flows over these resources, in whatever order; one listed k times carries the
  /// bytes k times. \pre not empty.
  ClassId class_of(std::span<const ResourceId> resources);
  std::size_t classes() const { return classes_.size(); }

  /// A flow of the class begins to move, or ends.
  void add(ClassId id) { change(id, 1); }
  void remove(ClassId id) { change(id, -1); }
  std::uint32_t flows(ClassId id) const { return classes_[id].flows; }

  /// Bytes per tick of each flow of the class, as of the last `solve`.
  double rate(ClassId id) const { return classes_[id].rate; }

  /// Makes rates agree with the flows there are. The classes with flows whose rates may have
  /// changed, valid until the next call; in an order that depends on the calls before only.
  std::span<const ClassId> solve();

  /// What solving has cost so far: how often a class was looked at as user of a resource.
  std::int64_t work() const { return work_; }

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
    bool is_open = false;            ///< listed in open_
    bool has_rate = false;           ///< in the filling under way
    double rate = 0;
    ResourceId bottleneck = 0;  ///< where the rate was found
  };
  struct User {
    ClassId id = 0;
    std::uint32_t use = 0;
  };
  struct Resource {
    double bytes_per_tick = 0;
    std::vector<User> users;    ///< classes with flows
    bool is_concerned = false;  ///< listed in concerned_
    double left = 0;            ///< bytes per tick not given to flows yet
    std::uint64_t weight = 0;   ///< how often flows without a rate use it
    double level = 0;           ///< what it gave to open classes that have it as bottleneck
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
  void open_changed();
  void open(ClassId id);
  void fill();
  void set_aside_settled();
  void fix(ClassId id, const Level& level);
  bool open_unsettled();

  std::vector<Resource> resources_;
  std::vector<Class> classes_;
  std::vector<Use> uses_;  ///< of all classes
  std::unordered_map<std::vector<ResourceId>, ClassId, ListHash> by_resources_;
  std::vector<ResourceId> list_;       ///< scratch of class_of
  std::vector<ClassId> touched_;       ///< their flows changed since the last solve
  std::vector<ClassId> open_;          ///< classes the latest solve found rates for
  std::vector<ResourceId> concerned_;  ///< resources where rates changed
  std::vector<Level> levels_;          ///< heap of the filling under way, the lowest on top
  std::int64_t work_ = 0;
};

}  // namespace espalier
