// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "nccl/machine.h"
#include "nccl/work.h"

// NCCL's kernels over symmetric memory, which it takes from 2.27 on where buffers are registered as
// symmetric windows (ncclCommWindowRegister; nccl-tests: -R 2). NVIDIA/nccl src/sym_kernels.cc.

namespace espalier {

/// Named as NCCL_SYM_KERNEL has them, without the collective: how ranks gather (AG), reduce (R) or
/// both (RS), by packets of data and flags (LL), loads (LD) or stores (ST), and whether switches
/// multicast or add up (MC).
enum class NcclSymmetricKernel : std::uint8_t {
  agxll_r,
  agxllmc_r,
  rsxld_agxst,
  rsxldmc_agxstmc,
  ll,
  llmc,
  st,
  stmc,
  ld,
  ldmc
};

/// "agxll_r".
std::string_view to_string(NcclSymmetricKernel kernel);
const std::vector<NcclSymmetricKernel>& all_nccl_symmetric_kernels();
/// Whether it sends packets; others synchronize ranks at its beginning and end.
bool is_packets(NcclSymmetricKernel kernel);
bool is_multicast(NcclSymmetricKernel kernel);

/// Threads of a block.
inline constexpr int kNcclSymmetricThreads = 512;
/// What a block sends in packets before it waits for those of others: 8 bytes of each thread.
inline constexpr double kNcclSymmetricEpoch = 8.0 * kNcclSymmetricThreads;
/// From 2.28 on messages are divided among blocks in cells of so many bytes.
inline constexpr double kNcclSymmetricCell = 1024;

/// One line of what NCCL weighs: the kernel's time by its own model, with the fewest blocks that
/// are nearly as fast as all of them.
struct NcclSymmetricCell {
  NcclSymmetricKernel kernel = NcclSymmetricKernel::agxll_r;
  int blocks = 0;
  double time_s = 0;     ///< by NCCL's model
  double weighed_s = 0;  ///< that and 2.5 % for every block: the least is taken
  std::string why_not;   ///< why it is ruled out; empty otherwise
};

/// What is asked of them.
struct NcclSymmetricCall {
  Collective collective = Collective::allreduce;
  double bytes = 0;  ///< the whole buffer, as nccl-tests counts it
  NcclVersion version = {};
  std::optional<NcclSymmetricKernel> kernel = {};  ///< as NCCL_SYM_KERNEL
  int blocks = 0;                                  ///< as NCCL_SYM_CTAS; 0: NCCL's own number
};

/// Why NCCL has no such kernels for a call at all; nothing where it has. `is_direct`: NVLink joins
/// all ranks directly, or through NVSwitches.
std::string why_no_symmetric(const NcclSymmetricCall& call, const NcclMachine& machine,
                             bool is_direct);

/// The kernels of the collective, in NCCL's order. \pre `why_no_symmetric` says nothing
std::vector<NcclSymmetricCell> nccl_symmetric_cells(const NcclSymmetricCall& call,
                                                    const NcclMachine& machine);

/// The one that NCCL takes; null where all are ruled out.
const NcclSymmetricCell* chosen_symmetric(const std::vector<NcclSymmetricCell>& cells);

/// How the chosen kernel divides the call.
NcclWork nccl_symmetric_work(const NcclSymmetricCall& call, const NcclSymmetricCell& chosen,
                             const NcclMachine& machine);

/// GB/s that NCCL counts for a block of a kernel, as a share of what it counts for a block that
/// only loads or only stores.
double nccl_symmetric_block_share(NcclSymmetricKernel kernel, const NcclMachine& machine);

}  // namespace espalier
