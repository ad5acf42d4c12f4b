// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "probe/survey.h"
#include "topologies/topology.h"

namespace espalier {

/// From measurements to figures of a topology.

/// A value that the schema accepts, with four digits (measurements are not more
/// precise): what could not be measured at all must not make a file unreadable.
double sane_gbps(double gbps);
/// The same of a rate that need not be modelled: 0 stays 0.
double sane_or_0(double gbps);
double sane_latency_s(double latency_s);

/// Gives a link its duplex and bandwidths: what its directions were measured to reach alone, and
/// together (0: not measured) when both carry as many bytes and the slower one decides. It is half
/// duplex if that is well below twice the slower direction. `theory_gbps` is that
/// of one of its parallel links, 0 if not known; it is raised if more was measured.
void set_capacity(Link& link, double theory_gbps, double a_gbps, double b_gbps, double both_gbps);

/// Sets what a profile says of a kind of link.
void set_link_profile(Profile& profile, const std::string& kind, double efficiency,
                      double overhead_s);

/// The rates under which a copy takes 2 / gbps and a combine of k operands the larger of (k + 1) /
/// gbps and (k - 1) / reduce_gbps, as the simulator has it, closest to what was measured: with the
/// least sum of Huber's loss of the errors' logarithms, so that one measurement that was disturbed
/// does not move the others' rates. There is a `reduce_gbps` only where the measurements are not
/// explained as well without one: it can't be known where memory is the limit. Exchanges are no
/// part of it.
MemoryRates fit_memory(const ArithmeticFigures& figures);

}  // namespace espalier
