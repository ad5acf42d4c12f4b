// SPDX-License-Identifier: Apache-2.0
// The machines that a study asks about, and their profiles.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "core/check.h"
#include "formats/machine.h"
#include "nccl/graph.h"
#include "run/blocks.h"
#include "scenarios/buildable.h"
#include "scenarios/study.h"
#include "scenarios/study_cache.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

/// Whether messages between ranks take the same ways on both.
bool has_same_routes(const Machine& a, const Machine& b) {
  for (const NodeId from : a.placement.ranks) {
    for (const NodeId to : a.placement.ranks) {
      const Route* const before = a.router->route(from, to);
      const Route* const now = b.router->route(from, to);
      if ((before == nullptr) != (now == nullptr)) return false;
      if (now != nullptr && before->hops != now->hops) return false;
    }
  }
  return true;
}

}  // namespace

std::string Study::Cache::machine_spec(const Query& query) {
  return query.topology.empty() ? fmt::format("full:n={},host_gbps=25", query.ranks)
                                : query.topology;
}

void Study::know_machine(const std::string& name, Topology machine) {
  cache_->topologies[name] = std::make_shared<const Topology>(std::move(machine));
  cache_->given.insert(name);
}

void Study::change_profile(const std::string& machine, const std::string& name, Profile profile) {
  const auto known = cache_->topologies.find(machine);
  CHECK(known != cache_->topologies.end());
  Topology changed = *known->second;
  changed.profiles[name] = std::move(profile);
  cache_->forget_times(name != kNcclLinksProfile);
  // The machines stay where they are: programs are known by their addresses.
  know_machine(machine, std::move(changed));
  for (Cache::MachineEntry& entry : cache_->machines) {
    auto& [key, made] = entry;
    const auto& [spec, gpus, relays, of_machine, links] = key;
    if (spec != machine) continue;
    Query query;
    query.topology = spec;
    query.gpus = gpus;
    query.relays = relays;
    query.profile = of_machine;
    query.links = links;
    Machine now = make(query);
    if (!has_same_routes(made, now)) cache_->forget_programs_of(made);
    made = std::move(now);
    cache_->note_ways(entry);
  }
}

Machine& Study::machine(const Query& query) {
  Machine& machine = load(query);
  if (query.root < 0 || query.root >= machine.ranks()) {
    throw Error(ErrorKind::usage,
                fmt::format("root {} is not one of the {} ranks", query.root, machine.ranks()),
                fmt::format("0 to {}", machine.ranks() - 1));
  }
  return machine;
}

Machine& Study::load(const Query& query) {
  const Cache::MachineKey key = Cache::machine_key(query);
  if (const auto known = cache_->machines.find(key); known != cache_->machines.end()) {
    return known->second;
  }
  const Stopwatch stopwatch(shared_s_);
  return cache_->keep(key, make(query));
}

Machine Study::make(const Query& query) {
  const Cache::MachineKey key = Cache::machine_key(query);
  Machine made;
  made.topology = topology(query);
  made.is_sized_by_ranks = cache_->given.contains(std::get<0>(key));
  made.router = std::make_unique<Router>(*made.topology,
                                         made.topology->shared_profile(query.profile), query.links);
  const Machine* const alike = cache_->routed_alike(key, *made.router);
  if (alike != nullptr) {
    made.router->share_ways(*alike->router);
    made.placement = alike->placement;
    const auto is_same = [&](const Router& known) {
      return &known.topology() == made.topology.get() && known.shares_ways(*made.router);
    };
    const Machine* const same = cache_->same_machine(key, is_same);
    if (same != nullptr) made.found = found_whatever_profile(*same->found);
  } else {
    made.placement = place_ranks(*made.router, query.gpus, query.relays);
  }
  const Profile& in_use = made.router->profile();
  if (const auto gpu = lacking_gpu(in_use.protocol, *made.topology, made.placement)) {
    const Node& node = made.topology->node(*gpu);
    throw Error(ErrorKind::usage,
                fmt::format("{} ({}) cannot use protocol {} of profile {}", node.name, node.model,
                            in_use.protocol.name, profile_word(query.profile).runtime),
                "leave the protocol open, or name another one");
  }
  for (const std::string& open : made.topology->open_profiles(query.profile)) {
    const auto profile = made.topology->shared_profile(open);
    if (profile->protocol.name == made.router->profile().protocol.name) continue;
    if (lacking_gpu(profile->protocol, *made.topology, made.placement)) continue;
    auto router = std::make_unique<Router>(*made.topology, profile, query.links);
    // Either will do; the known one has its links sorted already.
    const Router& known = alike != nullptr ? *alike->router : *made.router;
    if (router->goes_as(known)) router->share_ways(known);
    made.other_runtimes.push_back(std::move(router));
  }
  if (alike == nullptr) require_connected(made, query);
  return made;
}

std::shared_ptr<const Topology> Study::topology(const Query& query) {
  const std::string spec = Cache::machine_spec(query);
  if (const auto known = cache_->topologies.find(spec); known != cache_->topologies.end()) {
    return known->second;
  }
  auto made = std::make_shared<const Topology>(open_machine(spec));
  return cache_->topologies.emplace(spec, std::move(made)).first->second;
}

int Study::ranks(const Query& query) {
  return static_cast<int>(chosen_gpus(*topology(query), query.gpus).size());
}

}  // namespace espalier
