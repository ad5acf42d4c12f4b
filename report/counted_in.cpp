// SPDX-License-Identifier: Apache-2.0
#include "report/counted_in.h"

#include <fmt/format.h>

#include "core/words.h"
#include "ir/print.h"
#include "ir/rounds.h"

namespace espalier {

std::optional<CountedIn> counted_in(const RunReport& report, const OpTiming& timing) {
  const RepeatedRounds* const repeated = report.repeated();
  if (repeated == nullptr || timing.op < repeated->begin || timing.op >= repeated->end) {
    return std::nullopt;
  }
  const double period_s = repeated->period_s[timing.op - repeated->begin];
  const auto times = static_cast<double>(repeated->times);
  return CountedIn{timing.start_s + period_s, timing.end_s + times * period_s,
                   times * (timing.end_s - timing.start_s), repeated->times};
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
