// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/page/page.h"
#include "report/trace.h"

namespace espalier {

PagedRun iteration_run(Study& study, const TrainingOutcome& trained) {
  const Query& exchange = trained.query.exchange;
  PagedRun run;
  run.name = fmt::format("an iteration with {}", exchange.algorithm);
  run.machine = &study.machine(exchange);
  run.outcome.query = exchange;
  run.outcome.profile = exchange.profile;
  run.outcome.backend = "sim";
  run.outcome.ranks = trained.ranks;
  run.outcome.report = trained.report;
  run.outcome.program = std::make_shared<const Program>(trained.iteration.program);
  const OpName name = training_op_name(trained);
  for (OpId op = 0; op < trained.iteration.program.ops.size(); ++op)
    run.op_names.push_back(name(op));
  return run;
}

}  // namespace espalier
