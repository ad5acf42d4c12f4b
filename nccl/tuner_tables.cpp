// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuner_tables.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace espalier {
namespace {

constexpr int kA100 = 80;

/// What a row of a table of bandwidths is for: one node, two, or more.
std::size_t column(const NcclMachine& machine) {
  return static_cast<std::size_t>(std::min(machine.nodes, 3) - 1);
}
using ByNodes = std::array<double, 3>;
using ByEra = std::array<ByNodes, 4>;  // Volta, Ampere, Hopper, Blackwell

double at(const ByEra& rows, NcclGpuEra era, const NcclMachine& machine) {
  return rows[static_cast<std::size_t>(era)][column(machine)];
}

/// Of the collectives that have a table.
std::size_t row_of(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return 0;
    case Collective::reduce:
      return 1;
    case Collective::allgather:
      return 2;
    case Collective::reducescatter:
      return 3;
    default:
      return 4;
  }
}

}  // namespace

NcclByProtocol nccl_base_us(NcclAlgorithm algorithm, NcclVersion version) {
  if (algorithm == NcclAlgorithm::tree) {
    if (version < 18) return {4.4, 4.4, 0};
    return {6.8, 14, version < 23 ? 0 : 8.4};
  }
  if (version < 7) return {3.6, 3.6, 8.4};
  if (version < 18) return {3.6, 10, 8.4};
  return {6.6, 14, 8.4};
}

NcclByProtocol nccl_tree_hop_us(NcclHardware hardware, NcclVersion version, bool is_power) {
  const bool is_nvlink = hardware == NcclHardware::nvlink;
  const bool is_pcie = hardware == NcclHardware::pcie;
  // Of a chunk until 2.22, of a step since; 2.18.3 alone has values of its own.
  double bulk_us = version < 23 ? 28 : is_nvlink || is_pcie ? 4 : 14;
  if (!is_nvlink && !is_pcie && version < 8) bulk_us = 50;
  if (version.is_2_18_3()) bulk_us = is_nvlink ? 4 : is_pcie ? 6 : 14;
  if (is_pcie && is_power && version >= 10) {
    bulk_us = of(nccl_ring_hop_us(hardware, version), NcclProtocol::simple);
  }
  if (is_pcie) return {1, 1.9, bulk_us};
  if (!is_nvlink) return {5, version < 7 ? 7.5 : 8.5, bulk_us};
  if (version < 7) return {0.5, 1.9, bulk_us};
  return {version < 18 ? 0.52 : 0.6, version < 8 ? 1.2 : 1.25, bulk_us};
}

NcclByProtocol nccl_ring_hop_us(NcclHardware hardware, NcclVersion version) {
  if (hardware == NcclHardware::pcie) return {1, 2.5, 5.7};
  const bool is_nvlink = hardware == NcclHardware::nvlink;
  if (version < 7) return is_nvlink ? NcclByProtocol{0.4, 2.5, 5.7} : NcclByProtocol{0.9, 2.5, 6.6};
  if (is_nvlink) return {version < 18 ? 0.47 : 0.6, 1.9, 3.4};
  if (version >= 18) return {2.7, 4, 14};
  return {2.7, 4, version == 12 || version == 13 ? 28 : 9.6};
}

NcclGpuEra nccl_row(const NcclMachine& machine, NcclVersion version) {
  if (version < 17) {
    const bool is_a100 = machine.capability == kA100 && machine.alike;
    return is_a100 ? NcclGpuEra::ampere : NcclGpuEra::volta;
  }
  return version < 23 ? std::min(machine.era, NcclGpuEra::hopper) : machine.era;
}

double nccl_ll_most(const NcclMachine& machine, NcclVersion version) {
  static constexpr ByEra kMost = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
  if (machine.nodes > 1) {
    return at(kMost, machine.cpu == CpuMaker::amd ? NcclGpuEra::ampere : NcclGpuEra::volta,
              machine);
  }
  const NcclGpuEra era = nccl_row(machine, version);
  return at(kMost, version < 21 ? std::min(era, NcclGpuEra::ampere) : era, machine);
}

double nccl_ring_ll128_most(Collective collective) {
  static constexpr std::array<double, 5> kMost = {113, 72, 110, 91, 100};
  return kMost[row_of(collective)];
}

