// SPDX-License-Identifier: Apache-2.0
// Which kernel over symmetric memory NCCL takes, and with how many blocks. Read in NVIDIA/nccl
// src/sym_kernels.cc, src/scheduler/symmetric_sched.cc and src/include/sym_kernels.h at 5067397c
// (2.30) and 01050a1f, which have one model of times. 2.27 has the same in src/symmetric.cc
// (593de54e), but for messages that are not divided in cells.
#include "nccl/symmetric.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/check.h"
#include "core/words.h"
#include "nccl/version.h"

namespace espalier {
namespace {

using Kernel = NcclSymmetricKernel;

struct KnownKernel {
  Kernel id;
  std::string_view name;
  bool is_packets;
  bool is_multicast;
};
constexpr std::array kKernels = {
    KnownKernel{Kernel::agxll_r, "agxll_r", true, false},
    KnownKernel{Kernel::agxllmc_r, "agxllmc_r", true, true},
    KnownKernel{Kernel::rsxld_agxst, "rsxld_agxst", false, false},
    KnownKernel{Kernel::rsxldmc_agxstmc, "rsxldmc_agxstmc", false, true},
    KnownKernel{Kernel::ll, "ll", true, false},
    KnownKernel{Kernel::llmc, "llmc", true, true},
    KnownKernel{Kernel::st, "st", false, false},
    KnownKernel{Kernel::stmc, "stmc", false, true},
    KnownKernel{Kernel::ld, "ld", false, false},
    KnownKernel{Kernel::ldmc, "ldmc", false, true}};

const KnownKernel& known(Kernel kernel) {
  const auto index = static_cast<std::size_t>(kernel);
  CHECK(index < kKernels.size() && kKernels[index].id == kernel);
  return kKernels[index];
}

/// In the order of ncclSymkKernelId. Those by the copy engines of TMA are off by default, those
/// across nodes (GIN) are not modelled.
std::vector<Kernel> kernels_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return {Kernel::agxll_r, Kernel::agxllmc_r, Kernel::rsxld_agxst, Kernel::rsxldmc_agxstmc};
    case Collective::allgather:
      return {Kernel::ll, Kernel::llmc, Kernel::st, Kernel::stmc};
    case Collective::reducescatter:
      return {Kernel::ll, Kernel::ld, Kernel::ldmc};
    default:
      return {};
  }
}

constexpr int kFirstWithCells = 28;
constexpr int kMostBlocks = 64;  // ncclSymkMaxBlocks
/// Bytes for every byte of a message in packets: twice the data, "plus some processing, plus no
/// unrolling".
constexpr double kPacketBytes = 9;
constexpr double kGib = 1 << 30;
/// Kernels of packets count elements in 32 bits, others the chunks of their loops.
constexpr double kMostPacketBytes = 2 * kGib;
constexpr double kMostBytes = 64 * kGib;
/// What "GB/s" of the model are, in bytes per microsecond.
constexpr double kGbps = kGib / 1e6;
/// Fewer blocks are taken if that costs no more than this, and each block counts so much.
constexpr double kTolerance = 1.025;
constexpr double kBlockPenalty = 0.025;

/// A smooth version of min(x, ceiling).
double softmin(double x, double ceiling, double softness) {
  return ceiling -
         softness * std::log1p((std::exp(ceiling / softness) - 1) * std::exp(-x / softness));
}

/// A smooth version of max(0, x).
double softplus(double x) { return x >= 100 ? x : std::log1p(std::exp(x)); }

/// What the model counts for a kernel.
struct Figures {
  double bus_bytes = 0;  ///< sent or received, whichever is more
  double multiplier = 1;
  int most_blocks = kMostBlocks;
  double base_us = 0;
  double block_rate = 0;  ///< bytes per us, as the next
  double peak = 0;

  double time_us(int blocks) const {
    const double rate = softmin(blocks * block_rate * multiplier, peak, block_rate);
    return base_us + softplus(bus_bytes / rate - 1);
  }
};

bool is_blackwell(const NcclMachine& machine) { return machine.era == NcclGpuEra::blackwell; }

/// GPUs before Hopper have its figures.
double block_rate(Kernel kernel, const NcclMachine& machine) {
  if (is_blackwell(machine)) return 55 * kGbps;
  return (kernel <= Kernel::rsxldmc_agxstmc ? 65 : 44) * kGbps;
}

/// What NCCL calls the bytes of a call: of an allgather or reducescatter, a rank's.
double counted_bytes(const NcclSymmetricCall& call, const NcclMachine& machine) {
  const double count =
      call.collective == Collective::allreduce ? call.bytes : call.bytes / machine.ranks;
  const double cells = std::ceil(count / kNcclSymmetricCell);
  return call.version < kFirstWithCells ? count : cells * kNcclSymmetricCell;
}

Figures figures(const NcclSymmetricCall& call, Kernel kernel, const NcclMachine& machine) {
  const double n = machine.ranks;
  const double bytes = counted_bytes(call, machine);
  const bool is_allreduce = call.collective == Collective::allreduce;
  Figures all;
  if (is_packets(kernel)) {
    all.bus_bytes = n * bytes * kPacketBytes;
    if (is_multicast(kernel)) all.multiplier = 1.1;
  } else if (is_allreduce) {
    all.bus_bytes = is_multicast(kernel) ? bytes / n + bytes : 2 * bytes * (n - 1) / n;
    if (is_multicast(kernel)) all.multiplier = n;
  } else {
    all.bus_bytes = (n - 1) * bytes;
    if (is_multicast(kernel)) all.multiplier = 0.55 * n;
  }
  if (is_multicast(kernel) && !is_packets(kernel)) {
    all.most_blocks = static_cast<int>(std::ceil((is_blackwell(machine) ? 32 : 16) / n));
  }
  const bool is_nvls_allreduce = kernel == Kernel::rsxldmc_agxstmc;
  all.block_rate = block_rate(kernel, machine);
  if (is_blackwell(machine)) {
    const double of_packets = call.collective == Collective::allgather ? 8.5 : 11;
    all.base_us = is_packets(kernel) ? of_packets : is_allreduce ? 19.5 : 13;
    all.peak = (is_nvls_allreduce ? 1000 : 600) * kGbps;
  } else {
    all.base_us = is_packets(kernel) ? 4.5 : 7.8;
    all.peak = (is_nvls_allreduce ? 480 : 320) * kGbps;
  }
  return all;
}

