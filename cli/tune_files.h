// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/exporting.h"
#include "scenarios/nccl_rows.h"
#include "scenarios/tuner.h"

// What `tune` writes for other programs.

namespace espalier {

/// Reads --format; notes problems.
TunerFormat read_tuner_format(Arguments& arguments);

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
