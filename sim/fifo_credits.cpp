// SPDX-License-Identifier: Apache-2.0
#include "sim/fifo_credits.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/hash.h"

namespace espalier {

FifoCredits::FifoCredits(const Program& program, const Rounds& rounds, const SentData& sent,
                         const Profile& profile, double bytes_per_unit)
    : program_(program),
      rounds_(rounds),
      sent_(sent),
      steps_(profile.fifo_steps),
      units_per_step_(bytes_per_unit > 0 ? profile.protocol.step_bytes / bytes_per_unit : 0),
      taken_(program.ops.size(), 0),
      fifo_of_(program.ops.size(), nullptr) {
  CHECK(steps_ > 0);
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
  const std::uint32_t number = fifo_numbers_.number(mix64(key));
  if (number == fifos_.size()) fifos_.emplace_back();
  fifo_of_[id] = &fifos_[number];
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
  return true;
}

const std::vector<OpId>& FifoCredits::end(OpId id) {
  freed_.clear();
  if (!sent_.has_reader(id)) give_back(id);
  sent_.for_each_read(id, [&](OpId sent) { give_back(sent); });
  return freed_;
}

/// What it has.
void FifoCredits::give_back(OpId id) {
  if (taken_[id] <= 0) return;
  Fifo* const fifo = std::exchange(fifo_of_[id], nullptr);
  if (fifo == nullptr) return;
  fifo->used -= taken_[id];
  auto& waiting = fifo->waiting;
  auto first = waiting.begin();
  while (first != waiting.end() && may_begin(*first)) freed_.push_back(*first++);
  waiting.erase(waiting.begin(), first);
}

bool FifoCredits::lacks_steps(OpId op) const { return taken_[op] < 0; }

}  // namespace espalier
