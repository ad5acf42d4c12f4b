// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/exporting.h"
#include "scenarios/answers.h"
#include "scenarios/tuner.h"

// What `tune` writes for other programs.

namespace espalier {

/// "nccl-csv:2.27": a file for NCCL's example tuner plugin, for that version of NCCL.
struct TunerFormat {
  bool is_csv = false;
  std::string nccl_version;
};
/// Reads --format; notes problems.
TunerFormat read_tuner_format(Arguments& arguments);

/// Whether that version of NCCL has such an algorithm for the collective, by what `tune` calls it:
/// "nccl_rings", "double_binary_tree". `nodes`: computers.
bool is_of_nccl(std::string_view algorithm, Collective collective, int nodes,
                const TunerFormat& format);

/// Computers that the ranks are on.
int count_nodes(const Machine& machine);

/// The choices as rows for NCCL's tuner plugin, each with as many channels as NCCL would use.
/// \pre every algorithm is NCCL's, and there are two ranks or more. Throws what `tuner_csv` throws,
/// and Error{unsupported} for protocols that NCCL does not have.
std::string choices_csv(const std::vector<Outcome>& choices, const Machine& machine,
                        const TunerFormat& format);

/// The end of the first line of choices.txt, which lists what was exported.
inline constexpr std::string_view kChoicesColumns = ": sizes in bytes, file, algorithm, us";

/// Writes a program for every range of sizes into a folder, made if need be, with a list that says
/// which is for which sizes; for MSCCL in the form that its runtime reads. In another program's
/// format, the choice is made anew: by the time of programs as they are written. Sizes for which
/// the same is written are one range. Nothing is written unless something can be for every size.
/// `choices`: by size, those of `tuning`.
void export_choices(const Console& console, const ExportTarget& folder, Study& study,
                    const Tuning& tuning, const std::vector<Outcome>& choices);

}  // namespace espalier
