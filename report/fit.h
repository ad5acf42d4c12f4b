// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "scenarios/profile_fit.h"

namespace espalier {

/// What `fit --json` writes, as `espalier.fit/1`: the constants, and the times that they were
/// fitted to.
std::string fit_json(const ProfileFit& fit, const FitRequest& request);

/// A row for each measured time: what is simulated for it, before and after the fit.
std::string fit_csv(const ProfileFit& fit);

}  // namespace espalier
