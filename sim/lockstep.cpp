// SPDX-License-Identifier: Apache-2.0
#include "sim/lockstep.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "ir/lane_numbers.h"

namespace espalier {
namespace {

/// Who reads over a link: a place; of a folded program, the one of the group so many before its
/// own.
using Reader = std::pair<PlaceId, int>;

/// How ops read several peers: at one place, from the same ones in the same order, by the same way.
struct Reading {
  const Op* example = nullptr;
  int peers = 0;
  std::map<ResourceId, int> uses;  ///< how often which links, for a byte of each
};

/// The readings of a program, each looked at once for all pieces that an op is cut into; and who
/// reads over which link. In a folded program a link stands for those of all groups: what the first
/// group reads over a later group's link, a group as much earlier reads over the first one's.
class Readings {
 public:
  /// Refers to its arguments.
  Readings(const Program& program, MachineResources& machine)
      : program_(program), machine_(machine) {
    for (const Op& op : program.ops) {
      if (reads(op)) number_of(op);
    }
  }

  /// Whether it may read several peers.
  static bool reads(const Op& op) {
    return op.kind == OpKind::combine && !op.in_switch && op.src_count >= 2;
  }

  /// Whether any op reads several peers.
  bool any() const { return !readers_.empty(); }

  /// Null of one that reads only one beside its own place. \pre reads
  const Reading* of(const Op& op) {
    const Reading& reading = all_[number_of(op)];
    return reading.peers < 2 ? nullptr : &reading;
  }

  /// The most that read over one of the links.
  std::size_t sharing(const Reading& reading) const {
    std::size_t most = 1;
    for (const auto& [link, uses] : reading.uses) {
      const Readers& readers = readers_.at(link);
      const auto count = static_cast<double>(readers.known.size()) / readers.per_group;
      most = std::max(most, static_cast<std::size_t>(std::lround(count)));
    }
    return std::min(most, static_cast<std::size_t>(reading.peers));
  }

 private:
  std::size_t number_of(const Op& op) {
    const std::uint32_t number = numbers_.number(
        hash_of(op), [&](std::uint32_t known) { return is_same(*all_[known].example, op); });
    if (number == all_.size()) add(op);
    return number;
  }

  void add(const Op& op) {
    Reading& reading = all_.emplace_back(Reading{&op, 0, {}});
    std::set<MachineResources::Passed> passed;
    for (const Operand& source : program_.sources_of(op)) {
      if (source.place == op.at) continue;
      ++reading.peers;
      for (const ResourceId link : machine_.path(source.place, op.at, op.via).resources) {
        ++reading.uses[link];
      }
      for (const auto& one : machine_.links_passed(source.place, op.at, op.via)) {
        passed.insert(one);
      }
    }
    if (reading.peers < 2) return;
    for (const auto& [link, moves, per_group] : passed) {
      readers_[link].per_group = per_group;
      readers_[link].known.insert({op.at, moves});
    }
  }

  std::uint64_t hash_of(const Op& op) const {
    std::uint64_t hash =
        mix64(static_cast<std::uint64_t>(op.at) << 16 ^ static_cast<std::uint16_t>(op.via));
    for (const Operand& source : program_.sources_of(op)) {
      hash = mix64(hash ^ static_cast<std::uint64_t>(source.place));
    }
    return hash;
  }

  bool is_same(const Op& a, const Op& b) const {
    return a.at == b.at && a.via == b.via &&
           std::ranges::equal(program_.sources_of(a), program_.sources_of(b), {}, &Operand::place,
                              &Operand::place);
  }

  const Program& program_;
  MachineResources& machine_;
  std::vector<Reading> all_;
  HashNumbers numbers_;  ///< of readings
  /// Each stands for those of all groups, among which its links are shared out.
  struct Readers {
    std::set<Reader> known;
    double per_group = 1;
  };
  std::map<ResourceId, Readers> readers_;  ///< by link
};

}  // namespace

Lockstep::Lockstep(const Program& program, double units, double bytes_per_unit,
                   MachineResources& machine) {
  if (!(units > 0) || !std::isfinite(units)) return;
  Readings readings(program, machine);
  if (!readings.any()) return;
  LaneNumbers lanes;
  std::vector<double> read;  // units so far, by lane
  for (const Op& op : program.ops) {
    if (!Readings::reads(op)) continue;
    const std::uint32_t lane = lanes.number(op.at, op.lane);
    if (read.size() < lanes.size()) read.resize(lanes.size());
    if (read[lane] >= units) continue;
    const Reading* const reading = readings.of(op);
    if (reading == nullptr) continue;
    const double here = std::min(units - read[lane], static_cast<double>(op.length));
    read[lane] += op.length;
    double at_once_s = 0;
    for (const auto& [link, uses] : reading->uses) {
      at_once_s = std::max(at_once_s, uses * here * bytes_per_unit / machine.bytes_per_s(link));
    }
    const std::size_t sharing = readings.sharing(*reading);
    if (sharing > 1) delays_s_[&op] = static_cast<double>(sharing - 1) * at_once_s;
  }
}

}  // namespace espalier
