// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "nccl/graph.h"
#include "nccl/machine.h"
#include "nccl/survey.h"
#include "nccl/symmetric.h"
#include "nccl/tuner.h"
#include "nccl/version.h"
#include "nccl/work.h"

namespace espalier {

/// What NCCL is asked to do.
struct NcclCall {
  Collective collective = Collective::allreduce;
  double bytes = 0;  ///< the whole buffer, as nccl-tests counts it
  /// Of no effect on GPUs of AMD's, whose library is RCCL: see `kKnownRccl`.
  NcclVersion version = {};
  /// What the environment forces: NCCL_ALGO, NCCL_PROTO, NCCL_MIN_NCHANNELS and
  /// NCCL_MAX_NCHANNELS, NCCL_NTHREADS.
  std::optional<NcclAlgorithm> algorithm = {};
  std::optional<NcclProtocol> protocol = {};
  int channels = 0;  ///< 0: NCCL's own number
  int threads = 0;   ///< 0: NCCL's own number
  bool pxn = true;   ///< false: NCCL_PXN_DISABLE=1
  /// Whether the buffers are registered as symmetric windows. Asking for NcclAlgorithm::symmetric
  /// or for one of its kernels (NCCL_SYM_KERNEL) says so, too.
  bool is_registered = false;
  std::optional<NcclSymmetricKernel> kernel = {};
  bool operator==(const NcclCall&) const = default;
};

/// What it does, and why.
struct NcclChoice {
  NcclMachine machine;
  NcclVersion version;  ///< of NCCL, or of RCCL: whose rules these are
  NcclGraph graph;
  std::vector<NcclCell> cells;  ///< the tuner's table; empty for sends and receives
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  /// Of NcclAlgorithm::symmetric, which NCCL takes where it has it, whatever its tuner says.
  NcclSymmetricKernel kernel = NcclSymmetricKernel::agxll_r;
  std::vector<NcclSymmetricCell> symmetric;  ///< empty where buffers are not registered
  std::string why_not_symmetric;             ///< where they are, and no kernel is taken
  NcclWork work;
  std::string why_not;  ///< why it can do nothing of what is asked; empty otherwise

  std::string library() const;  ///< "NCCL 2.30", "RCCL 2.21.5"
  /// What is odd about the question: a version that is older than the GPUs. Empty otherwise.
  std::string note() const;
};

/// A question, and the answer.
struct NcclAnswer {
  NcclCall call;
  NcclChoice choice;
};

/// \pre two ranks or more
NcclChoice nccl_choice(const NcclCall& call, const Router& router, const Placement& placement);
/// With what is known of the machine already, or is from now on.
std::shared_ptr<const NcclChoice> nccl_choice(const NcclCall& call, const Router& router,
                                              const Placement& placement, NcclSurvey& survey);

/// Whether the collective is made of sends and receives.
bool is_nccl_p2p(Collective collective);

/// Whether the collective can be done in place. What ranks of an alltoall or sendrecv receive would
/// overwrite what they have not sent yet: nccl-tests times these all the same, and prints N/A for
/// the result ("We don't support in-place alltoall", src/alltoall.cu and src/sendrecv.cu). A gather
/// or scatter in place leaves the root's own part where it is.
bool nccl_has_in_place(Collective collective);

/// The table and what was chosen, in lines of text: what `--explain` prints.
std::string explain(const NcclCall& call, const NcclChoice& choice);

}  // namespace espalier
