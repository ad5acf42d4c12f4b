// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/hash_numbers.h"
#include "sim/flow_engine.h"
#include "sim/level_heap.h"
#include "sim/resource_bundles.h"

namespace espalier {

/// Flows that use the same resources, each as many times.
using ClassId = std::uint32_t;

/// Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, section
/// 6.5.2). Flows of one class have one rate, so classes are solved for, whatever the number of
/// flows; and of those only the ones whose rates may change. Rates are right exactly when every
/// class has a bottleneck: a full resource on which no other class is faster. So a class whose
/// bottleneck is none of the resources where something changes keeps its rate, and so does one
/// whose bottleneck still is one when the others have been solved for. Where nearly all rates
/// change nearly every time, finding out which do costs more than solving for all: what it cost of
/// late decides. Of resources that all classes use alike (ResourceBundles), the narrowest is looked
/// at alone.
class MaxMin {
 public:
  /// \pre bytes_per_tick > 0.
  ResourceId add_resource(double bytes_per_tick);

  /// The class of flows over these resources, in whatever order; one listed k times carries the
  /// bytes k times. `alone`: one that no other flow of any class uses at the same time, or
  /// kNoResource; flows are of one class when the capacities of these are equal. \pre there is one.
  ClassId class_of(std::span<const ResourceId> resources, ResourceId alone = kNoResource);
  std::size_t classes() const { return classes_.size(); }

  /// A flow of the class begins to move, or ends.
  void add(ClassId id) { change(id, 1); }
  void remove(ClassId id) { change(id, -1); }
  std::uint32_t flows(ClassId id) const { return solved_[id].flows; }

  /// Bytes per tick of each flow of the class, as of the last `solve`.
  double rate(ClassId id) const { return solved_[id].rate; }

  /// Makes rates agree with the flows there are. The classes with flows whose rates may have
  /// changed, valid until the next call; in an order that depends on the calls before only.
  std::span<const ClassId> solve();

  /// What solving has cost so far: how often a class was looked at as user of a resource.
  std::int64_t work() const { return work_; }

 private:
  using Wanted = ResourceBundles::Wanted;
  struct Use {
    ResourceId resource = 0;
    std::uint32_t times = 0;
    std::uint32_t position = 0;  ///< among the users of the resource, while there are flows
  };
  struct Class {
    std::uint32_t first_use = 0;
    std::uint32_t use_count = 0;
    std::uint32_t solved_flows = 0;  ///< those the rate was found for
    std::uint32_t position = 0;      ///< in moving_, while there are flows
    double most = 0;                 ///< bytes per tick: no flow of it is faster
    double alone = 0;                ///< of what each flow has alone; 0: there is nothing
    ResourceId own = kNoResource;    ///< what they have alone, all together: nobody else's resource
    bool is_capped = false;          ///< what they have alone can be their bottleneck
    bool is_touched = false;         ///< listed in touched_

    std::size_t all_uses() const { return use_count + (own == kNoResource ? 0U : 1U); }
  };
  /// `open` classes are listed in open_; the filling under way has found the rates of those that
  /// are `filled`.
  enum class State : std::uint8_t { settled, open, filled };
  /// Of a class, what solving looks at again and again: half a line of the cache.
  struct Solved {
    double rate = 0;
    double kept = 0;  ///< the rate of a settled one, 0 of others
    std::uint32_t flows = 0;
    ResourceId bottleneck = 0;  ///< where the rate was found
    State state = State::settled;
  };
  struct User {
    ClassId id = 0;
    std::uint32_t use = 0;
    std::uint32_t times = 0;
  };
  struct Resource {
    double bytes_per_tick = 0;
    ClassId owner = 0;           ///< of a class's own, of which nothing else is kept
    std::vector<User> users;     ///< classes with flows
    std::int64_t weight = 0;     ///< how often their flows use it
    double most = 0;             ///< what they take of it where nothing else is in their way
    std::uint32_t position = 0;  ///< in used_, while there are users
    bool is_concerned = false;   ///< listed in concerned_
    bool is_bottleneck = false;  ///< of some class, maybe of one that has no flows by now

    /// Whether it can be a bottleneck of its users.
    bool may_be_full() const;
  };
  /// Of a resource concerned, in the filling under way.
  struct Filling {
    double left = 0;             ///< bytes per tick not given to flows yet
    double weight = 0;           ///< how often flows without a rate use it: a whole number
    double level = 0;            ///< what it gave to open classes that have it as bottleneck
    double fastest = 0;          ///< of the rates of its users
    double fastest_settled = 0;  ///< of those that are settled
    double slowest_held = 0;     ///< of the settled ones that have it as bottleneck
  };

  std::span<Use> uses(const Class& one) { return {uses_.data() + one.first_use, one.use_count}; }
  std::span<const Use> uses(const Class& one) const {
    return {uses_.data() + one.first_use, one.use_count};
  }
  /// Notes in `wanted_` what flows of a class use.
  void want(std::span<const ResourceId> resources);
  /// Whether its flows use the resources of `wanted_`, and each one as fast alone.
  bool is_of_wanted(ClassId id, double alone) const;
  void add_use(ClassId id, ResourceId representative, std::uint32_t times);
  void use_alike(ResourceId known, ResourceId apart);
  void change(ClassId id, int by);
  void find_lowest_cap();
  bool fill_capped();
  void join(ClassId id);
  void leave(ClassId id);
  bool is_all_cheaper();
  void solve_for_all();
  void solve_for_changed();
  void open_changed();
  void open(ClassId id);
  void fill();
  void set_aside_settled();
  void fix(ClassId id, const Level& level);
  bool open_unsettled();

  std::vector<Resource> resources_;            ///< and those of classes
  std::vector<Filling> fillings_;              ///< by resource
  std::vector<std::uint32_t> given_;           ///< by ResourceId: where it is among these
  ResourceBundles bundles_;                    ///< of resources that were given
  std::vector<std::vector<ClassId>> used_by_;  ///< by ResourceId: of bundles that may be split
  std::vector<Class> classes_;
  std::vector<Solved> solved_;         ///< by class
  std::vector<Level> own_caps_;        ///< by class: what a flow has alone, as its own's level
  std::vector<Use> uses_;              ///< of all classes
  HashNumbers class_numbers_;          ///< of classes by what they use
  std::vector<ResourceId> ids_;        ///< scratch of class_of: in order
  std::vector<Wanted> wanted_;         ///< same
  std::vector<ClassId> moving_;        ///< classes with flows
  std::vector<ResourceId> used_;       ///< resources with users
  std::size_t users_ = 0;              ///< of all resources, those of classes included
  std::vector<ClassId> touched_;       ///< their flows changed since the last solve
  std::vector<ClassId> open_;          ///< classes the latest solve found rates for
  std::vector<ResourceId> concerned_;  ///< resources where rates changed
  LevelHeap levels_;                   ///< of the filling under way
  LevelHeap caps_;                     ///< same, of open classes' own, once the lowest is reached
  Level lowest_cap_;                   ///< of open classes
  bool is_capping_ = false;            ///< it was reached
  double usual_work_ = 0;              ///< of solving for what changed, of late
  int solved_for_all_ = 0;             ///< times in a row
  std::int64_t work_ = 0;
};

}  // namespace espalier
