// SPDX-License-Identifier: Apache-2.0
#include "topologies/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/check.h"
#include "core/words.h"
#include "topologies/profile_file.h"
#include "topologies/synonyms.h"

namespace espalier {
namespace {

/// Between two rates at some `part` of the way from one to the other: times are in between.
double between(double rate, double other, double part) {
  const auto time = [](double of_rate) { return of_rate > 0 ? 1 / of_rate : 0; };
  const double mixed = (1 - part) * time(rate) + part * time(other);
  return mixed > 0 ? 1 / mixed : 0;
}

ExchangeRates between(const ExchangeRates& rates, const ExchangeRates& other, double part) {
  const auto of = [&](Arrival arrival) {
    return between(rates.of(arrival), other.of(arrival), part);
  };
  return {of(Arrival::fresh), of(Arrival::unchanged), of(Arrival::passed_on)};
}

MemoryRates between(const MemoryRates& rates, const MemoryRates& other, double part) {
  return {between(rates.gbps, other.gbps, part),
          between(rates.reduce_gbps, other.reduce_gbps, part),
          between(rates.exchange, other.exchange, part)};
}

/// `beyond`: those that hold from twice the bytes of the last one on.
MemoryRates rates_at(const std::vector<WorkingSet>& sets, MemoryRates WorkingSet::*rates,
                     const MemoryRates& beyond, double bytes) {
  const auto next = std::ranges::lower_bound(sets, bytes, {}, &WorkingSet::bytes);
  const bool is_last = next == sets.end();
  if (is_last && (sets.empty() || bytes >= 2 * sets.back().bytes)) return beyond;
  if (next == sets.begin()) return (*next).*rates;
  const WorkingSet& below = *std::prev(next);
  const double above_bytes = is_last ? 2 * below.bytes : next->bytes;
  const double part = std::log(bytes / below.bytes) / std::log(above_bytes / below.bytes);
  return between(below.*rates, is_last ? beyond : (*next).*rates, part);
}

/// The profile of a name, or the one that takes its place here (Profile::on_models).
ProfileSet::Map::const_iterator profile_here(const Topology& machine, const std::string& name) {
  const auto named = machine.profiles.find(name);
  if (named == machine.profiles.end() || named->second.on_models.empty()) return named;
  const std::vector<NodeId> gpus = machine.gpus();
  for (const auto& row : named->second.on_models) {
    const bool are_such = std::ranges::all_of(
        gpus, [&](NodeId gpu) { return machine.node(gpu).model.starts_with(row.first); });
    const auto other = machine.profiles.find(row.second);
    if (are_such && !gpus.empty() && other != machine.profiles.end()) return other;
  }
  return named;
}

}  // namespace

double ExchangeRates::of(Arrival arrival) const {
  const double own_gbps = arrival == Arrival::unchanged   ? unchanged_gbps
                          : arrival == Arrival::passed_on ? passed_on_gbps
                                                          : gbps;
  return own_gbps > 0 ? own_gbps : gbps;
}

MemoryRates SharedMemory::all_at(double bytes) const {
  return rates_at(working_sets, &WorkingSet::all, *this, bytes);
}

MemoryRates SharedMemory::one_at(double bytes, const MemoryRates& own) const {
  return rates_at(working_sets, &WorkingSet::one, own, bytes);
}

bool Topology::has_working_sets() const {
  return std::ranges::any_of(memories,
                             [](const auto& one) { return !one.second.working_sets.empty(); });
}

std::vector<NodeId> Topology::gpus() const {
  std::vector<NodeId> ids;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == NodeKind::gpu) ids.push_back(static_cast<NodeId>(i));
  }
  return ids;
}

std::optional<NodeId> Topology::find(std::string_view node_name) const {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name == node_name) return static_cast<NodeId>(i);
  }
  return std::nullopt;
}

