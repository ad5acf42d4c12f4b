// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of what `library_version` (topologies/launch_costs.h) makes of a version's text.

namespace espalier {

/// 2, 18 and 3 as 201803. \pre each fits
int library_version(int major, int minor, int patch = 0);
/// Of 201803: 18.
int minor_of(int version);
/// Of 201803: 3.
int patch_of(int version);

}  // namespace espalier
