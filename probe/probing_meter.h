// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "probe/survey.h"

namespace espalier {

/// Bytes of a rank's buffers while the machine is measured: what fits into half of the memory that
/// is free on the fullest of its GPUs, or of a host, and no more than is needed.
std::int64_t probe_footprint_bytes(const Inventory& inventory);

/// Whether more than half of what a host's ranks work on while the machine is measured fits into
/// its last caches, although it should not.
bool caches_hold_half_of_what_is_probed(const Inventory& inventory);

/// How `espalier probe` measures that machine with this back end, which must outlive the meter.
/// `timeout_s`: of a run.
Meter probing_meter(Backend& backend, const Inventory& inventory, double timeout_s);

/// The same in little time, for figures that are measured again between others.
Meter checking_meter(Backend& backend, const Inventory& inventory, double timeout_s);

}  // namespace espalier