namespace {

/// The profile of that name, or of that file, which is read into `of_file`. Throws Error{usage}
/// with did-you-mean, Error{input} for a file that is wrong.
const Profile& find_profile(const Topology& machine, const std::string& runtime,
                            std::optional<Profile>& of_file) {
  if (names_profile_file(runtime)) return of_file.emplace(read_profile_file(runtime, machine));
  if (const auto found = profile_here(machine, runtime); found != machine.profiles.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [known, unused] : machine.profiles) names.push_back(known);
  throw Error(ErrorKind::usage, machine.name + " has no profile " + quote(runtime),
              did_you_mean(runtime, names, profile_synonyms()));
}

}  // namespace

Profile Topology::profile(const std::string& spec) const { return *shared_profile(spec); }

std::shared_ptr<const Profile> Topology::shared_profile(const std::string& spec) const {
  const ProfileWord word = profile_word(spec);
  std::optional<Profile> of_file;
  const Profile& profile = find_profile(*this, word.runtime, of_file);
  const std::vector<Protocol>& known = profile.protocols;
  if (!word.protocol.empty() && std::ranges::count(known, word.protocol, &Protocol::name) == 0) {
    std::vector<std::string> protocols;
    for (const Protocol& protocol : known) protocols.push_back(protocol.name);
    throw Error(
        ErrorKind::usage,
        fmt::format("profile {} has no protocol {}", quote(word.runtime), quote(word.protocol)),
        protocols.empty() ? "it has no protocols at all" : did_you_mean(word.protocol, protocols));
  }
  if (of_file) return std::make_shared<const Profile>(of_file->in_use(word.protocol));
  return profiles.in_use(profile_here(*this, word.runtime)->first, word.protocol);
}

bool Topology::is_like(const std::string& profile, const std::string& other) const {
  std::optional<Profile> of_file, other_of_file;
  const std::string& here = find_profile(*this, other, other_of_file).name;
  const Profile* one = &find_profile(*this, profile, of_file);
  while (one->name != other && one->name != here) {
    const auto known = profiles.find(one->like);
    if (known == profiles.end()) return false;
    one = &known->second;
  }
  return true;
}

std::vector<std::string> Topology::open_profiles(const std::string& spec) const {
  const ProfileWord word = profile_word(spec);
  std::optional<Profile> of_file;
  const Profile& profile = find_profile(*this, word.runtime, of_file);
  if (!word.protocol.empty() || profile.protocols.empty()) return {spec};
  std::vector<std::string> specs;
  for (const Protocol& protocol : profile.protocols) {
    specs.push_back(word.runtime + ":" + protocol.name);
  }
  return specs;
}

std::string_view to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu:
      return "gpu";
    case NodeKind::cpu:
      return "cpu";
    case NodeKind::pcie_switch:
      return "pcie_switch";
    case NodeKind::nvswitch:
      return "nvswitch";
    case NodeKind::nic:
      return "nic";
    case NodeKind::fabric:
      return "fabric";
  }
  CHECK(false);
}

std::string_view to_string(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::gpu_fabric:
      return "gpu_fabric";
    case LinkClass::host:
      return "host";
    case LinkClass::network:
      return "network";
  }
  CHECK(false);
}

std::string_view to_string(Duplex duplex) {
  switch (duplex) {
    case Duplex::full:
      return "full";
    case Duplex::half:
      return "half";
    case Duplex::shared:
      return "shared";
  }
  CHECK(false);
}

std::string link_name(const Topology& topology, LinkId link, bool forward) {
  const Link& named = topology.link(link);
  if (named.duplex == Duplex::shared) return fmt::format("{} {}", named.medium, named.kind);
  const auto name = [&](NodeId node) -> const std::string& { return topology.node(node).name; };
  const std::string text = fmt::format("{}{}{} {}", name(forward ? named.a : named.b),
                                       named.duplex == Duplex::half ? "<->" : "->",
                                       name(forward ? named.b : named.a), named.kind);
  return named.count > 1 ? fmt::format("{} x{}", text, named.count) : text;
}

}  // namespace espalier
