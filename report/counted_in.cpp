// SPDX-License-Identifier: Apache-2.0
#include "report/counted_in.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"
#include "ir/print.h"
#include "ir/rounds.h"

namespace espalier {

CountedOps::CountedOps(const Program& program, const RunReport& report)
    : program_(program), repeated_(report.repeated()) {
  for (const OpTiming& timing : report.timeline) {
    if (!comes_again(timing)) continue;
    const Op& op = program.ops[timing.op];
    double& first_s = first_s_.try_emplace({op.at, op.lane}, timing.start_s).first->second;
    first_s = std::min(first_s, timing.start_s);
  }
}

bool CountedOps::comes_again(const OpTiming& timing) const {
  return repeated_ != nullptr && timing.op >= repeated_->begin && timing.op < repeated_->end;
}

std::optional<CountedIn> CountedOps::of(const OpTiming& timing) const {
  if (!comes_again(timing)) return std::nullopt;
  const Op& op = program_.ops[timing.op];
  const double period_s = repeated_->period_s[timing.op - repeated_->begin];
  const auto times = static_cast<double>(repeated_->times);
  const double start_s = first_s_.at({op.at, op.lane}) + period_s;
  return CountedIn{start_s, start_s + times * period_s, times * (timing.end_s - timing.start_s),
                   repeated_->times};
}

std::string counted_rounds(const RepeatedRounds& repeated) {
  const std::string before = repeated.rounds == 1 ? "one" : fmt::format("{}", repeated.rounds);
  return fmt::format("{} like the {} before", counted(repeated.times * repeated.rounds, "round"),
                     before);
}

std::string op_text(const Program& program, const RunReport& report, OpId simulated) {
  const RepeatedRounds* const repeated = report.repeated();
  if (repeated == nullptr) return to_string(program, simulated);
  const RepeatedRounds::Like like = repeated->like(repeated->number(simulated));
  return to_string(
      op_further_on(program, simulated, like.ops_on, like.units_on, repeated->units_longer()), 0);
}

}  // namespace espalier
