// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "probe/survey.h"
#include "topologies/topology.h"

namespace espalier {

/// What the first of a probed machine's sources begins with.
inline constexpr const char* kProbedSource = "measured by espalier probe";

/// The machine model that explains a survey: a topology that passes `check_topology`, with figures
/// of four digits. `when` goes into its sources.
///
/// Ranks that share a device have parts of one memory. What one op reaches alone becomes
/// `access_gbps`, what all ranks reach together the figures of the shared memory; they are joined
/// by an NVSwitch-like hub over a medium as fast as that memory, which therefore never decides. Of
/// ranks that exchange messages, `access_gbps` is no more than a message's rate, read and written,
/// and combining comes after the messages.
///
/// GPUs get a link for every NVLink bundle, a common NVSwitch where there is one, and PCIe links up
/// to the CPU of their socket. Links are given what copy engines were measured to reach (the
/// slower direction); what kernels reach of theory, and what a transfer costs to start, goes to the
/// profiles, where it is one figure for each kind of link: the median of the pairs that use it.
///
/// Processes on several sockets of a host have a memory and a hub for each socket. To another one,
/// what one rank reaches alone and what all of a socket reach are links of the host.
///
/// Hosts are alike: each has a NIC at a network that all share, with what its ranks reach together
/// in one direction, and in both if they share it; what a message costs to start is the network's
/// start-up overhead.
///
/// Memory and reduction rates are those of `fit_memory`.
Topology fit_machine(const Survey& survey, const std::string& when);

}  // namespace espalier
