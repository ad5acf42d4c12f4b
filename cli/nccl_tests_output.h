// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/sweep.h"
#include "formats/measured_tables.h"
#include "scenarios/answers.h"

namespace espalier {

/// Size, elements, type, operator and root of an answer, in the words of nccl-tests; no times.
MeasuredRow row_of(const Outcome& outcome);

/// The answers about one algorithm, as a table of nccl-tests: a row for every size, with both
/// halves where it ran in place and not. Ranks are the GPUs of the machine in simulations, and
/// those of this computer otherwise. \pre something ran
MeasuredTable measured_table(Study& study, const Answers& answers);

/// Where --nccl-tests writes, and since when it runs.
struct NcclTestsOutput {
  std::string path;  ///< empty: nowhere
  std::time_t begin = 0;
};
/// Notes a problem where there are several algorithms: the file holds one table.
NcclTestsOutput read_nccl_tests_output(Arguments& arguments, const Sweep& sweep);
/// Writes the table as JSON, if something ran.
void write_nccl_tests(const Console& console, const Arguments& arguments,
                      const NcclTestsOutput& output, Study& study, const Answers& answers);

}  // namespace espalier
