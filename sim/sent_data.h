// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "ir/rounds.h"

namespace espalier {

/// Who reads what others have sent, at the place where it lies (see FifoCredits).
class SentData {
 public:
  /// A send, and an op that reads some of it.
  struct Read {
    OpId reader = 0;
    OpId sent = 0;
    bool operator==(const Read&) const = default;
  };

  /// Nothing is read.
  SentData() = default;
  /// `rounds`: of the program, to which it refers. What a round sends is read in that round, or
  /// never.
  SentData(const Program& program, const Rounds& rounds);
  /// Of a program of so many ops, without rounds.
  SentData(std::size_t ops, std::vector<Read> reads);

  bool has_reader(OpId sent) const {
    const OpId like = rounds_.alike(sent).op;
    return like < has_reader_.size() && has_reader_[like];
  }
  /// Calls `visit(OpId sent)` for everything that an op reads some of.
  template <class Visit>
  void for_each_read(OpId reader, Visit&& visit) const {
    if (reads_.empty()) return;
    const auto [like, ops_on, unused] = rounds_.alike(reader);
    for (std::size_t i = first_[like]; i < first_[like + 1]; ++i) visit(reads_[i].sent + ops_on);
  }

 private:
  void take(std::size_t ops, std::vector<Read> reads);

  Rounds rounds_;
  std::vector<Read> reads_;         ///< of the first round and of what follows the rounds, in order
  std::vector<std::size_t> first_;  ///< of these by reader, and the end
  std::vector<bool> has_reader_;    ///< by op
};

/// Whether an op puts data into a FIFO: ops in switches go to buffers of their own.
inline bool is_sent(const Op& op) {
  return op.kind == OpKind::combine && op.dst.place != op.at && !op.in_switch;
}

}  // namespace espalier
