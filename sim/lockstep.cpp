// SPDX-License-Identifier: Apache-2.0
#include "sim/lockstep.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/keep_one_of_each.h"
#include "ir/lane_numbers.h"
#include "run/transfer_key.h"

namespace espalier {
namespace {

/// Who reads over a link: a place; of a folded program, the one of the group so many before its
/// own.
using Reader = std::pair<PlaceId, int>;

/// How ops read several peers: at one place, from the same ones in the same order, by the same way.
struct Reading {
  /// How often which link, for a byte of each peer.
  struct Use {
    MachineResources::Passed link;
    int times = 0;
  };
  const Op* example = nullptr;
  int peers = 0;
  std::vector<Use> uses = {};
  std::size_t sharing = 1;  ///< the most that read over one of the links, but no more than peers
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
      if (reads(op)) number_by_op_.push_back(number_of(op));
    }
    for (auto& readers : readers_) keep_one_of_each(readers);
    for (Reading& reading : all_) reading.sharing = sharing(reading);
  }

  /// Whether it may read several peers.
  static bool reads(const Op& op) {
    return op.kind == OpKind::combine && !op.in_switch && op.src_count >= 2;
  }

  /// Whether any op reads several peers.
  bool any() const { return !readers_.empty(); }

  /// Of the op for which `reads` holds so many ops after the first such one; null of one that reads
  /// only one peer beside its own place.
  const Reading* of(std::size_t turn) const {
    const Reading& reading = all_[number_by_op_[turn]];
    return reading.peers < 2 ? nullptr : &reading;
  }

 private:
  std::size_t sharing(const Reading& reading) const {
    std::size_t most = 1;
    if (reading.peers < 2) return most;
    for (const Reading::Use& use : reading.uses) {
      const auto count = static_cast<double>(readers_[use.link.link].size()) / use.link.per_group;
      most = std::max(most, static_cast<std::size_t>(std::lround(count)));
    }
    return std::min(most, static_cast<std::size_t>(reading.peers));
  }

  std::uint32_t number_of(const Op& op) {
    const std::uint32_t number = numbers_.number(
        hash_of(op), [&](std::uint32_t known) { return is_same(*all_[known].example, op); });
    if (number == all_.size()) add(op);
    return number;
  }

  void add(const Op& op) {
    Reading& reading = all_.emplace_back(Reading{.example = &op});
    std::vector<MachineResources::Passed> passed;
    for (const Operand& source : program_.sources_of(op)) {
      if (source.place == op.at) continue;
      ++reading.peers;
      const auto& links = passed_from(source.place, op);
      passed.insert(passed.end(), links.begin(), links.end());
    }
    if (reading.peers < 2) return;
    std::ranges::sort(passed, {}, [](const auto& one) { return std::pair(one.link, one.moves); });
    for (const MachineResources::Passed& link : passed) {
      if (reading.uses.empty() || reading.uses.back().link != link) reading.uses.push_back({link});
      ++reading.uses.back().times;
    }
    readers_.resize(std::max(readers_.size(), machine_.resources()));
    for (const Reading::Use& use : reading.uses) {
      readers_[use.link.link].emplace_back(op.at, use.link.moves);
    }
  }

  const std::vector<MachineResources::Passed>& passed_from(PlaceId source, const Op& op) {
    const std::uint32_t number = ways_.number(transfer_key(source, op.at, op.via));
    if (number == passed_.size()) {
      passed_.push_back(machine_.links_passed(source, op.at, op.via));
    }
    return passed_[number];
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
  HashNumbers numbers_;                      ///< of readings
  std::vector<std::uint32_t> number_by_op_;  ///< of those that may read several peers
  HashNumbers ways_;
  std::vector<std::vector<MachineResources::Passed>> passed_;  ///< by way
  std::vector<std::vector<Reader>> readers_;  ///< by link: in a folded program, by all like it
};

}  // namespace

bool reads_several_peers(const Program& program, const Op& op) {
  return std::ranges::count_if(program.sources_of(op),
                               [&](const Operand& source) { return source.place != op.at; }) > 1;
}

Lockstep::Lockstep(const Program& program, double units, double bytes_per_unit,
                   MachineResources& machine)
    : units_(units), bytes_per_unit_(bytes_per_unit) {
  if (!(units > 0) || !std::isfinite(units)) return;
  Readings readings(program, machine);
  if (!readings.any()) return;
  LaneNumbers lanes;
  std::vector<double> read;  // units so far, by lane
  std::size_t turn = 0;      // of those that may read several peers
  for (const Op& op : program.ops) {
    if (!Readings::reads(op)) continue;
    const Reading* const reading = readings.of(turn++);
    const std::uint32_t lane = lanes.number(op.at, op.lane);
    if (read.size() < lanes.size()) read.resize(lanes.size());
    if (read[lane] >= units || reading == nullptr) continue;
    const double before = std::exchange(read[lane], read[lane] + op.length);
    if (reading->sharing < 2) continue;
    double s_a_byte = 0;  // of all peers at once
    for (const auto& [link, times] : reading->uses) {
      s_a_byte = std::max(s_a_byte, times * link.per_group / machine.bytes_per_s(link.link));
    }
    reads_[&op] = {before, static_cast<double>(reading->sharing - 1) * s_a_byte};
  }
}

double Lockstep::seconds(const Reads& reads, const Op& op, double units, double bytes_per_unit) {
  if (reads.lost_s_a_byte == 0) return 0;
  const double here = std::min(units - reads.units_before, static_cast<double>(op.length));
  return std::max(here, 0.0) * bytes_per_unit * reads.lost_s_a_byte;
}

}  // namespace espalier