double nccl_ring_ll128_of_channel(Collective collective, const NcclMachine& machine,
                                  NcclVersion version) {
  static constexpr std::array<double, 5> kUpTo9 = {18.8, 12, 18.3, 15.2, 16.7};
  const std::size_t row = row_of(collective);
  if (version < 10) return version == 8 && row == 4 ? 16.9 : kUpTo9[row];
  switch (nccl_row(machine, version)) {
    case NcclGpuEra::blackwell:
      return version < 29 ? 2 * 36.7 : 40;
    case NcclGpuEra::hopper:
      return 36.7;
    default:
      return 20;
  }
}

double nccl_tree_ll128_of_channel(const NcclMachine& machine, NcclVersion version) {
  if (version < 8) return 16.7 * 7 / 9;
  if (version < 10) return nccl_ring_ll128_of_channel(Collective::allreduce, machine, version);
  const NcclGpuEra era = nccl_row(machine, version);
  if (version < 18 && era == NcclGpuEra::hopper) return 36.7;  // 2.17: one figure for all nodes
  static constexpr ByEra kUpTo27 = {
      {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {2 * 36.7, 2 * 36.7, 2 * 29}}};
  static constexpr ByEra kSince28 = {
      {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
  return at(version < 28 ? kUpTo27 : kSince28, era, machine);
}

double nccl_tree_of_channel(const NcclMachine& machine, NcclVersion version) {
  static constexpr ByEra kUpTo9 = {{{26.5, 18.5, 10}, {24, 22.5, 16}, {}, {}}};
  static constexpr ByEra kUpTo17 = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 33}, {}}};
  static constexpr ByEra kUpTo27 = {
      {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {2 * 38.7, 2 * 41.4, 2 * 36}}};
  static constexpr ByEra kSince28 = {
      {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
  const ByEra& rows = version < 10   ? kUpTo9
                      : version < 18 ? kUpTo17
                      : version < 28 ? kUpTo27
                                     : kSince28;
  return at(rows, nccl_row(machine, version), machine);
}

double nccl_nvls_tree_of_channel(const NcclMachine& machine, NcclVersion version) {
  // The first column is of no use: NVLS trees are between nodes.
  static constexpr ByEra kUpTo28 = {{{}, {}, {0, 57.7, 45.5}, {0, 96, 43.1}}};
  static constexpr ByEra kSince29 = {{{}, {}, {0, 57.7, 45.5}, {0, 96, 80}}};
  return at(version < 29 ? kUpTo28 : kSince29, nccl_row(machine, version), machine);
}

/// From messages of 64 bytes on, each row for twice the size of the one before; 1 beyond.
double nccl_tree_factor(NcclProtocol protocol, double bytes, NcclVersion version) {
  static constexpr double kLl[] = {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7,
                                   .6, .5, .4, .4, .5, .6, .7, .8, .9};
  static constexpr double kLl128[] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                      .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1};
  static constexpr double kSimple[] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                       .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};
  // 2.8 and 2.9, and 2.7.
  static constexpr double kLl128UpTo9[] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7,  .6, .6,
                                           .6, .5, .6, .6, .7, .7, .8, .9, .9, .92, .92};
  static constexpr double kLl128Of7[] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6,
                                         .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1};
  static constexpr double kSimpleOf7[] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6,
                                          .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9};
  // 2.5 and 2.6.
  static constexpr double kOldLl[] = {1,  1,  1,  1,  .9, .8, .7, .7, .7,
                                      .7, .5, .5, .5, .6, .7, .8, .9, .9};
  static constexpr double kOldLl128[] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .8, .7,
                                         .7, .7, .6, .6, .7, .7, .8, .8, .9, .9};
  static constexpr double kOldSimple[] = {.5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9};
  using Rows = std::array<std::span<const double>, 3>;
  const Rows rows = version < 7    ? Rows{kOldLl, kOldLl128, kOldSimple}
                    : version < 8  ? Rows{kLl, kLl128Of7, kSimpleOf7}
                    : version < 10 ? Rows{kLl, kLl128UpTo9, kSimple}
                                   : Rows{kLl, kLl128, kSimple};
  const std::span<const double> row = rows[static_cast<std::size_t>(protocol)];
  const double doublings = bytes < 64 ? 0 : std::floor(std::log2(bytes / 64));
  return doublings < static_cast<double>(row.size()) ? row[static_cast<std::size_t>(doublings)] : 1;
}

}  // namespace espalier
