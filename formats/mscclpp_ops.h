// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/format.h"
#include "formats/mscclpp_plan.h"
#include "ir/program.h"

namespace espalier {

/// Says a program's ops as ops of a plan. What can't be said is a problem. Private to the room.
class MscclppOps {
 public:
  MscclppOps(const Program& program, const WritingOptions& options, MscclppPlan& plan);

  /// The op, without its channels.
  MscclppPlan::Op say(OpId id);
  MscclppPlan::Channel channel_between(int rank, int peer) const;
  const std::vector<Diagnostic>& problems() const { return problems_; }
  /// Combines whose sources are added up in another order than the program's.
  std::int64_t reordered() const { return reordered_; }

 private:
  bool same_host(int rank, int peer) const;
  MscclppPlan::Ref ref(const Operand& operand, std::uint32_t length, int at) const;
  void say_copy(OpId id, const Op& op, MscclppPlan::Op& said);
  void say_combine(OpId id, const Op& op, MscclppPlan::Op& said);
  void say_in_switch(OpId id, const Op& op, MscclppPlan::Op& said);
  /// The GPU's switch channel for these slices, one at each rank, made where there is none; -1
  /// where they do not lie at one place of one buffer of every rank.
  int group_of(int at, const std::vector<Operand>& operands);
  void refuse(OpId id, const std::string& why, const std::string& help);

  const Program& program_;
  const WritingOptions& options_;
  MscclppPlan& plan_;
  bool all_inputs_ = true;  ///< in place: every rank's buffer is all of its input
  std::int64_t reordered_ = 0;
  std::vector<Diagnostic> problems_;
};

}  // namespace espalier
