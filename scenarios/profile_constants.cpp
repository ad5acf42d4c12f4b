// SPDX-License-Identifier: Apache-2.0
#include "scenarios/profile_constants.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/words.h"

namespace espalier {
namespace {

constexpr double kMicrosecond = 1e-6;

// Limits of what is looked for, far from what any machine has: estimates.
constexpr double kMinUs = 1e-3;
constexpr double kMaxUs = 1e5;
constexpr double kMinGbps = 1e-2;
constexpr double kMaxGbps = 1e4;
constexpr double kMinEfficiency = 1e-3;
constexpr double kMaxWire = 100;

ProfileConstant microseconds(std::vector<std::string> path,
                             std::function<double&(Profile&)> figure) {
  ProfileConstant constant;
  constant.path = std::move(path);
  constant.unit = "us";
  constant.scale = kMicrosecond;
  constant.minimum = kMinUs;
  constant.maximum = kMaxUs;
  constant.figure = std::move(figure);
  return constant;
}

/// The protocol of that name in a profile. \pre there is one
Protocol& protocol_of(Profile& profile, const std::string& name) {
  const auto found = std::ranges::find(profile.protocols, name, &Protocol::name);
  CHECK(found != profile.protocols.end());
  return *found;
}

using Constants = std::vector<ProfileConstant>;
using Concerns = std::function<bool(const Outcome& answer)>;

Concerns answers_under(const std::string& protocol) {
  return [protocol](const Outcome& answer) { return answer.protocol == protocol; };
}

bool has_ops_in_switches(const Outcome& answer) {
  return std::ranges::any_of(answer.program->ops, &Op::in_switch);
}

/// The cost of a launch in a profile, by its `since`. \pre it has one
LaunchCost& cost_since(Profile& profile, LaunchMode mode, int since) {
  if (mode == LaunchMode::per_gpu) return profile.launch.per_gpu.value();
  const auto found = std::ranges::find(profile.launch.single, since, &LaunchCost::since);
  CHECK(found != profile.launch.single.end());
  return *found;
}

/// Before what a call costs GPUs: hosts differ more. With a process for every GPU they show where
/// the host is slower than its GPU, and with graphs never.
void add_launches(const Profile& profile, const Traffic& traffic, Constants& constants) {
  const std::pair<const char*, double LaunchCost::*> figures[] = {
      {"call_us", &LaunchCost::call_s}, {"block_us", &LaunchCost::block_s}};
  std::set<std::pair<LaunchMode, int>> known;  // several versions may share a cost
  for (const auto& [mode, version] : traffic.launches) {
    const LaunchCost* const cost = launch_cost(profile.launch, mode, version);
    if (cost == nullptr || !known.emplace(mode, cost->since).second) continue;
    std::vector<std::string> place = {"launch", std::string(to_string(mode))};
    if (mode == LaunchMode::single) place.push_back(version_text(cost->since));
    for (const auto& [key, figure] : figures) {
      std::vector<std::string> path = place;
      path.emplace_back(key);
      ProfileConstant constant = microseconds(
          path, [mode = mode, since = cost->since, figure = figure](Profile& changed) -> double& {
            return cost_since(changed, mode, since).*figure;
          });
      constant.concerns = [costs = profile.launch, mode = mode,
                           since = cost->since](const Outcome& answer) {
        return answer.query.launch == mode &&
               launch_cost(costs, mode, answer.library_version)->since == since;
      };
      constant.of_launch = constant.is_local = true;
      constants.push_back(std::move(constant));
    }
  }
}

void add_call(const Profile&, const Traffic&, Constants& constants) {
  constants.push_back(microseconds(
      {"call_overhead_us"}, [](Profile& profile) -> double& { return profile.call_overhead_s; }));
}

/// Those whose bandwidth is rather known from measurements first: where two in a row are as fast,
/// nothing tells which one is the limit.
std::vector<std::string> by_class(const std::map<std::string, LinkClass>& link_kinds) {
  std::vector<std::string> kinds;
  for (const LinkClass one : {LinkClass::gpu_fabric, LinkClass::network, LinkClass::host}) {
    for (const auto& [kind, link_class] : link_kinds) {
      if (link_class == one) kinds.push_back(kind);
    }
  }
  return kinds;
}

bool is_local(const Traffic& traffic, const std::string& kind) {
  return traffic.link_kinds.at(kind) != LinkClass::gpu_fabric;
}

void add_efficiencies(const Profile&, const Traffic& traffic, Constants& constants) {
  for (const std::string& kind : by_class(traffic.link_kinds)) {
    ProfileConstant constant;
    constant.path = {"links", kind, "efficiency"};
    constant.minimum = kMinEfficiency;
    constant.maximum = 1;
    constant.is_local = is_local(traffic, kind);
    constant.figure = [kind](Profile& profile) -> double& {
      return profile.links[kind].efficiency;
    };
    constants.push_back(std::move(constant));
  }
}

/// Of copies by engines, which have no protocols.
void add_overheads(const Profile& profile, const Traffic& traffic, Constants& constants) {
  if (!profile.protocols.empty()) return;
  for (const std::string& kind : by_class(traffic.link_kinds)) {
    constants.push_back(microseconds(
        {"links", kind, "overhead_us"},
        [kind](Profile& changed) -> double& { return changed.links[kind].overhead_s; }));
    constants.back().is_local = is_local(traffic, kind);
  }
}

void add_hops(const Profile&, const Traffic& traffic, Constants& constants) {
  std::set<LinkClass> classes;
  for (const auto& [unused, link_class] : traffic.link_kinds) classes.insert(link_class);
  for (const std::string& protocol : traffic.protocols) {
    for (const LinkClass one : classes) {
      constants.push_back(
          microseconds({"protocols", protocol, "hop_us", std::string(to_string(one))},
                       [protocol, one](Profile& profile) -> double& {
                         return protocol_of(profile, protocol).hop_s[one];
                       }));
      constants.back().concerns = answers_under(protocol);
      constants.back().is_local = one != LinkClass::gpu_fabric;
    }
  }
}

/// The key under which a table by beginnings of models has a model's figure: one that is there
/// already, or else the model's first word.
std::string key_of(const std::map<std::string, double>& by_model, const std::string& model) {
  std::string key;
  for (const auto& [beginning, unused] : by_model) {
    if (model.starts_with(beginning) && beginning.size() > key.size()) key = beginning;
  }
  return key.empty() ? model.substr(0, model.find('-')) : key;
}

void add_block_rates(const Profile& profile, const Traffic& traffic, Constants& constants) {
  for (const std::string& protocol : traffic.protocols) {
    const auto known = std::ranges::find(profile.protocols, protocol, &Protocol::name);
    if (known == profile.protocols.end()) continue;
    std::set<std::string> keys;
    for (const std::string& model : traffic.models) {
      const double gbps = figure_of(known->block_gbps, model);
      const std::string key = key_of(known->block_gbps, model);
      if (key.empty() || !keys.insert(key).second) continue;
      ProfileConstant constant;
      constant.path = {"protocols", protocol, "block_gbps", key};
      constant.unit = "GB/s";
      constant.minimum = kMinGbps;
      constant.maximum = kMaxGbps;
      constant.concerns = answers_under(protocol);
      constant.figure = [protocol, key, gbps](Profile& changed) -> double& {
        auto& rates = protocol_of(changed, protocol).block_gbps;
        return rates.try_emplace(key, gbps).first->second;
      };
      constants.push_back(std::move(constant));
    }
  }
}

/// The key under which a profile has what ops in switches cost for a model.
std::string switch_key(const Profile& profile, const std::string& model) {
  const SwitchOps* const ops = profile.switch_ops(model, false);
  for (const auto& [key, one] : profile.in_switch) {
    if (&one == ops) return key;
  }
  return {};
}

void add_switch_ops(const Profile& profile, const Traffic& traffic, Constants& constants) {
  if (!traffic.in_switch) return;
  std::set<std::string> keys;
  for (const std::string& model : traffic.models) keys.insert(switch_key(profile, model));
  keys.erase("");
  for (const std::string& key : keys) {
    ProfileConstant wire;
    wire.path = {"in_switch", key, "wire"};
    wire.minimum = 1;
    wire.maximum = kMaxWire;
    wire.figure = [key](Profile& changed) -> double& { return changed.in_switch[key].wire; };
    Constants costs = {
        std::move(wire),
        microseconds({"in_switch", key, "call_us"},
                     [key](Profile& changed) -> double& { return changed.in_switch[key].call_s; }),
        microseconds({"in_switch", key, "slice_us"}, [key](Profile& changed) -> double& {
          return changed.in_switch[key].slice_s;
        })};
    for (ProfileConstant& cost : costs) {
      cost.concerns = has_ops_in_switches;
      constants.push_back(std::move(cost));
    }
  }
}

/// What may be fitted, one row for each kind of constant.
using AddConstants = void (*)(const Profile& profile, const Traffic& traffic, Constants& constants);
constexpr AddConstants kKinds[] = {
    add_launches,      // of the modes and versions in use
    add_call,          // of a collective
    add_efficiencies,  // of each kind of link in use
    add_overheads,     // of a transfer, where there are no protocols
    add_hops,          // of each protocol and class of links in use
    add_block_rates,   // of each protocol, for the GPUs in use
    add_switch_ops,    // NVLS and the like
};

}  // namespace

std::string ProfileConstant::name() const { return join(path, "."); }

double ProfileConstant::value(Profile profile) const { return figure(profile) / scale; }

void ProfileConstant::set(Profile& profile, double value) const { figure(profile) = value * scale; }

void Traffic::add(const Outcome& outcome, const Topology& machine,
                  const std::vector<NodeId>& ranks) {
  std::map<std::string, const Link*> by_name;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    for (const bool forward : {true, false}) {
      by_name[link_name(machine, static_cast<LinkId>(i), forward)] = &machine.links[i];
    }
  }
  for (const LinkUse& use : outcome.report.simulated->links) {
    const auto found = by_name.find(use.name);
    if (!use.is_link || use.bytes <= 0 || found == by_name.end()) continue;
    link_kinds[found->second->kind] = found->second->link_class;
  }
  if (!outcome.protocol.empty()) protocols.insert(outcome.protocol);
  for (const NodeId rank : ranks) {
    if (!machine.node(rank).model.empty()) models.insert(machine.node(rank).model);
  }
  in_switch = in_switch || has_ops_in_switches(outcome);
  launches.emplace(outcome.query.launch, outcome.library_version);
}

bool Traffic::in_fabric() const {
  return std::ranges::all_of(link_kinds,
                             [](const auto& kind) { return kind.second == LinkClass::gpu_fabric; });
}

std::vector<ProfileConstant> constants_in_use(const Profile& profile, const Traffic& traffic) {
  Constants constants;
  for (const AddConstants add : kKinds) add(profile, traffic, constants);
  // A figure of 0 has no relative change; it says that the runtime has no such cost.
  std::erase_if(constants, [&](const ProfileConstant& constant) {
    const double value = constant.value(profile);
    return value < constant.minimum || value > constant.maximum;
  });
  return constants;
}

}  // namespace espalier