std::string why_not(const NcclSymmetricCall& call, Kernel kernel, const NcclMachine& machine) {
  if (call.kernel && kernel != *call.kernel) return "another one was asked for";
  if (is_multicast(kernel) && !machine.switches_combine) return "no switch multicasts";
  if (is_multicast(kernel) && machine.ranks <= 2) return "multicast is for more than two ranks";
  const double bytes = counted_bytes(call, machine);
  const double all = call.collective == Collective::allreduce ? bytes : bytes * machine.ranks;
  if (all >= kMostBytes) return "more than it can count";
  if (is_packets(kernel) && all >= kMostPacketBytes) return "more than packets can count";
  return {};
}

}  // namespace

std::string_view to_string(NcclSymmetricKernel kernel) { return known(kernel).name; }

const std::vector<NcclSymmetricKernel>& all_nccl_symmetric_kernels() {
  static const std::vector<NcclSymmetricKernel> all = [] {
    std::vector<NcclSymmetricKernel> ids;
    for (const KnownKernel& one : kKernels) ids.push_back(one.id);
    return ids;
  }();
  return all;
}

bool is_packets(NcclSymmetricKernel kernel) { return known(kernel).is_packets; }
bool is_multicast(NcclSymmetricKernel kernel) { return known(kernel).is_multicast; }

std::string why_no_symmetric(const NcclSymmetricCall& call, const NcclMachine& machine,
                             bool is_direct) {
  const std::vector<Kernel> kernels = kernels_of(call.collective);
  const int first = first_version_of(NcclAlgorithm::symmetric);
  if (machine.is_amd) return "which kernels over symmetric memory RCCL takes is not modelled";
  if (call.version < first) {
    return fmt::format("kernels over symmetric memory came with NCCL 2.{}", first);
  }
  if (kernels.empty()) {
    return fmt::format("NCCL has no kernel over symmetric memory for {}",
                       to_string(call.collective));
  }
  if (machine.nodes > 1)
    return "NCCL's kernels over symmetric memory across nodes are not modelled";
  if (!is_direct) return "symmetric memory needs NVLink, direct or by switches, between all ranks";
  if (call.kernel && std::ranges::count(kernels, *call.kernel) == 0) {
    std::vector<std::string> names;
    for (const Kernel kernel : kernels) names.emplace_back(to_string(kernel));
    return fmt::format("{} has no kernel {}: it has {}", to_string(call.collective),
                       to_string(*call.kernel), join(names, ", "));
  }
  return {};
}

std::vector<NcclSymmetricCell> nccl_symmetric_cells(const NcclSymmetricCall& call,
                                                    const NcclMachine& machine) {
  std::vector<NcclSymmetricCell> cells;
  for (const Kernel kernel : kernels_of(call.collective)) {
    NcclSymmetricCell& cell = cells.emplace_back();
    cell.kernel = kernel;
    cell.why_not = why_not(call, kernel, machine);
    if (!cell.why_not.empty()) {
      cell.time_s = cell.weighed_s = std::numeric_limits<double>::infinity();
      continue;
    }
    const Figures of_kernel = figures(call, kernel, machine);
    const int most = call.blocks > 0 ? call.blocks : of_kernel.most_blocks;
    const int least = call.blocks > 0 ? call.blocks : 1;
    const double at_best_us = of_kernel.time_us(most);
    cell.blocks = least;
    while (cell.blocks < most && of_kernel.time_us(cell.blocks) > kTolerance * at_best_us) {
      ++cell.blocks;
    }
    cell.time_s = of_kernel.time_us(cell.blocks) * 1e-6;
    cell.weighed_s = cell.time_s * (1 + kBlockPenalty * cell.blocks);
  }
  return cells;
}

const NcclSymmetricCell* chosen_symmetric(const std::vector<NcclSymmetricCell>& cells) {
  const auto best = std::ranges::min_element(cells, {}, &NcclSymmetricCell::weighed_s);
  return best == cells.end() || !best->why_not.empty() ? nullptr : &*best;
}

NcclWork nccl_symmetric_work(const NcclSymmetricCall& call, const NcclSymmetricCell& chosen,
                             const NcclMachine& machine) {
  NcclWork work;
  work.threads = work.most_threads = kNcclSymmetricThreads;
  work.channels = chosen.blocks;
  if (call.version >= kFirstWithCells) {
    const double cells = std::max(1.0, counted_bytes(call, machine) / kNcclSymmetricCell);
    const double of_block = std::ceil(cells / chosen.blocks);
    work.channels = static_cast<int>(std::ceil(cells / of_block));
  }
  if (is_packets(chosen.kernel)) work.chunk_bytes = kNcclSymmetricEpoch;
  return work;
}

double nccl_symmetric_block_share(NcclSymmetricKernel kernel, const NcclMachine& machine) {
  return block_rate(kernel, machine) / block_rate(Kernel::st, machine);
}

}  // namespace espalier
