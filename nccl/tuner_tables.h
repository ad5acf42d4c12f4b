// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ir/collective.h"
#include "nccl/machine.h"
#include "nccl/version.h"

// The constants of NCCL's tuner, by version. Private to the room. Read in NVIDIA/nccl
// src/graph/tuning.cc at b221128e (2.6), 01afd20a (2.7), 920dbe5b (2.8), 7e515921 (2.10), 5d3ab08b
// (2.17), 8c6c5951 (2.19), b6475625 (2.20), ab2b89c4 (2.21), 178b6b75 (2.22), 68b54236 (2.23),
// 80f6bda4 (2.25), f44ac759 (2.26), 593de54e (2.27) and 5067397c (2.30), and in
// zhanglin496/nccl-2.28.3-1 at 850a18f5 (2.28). Versions between have the tables of the one before,
// unless noted.

namespace espalier {

enum class NcclHardware : std::uint8_t { nvlink, pcie, network };
using NcclByProtocol = std::array<double, 3>;  ///< ll, ll128, simple

inline double of(const NcclByProtocol& values, NcclProtocol protocol) {
  return values[static_cast<std::size_t>(protocol)];
}

/// us. \pre ring or tree
NcclByProtocol nccl_base_us(NcclAlgorithm algorithm, NcclVersion version);
/// us. `is_power`: between POWER processors.
NcclByProtocol nccl_tree_hop_us(NcclHardware hardware, NcclVersion version, bool is_power);
NcclByProtocol nccl_ring_hop_us(NcclHardware hardware, NcclVersion version);

/// The row of the tuner's tables by generation. Until 2.16 only A100 has Ampere's, and what is
/// neither has Volta's.
NcclGpuEra nccl_row(const NcclMachine& machine, NcclVersion version);

/// GB/s that LL reaches at most, since 2.8: on one node by the GPUs, between nodes by the CPUs.
double nccl_ll_most(const NcclMachine& machine, NcclVersion version);
/// GB/s that rings under LL128 reach at most, up to 2.6.
double nccl_ring_ll128_most(Collective collective);
/// GB/s of a channel of rings under LL128, since 2.7.
double nccl_ring_ll128_of_channel(Collective collective, const NcclMachine& machine,
                                  NcclVersion version);
/// GB/s of a channel of trees under LL128, since 2.7.
double nccl_tree_ll128_of_channel(const NcclMachine& machine, NcclVersion version);
/// GB/s of a channel of trees under Simple, since 2.8.
double nccl_tree_of_channel(const NcclMachine& machine, NcclVersion version);
/// GB/s of a channel of NVLS trees, since 2.28.
double nccl_nvls_tree_of_channel(const NcclMachine& machine, NcclVersion version);

/// What the expected bandwidth of trees is multiplied by.
double nccl_tree_factor(NcclProtocol protocol, double bytes, NcclVersion version);

}  // namespace espalier
