// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/answers.h"
#include "scenarios/study.h"

// What tuning tells NCCL, by rows for its tuner plugin.

namespace espalier {

/// The newest version of NCCL whose tuner plugin was looked at.
inline constexpr std::string_view kNewestTuner = "2.27";

/// "nccl-csv:2.27": a file for NCCL's example tuner plugin, for that version of NCCL.
struct TunerFormat {
  bool is_csv = false;
  std::string nccl_version;
};

/// Leaves of the candidates for a question what that version of NCCL has; `may_lack`: others than
/// variants may be missing there. Throws Error{usage} for those that may not, and
/// Error{unsupported} where nothing is left.
void keep_nccl(Study& study, const Query& question, bool may_lack, const TunerFormat& format,
               std::vector<std::string>& candidates);

/// The choices as rows for NCCL's tuner plugin, each with as many channels as NCCL would use.
/// \pre every algorithm is NCCL's, and there are two ranks or more. Throws what `tuner_csv` throws,
/// and Error{unsupported} for protocols that NCCL does not have.
std::string choices_csv(const std::vector<Outcome>& choices, const Machine& machine,
                        const TunerFormat& format);

}  // namespace espalier
