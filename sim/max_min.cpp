// SPDX-License-Identifier: Apache-2.0
#include "sim/max_min.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/hash.h"

namespace espalier {
namespace {

/// Rates and loads no further apart than this part of them are equal: some sixteen roundings. A
/// class that is opened for nothing costs time; one that is left alone is off by so much.
const double kRounding = std::ldexp(1.0, -48);

/// Sums of what was added and removed again are off by less than this part.
constexpr double kDrift = 1e-6;

/// Solving for all looks at every user about this many times. It is cheaper while solving for what
/// changed looked at more, on an average over so many times; which is tried again after so many.
constexpr double kLooks = 3;
constexpr double kAveraged = 8;
constexpr int kTryAgainAfter = 64;

/// After all others.
constexpr Level kNoLevel{std::numeric_limits<double>::infinity(), kNoResource};

}  // namespace

bool MaxMin::Resource::may_be_full() const { return most > bytes_per_tick * (1 - kDrift); }

ResourceId MaxMin::add_resource(double bytes_per_tick) {
  bundles_.add(bytes_per_tick);
  given_.push_back(static_cast<std::uint32_t>(resources_.size()));
  used_by_.emplace_back();
  resources_.emplace_back().bytes_per_tick = bytes_per_tick;
  fillings_.emplace_back();
  return static_cast<ResourceId>(given_.size() - 1);
}

void MaxMin::want(std::span<const ResourceId> resources) {
  ids_.assign(resources.begin(), resources.end());
  std::ranges::sort(ids_);
  wanted_.clear();
  for (const ResourceId id : ids_) {
    CHECK(id < given_.size());
    if (wanted_.empty() || wanted_.back().id != id) wanted_.push_back({id, 0});
    ++wanted_.back().times;
  }
}

bool MaxMin::is_of_wanted(ClassId id, double alone) const {
  if (classes_[id].alone != alone) return false;
  std::size_t found = 0;
  for (const Use& use : uses(classes_[id])) {
    const auto representative =
        static_cast<ResourceId>(std::ranges::lower_bound(given_, use.resource) - given_.begin());
    for (const ResourceId member : bundles_.members(representative)) {
      const auto at = std::ranges::lower_bound(wanted_, member, {}, &Wanted::id);
      if (at == wanted_.end() || at->id != member || at->times != use.times) return false;
      ++found;
    }
  }
  return found == wanted_.size();
}

ClassId MaxMin::class_of(std::span<const ResourceId> resources, ResourceId alone) {
  const bool has_own = alone != kNoResource;
  CHECK(has_own || !resources.empty());
  want(resources);
  const double own_rate = has_own ? resources_[given_[alone]].bytes_per_tick : 0;
  std::uint64_t hash = mix64(ids_.size() ^ std::bit_cast<std::uint64_t>(own_rate));
  for (const ResourceId id : ids_) hash = mix64(hash ^ id);
  const ClassId number =
      class_numbers_.number(hash, [&](ClassId known) { return is_of_wanted(known, own_rate); });
  if (number < classes_.size()) return number;
  bundles_.use(wanted_, [&](ResourceId known, ResourceId apart) { use_alike(known, apart); });
  Class made;
  made.first_use = static_cast<std::uint32_t>(uses_.size());
  made.most = has_own ? own_rate : std::numeric_limits<double>::infinity();
  for (const Wanted& wanted : wanted_) {
    made.most = std::min(made.most, resources_[given_[wanted.id]].bytes_per_tick / wanted.times);
  }
  if (has_own) {
    made.alone = own_rate;
    made.own = static_cast<ResourceId>(resources_.size());
    made.is_capped = made.most > made.alone * (1 - kDrift);
    resources_.emplace_back().owner = number;
    fillings_.emplace_back();
  }
  classes_.push_back(made);
  solved_.emplace_back();
  own_caps_.push_back(kNoLevel);
  uses_.resize(uses_.size() + wanted_.size());  // room for all of its bundles to be split
  for (const Wanted& wanted : wanted_) {
    const bool is_used = bundles_.representative(wanted.id) == wanted.id;
    if (is_used) add_use(number, wanted.id, wanted.times);
  }
  return number;
}

void MaxMin::add_use(ClassId id, ResourceId representative, std::uint32_t times) {
  Class& one = classes_[id];
  uses_[one.first_use + one.use_count++] = {given_[representative], times, 0};
  if (bundles_.members(representative).size() > 1) used_by_[representative].push_back(id);
}

/// A bundle was split: all classes that use `known` use `apart`, too.
void MaxMin::use_alike(ResourceId known, ResourceId apart) {
  const Resource& from = resources_[given_[known]];
  Resource& to = resources_[given_[apart]];
  to.users = from.users;
  to.weight = from.weight;
  to.most = from.most;
  if (!to.users.empty()) {
    to.position = static_cast<std::uint32_t>(used_.size());
    used_.push_back(given_[apart]);
    users_ += to.users.size();
  }
  for (const ClassId id : used_by_[known]) {
    const Class& one = classes_[id];
    const Use use = *std::ranges::find(uses(one), given_[known], &Use::resource);
    const std::uint32_t copy = one.first_use + one.use_count;
    add_use(id, apart, use.times);
    if (solved_[id].flows == 0) continue;
    uses_[copy].position = use.position;
    to.users[use.position].use = copy;
  }
}

void MaxMin::change(ClassId id, int by) {
  Class& one = classes_[id];
  std::uint32_t& flows = solved_[id].flows;
  CHECK(by > 0 || flows > 0);
  if (flows == 0) join(id);
  flows += static_cast<std::uint32_t>(by);
  for (const Use& use : uses(one)) {
    const std::int64_t weight = std::int64_t{by} * static_cast<std::int64_t>(use.times);
    resources_[use.resource].weight += weight;
    resources_[use.resource].most += static_cast<double>(weight) * one.most;
  }
  if (flows == 0) {
    leave(id);
  } else if (one.is_capped) {
    own_caps_[id] = {one.alone * flows / static_cast<double>(flows), one.own};
  }
  if (!one.is_touched) touched_.push_back(id);
  one.is_touched = true;
}

void MaxMin::join(ClassId id) {
  Class& one = classes_[id];
  one.position = static_cast<std::uint32_t>(moving_.size());
  moving_.push_back(id);
  users_ += one.all_uses();
  for (std::uint32_t use = one.first_use; use < one.first_use + one.use_count; ++use) {
    Resource& resource = resources_[uses_[use].resource];
    if (resource.users.empty()) {
      resource.position = static_cast<std::uint32_t>(used_.size());
      used_.push_back(uses_[use].resource);
    }
    uses_[use].position = static_cast<std::uint32_t>(resource.users.size());
    resource.users.push_back({id, use, uses_[use].times});
  }
}

void MaxMin::leave(ClassId id) {
  const Class& one = classes_[id];
  classes_[moving_.back()].position = one.position;
  moving_[one.position] = moving_.back();
  moving_.pop_back();
  users_ -= one.all_uses();
  for (const Use& use : uses(one)) {
    Resource& resource = resources_[use.resource];
    std::vector<User>& users = resource.users;
    uses_[users.back().use].position = use.position;
    users[use.position] = users.back();
    users.pop_back();
    if (!users.empty()) continue;
    resource.most = 0;
    resources_[used_.back()].position = resource.position;
    used_[resource.position] = used_.back();
    used_.pop_back();
  }
}

std::span<const ClassId> MaxMin::solve() {
  for (const ClassId id : open_) {
    solved_[id].state = State::settled;
    solved_[id].kept = solved_[id].rate;
  }
  for (const ResourceId id : concerned_) resources_[id].is_concerned = false;
  open_.clear();
  concerned_.clear();
  if (is_all_cheaper()) {
    solve_for_all();
  } else {
    solve_for_changed();
  }
  return open_;
}

bool MaxMin::is_all_cheaper() {
  const bool is = !touched_.empty() && usual_work_ > kLooks * static_cast<double>(users_) &&
                  solved_for_all_ < kTryAgainAfter;
  solved_for_all_ = is ? solved_for_all_ + 1 : 0;
  return is;
}

/// Of every class with flows, from nothing: no class is settled, and what changed does not matter.
void MaxMin::solve_for_all() {
  for (const ClassId id : touched_) {
    classes_[id].is_touched = false;
    classes_[id].solved_flows = solved_[id].flows;
  }
  touched_.clear();
  open_.assign(moving_.begin(), moving_.end());
  for (const ClassId id : open_) solved_[id].state = State::open;
  concerned_.assign(used_.begin(), used_.end());
  for (const ResourceId id : concerned_) {
    Resource& resource = resources_[id];
    resource.is_concerned = true;
    resource.is_bottleneck = false;
    const double weight = resource.may_be_full() ? static_cast<double>(resource.weight) : 0;
    fillings_[id] = {resource.bytes_per_tick, weight, 0, 0, 0, 0};
  }
  // Here and when their rates are found.
  work_ += static_cast<std::int64_t>(2 * users_);
  fill();
}

void MaxMin::solve_for_changed() {
  if (touched_.empty()) return;
  const std::int64_t before = work_;
  open_changed();
  while (!open_.empty() || !concerned_.empty()) {
    set_aside_settled();
    fill();
    if (!open_unsettled()) break;
  }
  usual_work_ += (static_cast<double>(work_ - before) - usual_work_) / kAveraged;
}

/// The classes whose flows changed, and those that have a bottleneck in common with them.
void MaxMin::open_changed() {
  for (const ClassId id : touched_) {
    Class& one = classes_[id];
    one.is_touched = false;
    // As many end as begin: nothing changes for anybody.
    if (solved_[id].flows == one.solved_flows) continue;
    one.solved_flows = solved_[id].flows;
    open(id);
  }
  touched_.clear();
  const std::size_t changed = concerned_.size();
  for (std::size_t i = 0; i < changed; ++i) {
    const ResourceId id = concerned_[i];
    for (const User& user : resources_[id].users) {
      if (solved_[user.id].bottleneck == id) open(user.id);
    }
  }
}

/// Notes a class, if it has flows, to be solved for, and those of its resources that matter.
void MaxMin::open(ClassId id) {
  if (solved_[id].state != State::settled) return;
  if (solved_[id].flows > 0) {
    solved_[id].state = State::open;
    solved_[id].kept = 0;
    open_.push_back(id);
  }
  for (const Use& use : uses(classes_[id])) {
    Resource& resource = resources_[use.resource];
    if (resource.is_concerned || !(resource.may_be_full() || resource.is_bottleneck)) continue;
    resource.is_concerned = true;
    concerned_.push_back(use.resource);
  }
}

/// What classes that are not open take of the resources concerned is not to be had.
void MaxMin::set_aside_settled() {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (const ClassId id : open_) solved_[id].state = State::open;
  for (const ResourceId id : concerned_) {
    Resource& resource = resources_[id];
    double left = resource.bytes_per_tick;
    std::int64_t open_weight = 0;
    double fastest = 0;
    double slowest_held = kNone;
    std::size_t settled = 0;
    // Which users are settled cannot be predicted: no branches on it.
    for (const User& user : resource.users) {
      const Solved& of = solved_[user.id];
      const std::int64_t weight = std::int64_t{of.flows} * user.times;
      const bool is_settled = of.state == State::settled;
      const double kept = of.kept;
      settled += static_cast<std::size_t>(is_settled);
      open_weight += is_settled ? 0 : weight;
      left -= static_cast<double>(weight) * kept;
      fastest = std::max(fastest, kept);
      if (is_settled && of.bottleneck == id) slowest_held = std::min(slowest_held, kept);
    }
    resource.is_bottleneck = slowest_held < kNone;
    fillings_[id] = {std::max(left, 0.0), static_cast<double>(open_weight), kNone, fastest, fastest,
                     slowest_held};
    // Those with settled users are looked at again when the rates of the others are known.
    const std::size_t users = resource.users.size();
    work_ += static_cast<std::int64_t>(settled > 0 ? 2 * users : users);
  }
  for (const ClassId id : open_) work_ += own_caps_[id].resource != kNoResource ? 1 : 0;
}

/// The resource that allows its open classes least sets their rate; what they take is taken from
/// their other resources. Each of those allows its remaining flows no less than before, so a level
/// in the heap that is out of date is too low, and is corrected when it comes to the top.
void MaxMin::fill() {
  const auto level_of = [](const Filling& filling) { return filling.left / filling.weight; };
  levels_.clear();
  for (const ResourceId id : concerned_) {
    const Filling& filling = fillings_[id];
    if (filling.weight > 0) levels_.add({level_of(filling), id});
  }
  levels_.order();
  find_lowest_cap();
  std::size_t without_rate = open_.size();
  while (without_rate > 0) {
    if (levels_.empty() || lowest_cap_ < levels_.lowest()) {
      if (lowest_cap_.resource == kNoResource) break;
      without_rate -= fill_capped();
      continue;
    }
    const Level lowest = levels_.lowest();
    Filling& filling = fillings_[lowest.resource];
    if (filling.weight > 0) {
      if (const double level = level_of(filling); level > lowest.rate) {
        levels_.raise_lowest(level);
        continue;
      }
    }
    levels_.remove_lowest();
    if (filling.weight == 0) continue;
    filling.level = lowest.rate;
    resources_[lowest.resource].is_bottleneck = true;
    const std::vector<User>& users = resources_[lowest.resource].users;
    for (const User& user : users) {
      if (solved_[user.id].state != State::open) continue;
      fix(user.id, lowest);
      --without_rate;
    }
    work_ += static_cast<std::int64_t>(users.size());
  }
}

/// Most classes are slower than what their flows have alone allows, so these are not put in order
/// before the lowest of them is reached.
void MaxMin::find_lowest_cap() {
  is_capping_ = false;
  lowest_cap_ = kNoLevel;
  for (const ClassId id : open_) lowest_cap_ = std::min(lowest_cap_, own_caps_[id]);
}

/// The class of the lowest cap gets that as its rate, unless it has one. Whether it did.
bool MaxMin::fill_capped() {
  if (!is_capping_) {
    is_capping_ = true;
    caps_.clear();
    for (const ClassId id : open_) {
      const bool is_capped = own_caps_[id].resource != kNoResource;
      if (is_capped && solved_[id].state == State::open) caps_.add(own_caps_[id]);
    }
    caps_.order();
    lowest_cap_ = caps_.empty() ? kNoLevel : caps_.lowest();
    return false;
  }
  const Level reached = lowest_cap_;
  caps_.remove_lowest();
  lowest_cap_ = caps_.empty() ? kNoLevel : caps_.lowest();
  const ClassId id = resources_[reached.resource].owner;
  if (solved_[id].state != State::open) return false;
  fix(id, reached);
  ++work_;
  return true;
}

void MaxMin::fix(ClassId id, const Level& level) {
  solved_[id].state = State::filled;
  solved_[id].rate = level.rate;
  solved_[id].bottleneck = level.resource;
  for (const Use& use : uses(classes_[id])) {
    Filling& filling = fillings_[use.resource];
    const double weight = solved_[id].flows * static_cast<double>(use.times);
    filling.left -= weight * level.rate;
    filling.weight -= weight;
    filling.fastest = std::max(filling.fastest, level.rate);
  }
}

/// Opens the classes that are faster than those with their bottleneck at one of their resources,
/// and those whose own bottleneck is none any more. Whether there are any.
bool MaxMin::open_unsettled() {
  const std::size_t before = open_.size();
  const std::size_t concerned = concerned_.size();
  for (std::size_t i = 0; i < concerned; ++i) {
    const ResourceId id = concerned_[i];
    const Resource& resource = resources_[id];
    const Filling& filling = fillings_[id];
    const bool is_full = filling.left <= resource.bytes_per_tick * kRounding;
    const double minimum = is_full ? filling.fastest * (1 - kRounding) : filling.fastest * 2;
    const double maximum = filling.level * (1 + kRounding);
    if (filling.fastest_settled <= maximum && filling.slowest_held >= minimum) continue;
    for (const User& user : resource.users) {
      if (solved_[user.id].state != State::settled) continue;
      const double rate = solved_[user.id].rate;
      const bool is_unsettled =
          rate > maximum || (rate < minimum && solved_[user.id].bottleneck == id);
      if (is_unsettled) open(user.id);
    }
  }
  return open_.size() > before;
}

}  // namespace espalier
