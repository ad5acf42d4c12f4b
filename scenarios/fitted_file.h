// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "scenarios/profile_fit.h"

namespace espalier {

/// A fit as a file of profiles that `parse_profile` reads: what was fitted, beside the profile that
/// it is like, comments that say where each figure comes from, and as its errors how well the times
/// are met. Figures have four digits. `sources`: what was measured, a line each.
std::string print_fitted_profile(const ProfileFit& fit, const FitRequest& request,
                                 const std::vector<std::string>& sources);

/// "20.1 to 22.4"; empty where a constant has no interval.
std::string interval_text(const FittedConstant& constant);

/// Why a constant keeps its value: "these times hardly depend on it". Empty where it does not.
std::string why_kept(const FittedConstant& constant, const std::vector<FittedConstant>& all);

}  // namespace espalier
