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

/// An op that reads from several peers, and how often it uses which links for a byte of each.
struct Reading {
  const Op* op = nullptr;
  int peers = 0;
  std::map<ResourceId, int> uses;
};

/// All such ops, in the order of the program, and who reads over which link. In a folded program a
/// link stands for those of all groups, and so the first group's readers of other groups' peers for
/// the readers in other groups.
std::vector<Reading> readings_of(const Program& program, MachineResources& machine,
                                 std::map<ResourceId, std::set<Reader>>& readers) {
  std::vector<Reading> all;
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine || op.in_switch || op.src_count < 2) continue;
    Reading reading{&op};
    std::set<std::pair<ResourceId, Reader>> passed;
    for (const Operand& source : program.sources_of(op)) {
      if (source.place == op.at) continue;
      ++reading.peers;
      for (const ResourceId link : machine.path(source.place, op.at, op.via).resources) {
        ++reading.uses[link];
        passed.insert({link, {op.at, program.fold.group_of(source.place)}});
      }
    }
    if (reading.peers < 2) continue;
    for (const auto& [link, reader] : passed) readers[link].insert(reader);
    all.push_back(std::move(reading));
  }
  return all;
}

}  // namespace

Lockstep::Lockstep(const Program& program, double units, double bytes_per_unit,
                   MachineResources& machine) {
  if (!(units > 0) || !std::isfinite(units)) return;
  std::map<ResourceId, std::set<Reader>> readers;
  const std::vector<Reading> readings = readings_of(program, machine, readers);
  std::map<std::pair<PlaceId, std::uint16_t>, double> read;  // units so far, by lane
  for (const Reading& reading : readings) {
    const Op& op = *reading.op;
    double& before = read[{op.at, op.lane}];
    const double here = std::clamp(units - before, 0.0, static_cast<double>(op.length));
    before += op.length;
    if (here <= 0) continue;
    double at_once_s = 0;
    std::size_t sharing = 1;
    for (const auto& [link, uses] : reading.uses) {
      at_once_s = std::max(at_once_s, uses * here * bytes_per_unit / machine.bytes_per_s(link));
      sharing = std::max(sharing, readers[link].size());
    }
    sharing = std::min(sharing, static_cast<std::size_t>(reading.peers));
    if (sharing > 1) delays_s_[&op] = static_cast<double>(sharing - 1) * at_once_s;
  }
}

}  // namespace espalier
