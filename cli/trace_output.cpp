// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_output.h"

#include <fmt/format.h>

#include "core/words.h"

namespace espalier {

TraceOutput read_trace(Arguments& arguments) {
  constexpr std::int64_t kMostOps = 1'000'000'000;
  const std::int64_t ops = arguments.integer("--trace-ops", 0, kMostOps);
  if (arguments.given("--trace-ops") && !arguments.given("--trace")) {
    arguments.problem_of("--trace-ops", "there is no --trace to be limited", "--trace FILE");
  }
  return {arguments.output("--trace"), ops > 0 ? static_cast<std::size_t>(ops) : kAllOps};
}

void write_trace(const Console& console, const TraceOutput& output, const Trace& trace) {
  write_output(console, output.path, trace_file(trace, output.path));
  if (trace.left_out + trace.counted_in == 0) return;
  const std::string longest =
      trace.left_out > 0 ? fmt::format("the {} longest", trace.ops) : fmt::format("{}", trace.ops);
  const std::string rounds =
      trace.counted_in > 0 ? fmt::format(", as {} are a slice of each lane", trace.counted_rounds)
                           : "";
  say(console, fmt::format("note: {} has {} of {} ops{}: --trace-ops 0 writes all",
                           output.path == "-" ? "the trace" : quote(output.path), longest,
                           trace.ops + trace.left_out + trace.counted_in, rounds));
}

}  // namespace espalier
