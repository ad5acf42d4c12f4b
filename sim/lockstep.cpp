// SPDX-License-Identifier: Apache-2.0
#include "sim/lockstep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace espalier {
namespace {

/// Who reads over a link: a place, and of a folded program also how many groups further on it
/// reads.
using Reader = std::pair<PlaceId, int>;

/// Several peers that are read from at once, and how often that uses which links for a byte of
/// each.
struct Peers {
  int count = 0;
  std::map<ResourceId, int> uses;
};

/// An op that reads from them.
struct Reading {
  const Op* op = nullptr;
  std::size_t peers = 0;  ///< which of Readings::peers
};

struct Readings {
  std::vector<Reading> all;  ///< in the order of the program
  std::vector<Peers> peers;
  std::map<ResourceId, std::set<Reader>> readers;  ///< who reads over a link
};

/// Whether ops read from the same places by the same way, as pieces of one op do.
bool reads_alike(const Program& program, const Op& a, const Op& b) {
  return a.at == b.at && a.via == b.via &&
         std::ranges::equal(program.sources_of(a), program.sources_of(b), {}, &Operand::place,
                            &Operand::place);
}

/// In a folded program a link stands for those of all groups, and so the first group's readers of
/// other groups' peers for the readers in other groups.
Peers peers_of(const Program& program, const Op& op, MachineResources& machine,
               std::map<ResourceId, std::set<Reader>>& readers) {
  Peers peers;
  std::vector<std::pair<ResourceId, Reader>> passed;
  for (const Operand& source : program.sources_of(op)) {
    if (source.place == op.at) continue;
    ++peers.count;
    for (const ResourceId link : machine.path(source.place, op.at, op.via).resources) {
      ++peers.uses[link];
      passed.push_back({link, {op.at, program.fold.group_of(source.place)}});
    }
  }
  if (peers.count < 2) return {};
  for (const auto& [link, reader] : passed) readers[link].insert(reader);
  return peers;
}

Readings readings_of(const Program& program, MachineResources& machine) {
  Readings readings;
  const Op* last = nullptr;  // that is looked at
  bool is_reading = false;   // from several peers
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine || op.in_switch || op.src_count < 2) continue;
    if (last == nullptr || !reads_alike(program, *last, op)) {
      Peers peers = peers_of(program, op, machine, readings.readers);
      is_reading = peers.count > 0;
      if (is_reading) readings.peers.push_back(std::move(peers));
    }
    last = &op;
    if (is_reading) readings.all.push_back({&op, readings.peers.size() - 1});
  }
  return readings;
}

}  // namespace

Lockstep::Lockstep(const Program& program, double units, double bytes_per_unit,
                   MachineResources& machine) {
  if (!(units > 0) || !std::isfinite(units)) return;
  const Readings readings = readings_of(program, machine);
  std::map<std::pair<PlaceId, std::uint16_t>, double> read;  // units so far, by lane
  for (const Reading& reading : readings.all) {
    const Op& op = *reading.op;
    const Peers& peers = readings.peers[reading.peers];
    double& before = read[{op.at, op.lane}];
    const double here = std::clamp(units - before, 0.0, static_cast<double>(op.length));
    before += op.length;
    if (here <= 0) continue;
    double at_once_s = 0;
    std::size_t sharing = 1;
    for (const auto& [link, uses] : peers.uses) {
      at_once_s = std::max(at_once_s, uses * here * bytes_per_unit / machine.bytes_per_s(link));
      sharing = std::max(sharing, readings.readers.at(link).size());
    }
    sharing = std::min(sharing, static_cast<std::size_t>(peers.count));
    if (sharing > 1) delays_s_[&op] = static_cast<double>(sharing - 1) * at_once_s;
  }
}

}  // namespace espalier
