// SPDX-License-Identifier: Apache-2.0
#include "sim/fifo_credits.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/interruption.h"
#include "ir/access_tracker.h"

namespace espalier {
namespace {

/// Ops in switches go to buffers of their own.
bool is_sent(const Op& op) {
  return op.kind == OpKind::combine && op.dst.place != op.at && !op.in_switch;
}

}  // namespace

FifoCredits::FifoCredits(const Program& program, const Rounds& rounds, const Profile& profile,
                         double bytes_per_unit)
    : program_(program),
      rounds_(rounds),
      steps_(profile.fifo_steps),
      units_per_step_(bytes_per_unit > 0 ? profile.protocol.step_bytes / bytes_per_unit : 0),
      taken_(program.ops.size(), 0),
      has_reader_(program.ops.size(), false),
      fifo_of_(program.ops.size(), nullptr),
      unread_(static_cast<std::size_t>(program.places())) {
  CHECK(steps_ > 0);
  find_readers();
}

void FifoCredits::find_readers() {
  AccessTracker written;
  const auto ignore = [](OpId) {};
  const auto is_later = [](OpId) { return true; };  // one reader stands for all
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    check_interruption_at(id);
    // What a round sends is read in that round, or never.
    if (id >= rounds_.ops && id < rounds_.end()) {
      has_reader_[id] = has_reader_[id - rounds_.ops];
      continue;
    }
    const Op& op = program_.ops[id];
    if (op.kind != OpKind::combine) continue;
    for (const Operand& source : program_.sources_of(op)) {
      if (source.place != op.at) continue;
      written.read(
          id, packed_in_first_group(program_.fold, source, op.length), op.length,
          [&](OpId writer) { has_reader_[writer] = true; }, is_later);
    }
    for_each_destination(program_, op, [&](const Operand& dst) {
      written.write(id, packed_in_first_group(program_.fold, dst, op.length), op.length, ignore);
    });
  }
}

bool FifoCredits::take(OpId id, std::uint16_t block, std::size_t width) {
  const Op& op = program_.ops[rounds_.alike(id).op];
  if (!is_sent(op) || taken_[id] > 0) return true;
  const double units = op.length / static_cast<double>(std::max<std::size_t>(width, 1));
  const double steps = units_per_step_ > 0 ? std::ceil(units / units_per_step_) : 1;
  const double most = std::max(1, steps_ / 2);
  taken_[id] = -static_cast<int>(std::clamp(steps, 1.0, most));
  const std::uint64_t key = static_cast<std::uint64_t>(op.at) << 36 |
                            static_cast<std::uint64_t>(block) << 20 |
                            static_cast<std::uint64_t>(op.dst.place);
  fifo_of_[id] = &fifos_[key];
  if (may_begin(id)) return true;
  fifo_of_[id]->waiting.push_back(id);
  return false;
}

/// Takes the steps if they are free.
bool FifoCredits::may_begin(OpId id) {
  Fifo& fifo = *fifo_of_[id];
  const int wanted = -taken_[id];
  if (fifo.used + wanted > steps_) return false;
  fifo.used += wanted;
  taken_[id] = wanted;
  if (has_reader_[id]) {
    unread_[static_cast<std::size_t>(written_by(id).place)].push_back(id);
    ++unread_ops_;
  }
  return true;
}

/// Where the first group has it.
Slice FifoCredits::written_by(OpId id) const {
  const auto [like, ops_on, units_on] = rounds_.alike(id);
  const Op& op = program_.ops[like];
  Operand dst = op.dst;
  dst.begin += units_on;
  return slice(in_first_group(program_.fold, dst, op.length), op.length);
}

const std::vector<OpId>& FifoCredits::end(OpId id) {
  freed_.clear();
  const auto [like, ops_on, units_on] = rounds_.alike(id);
  const Op& op = program_.ops[like];
  if (op.kind != OpKind::combine) return freed_;
  std::vector<OpId> taken_out;
  if (is_sent(op) && taken_[id] > 0 && !has_reader_[id]) taken_out.push_back(id);
  if (taken_out.empty() && unread_ops_ == 0) return freed_;
  for (Operand source : program_.sources_of(op)) {
    if (source.place != op.at) continue;
    source.begin += units_on;
    const Slice read = slice(in_first_group(program_.fold, source, op.length), op.length);
    std::erase_if(unread_[static_cast<std::size_t>(read.place)], [&](OpId sent) {
      if (!overlap(written_by(sent), read)) return false;
      taken_out.push_back(sent);
      --unread_ops_;
      return true;
    });
  }
  for (const OpId one : taken_out) give_back(one);
  return freed_;
}

void FifoCredits::give_back(OpId id) {
  Fifo& fifo = *fifo_of_[id];
  fifo.used -= taken_[id];
  while (!fifo.waiting.empty() && may_begin(fifo.waiting.front())) {
    freed_.push_back(fifo.waiting.front());
    fifo.waiting.pop_front();
  }
}

bool FifoCredits::lacks_steps(OpId op) const { return taken_[op] < 0; }

}  // namespace espalier
