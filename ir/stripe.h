// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// How transfers between GPUs of one host memory are divided between the direct path and the path
/// through that memory: "Interconnect-aware multi-path GPU communication with UCX", section "The
/// multi-path communication".
struct Striping {
  std::vector<int> host_of_rank;  ///< host memory of every rank; negative: none
  int hosts = 0;                  ///< how many host memories there are
  std::int64_t host_percent =
      0;  ///< percent of each such transfer that goes through host memory; 0..100
  std::int64_t pieces =
      1;  ///< number of pieces of that part, so that one leaves host memory while another arrives
};

/// Why a message of `units` cannot be striped in this way, or nothing.
std::optional<std::string> cannot_stripe(std::int64_t units, const Striping& striping);

/// Why `stripe` would leave the program as it is, though a share of it is to pass through host
/// memory: "no two ranks share a host memory". Nothing when it divides some of it.
std::optional<std::string> nothing_to_stripe(const Program& program, const Striping& striping);

/// Divides every op by which a rank copies to, or reads from, another one of the same host memory:
/// the last `host_percent` of its units pass through that memory, in pieces, each a copy to it and
/// then what the op does, from there; the others go as before, at the same time. Copies to
/// host memory for the ops of one lane follow each other, as one copy engine would make them, and
/// so do those out of it, beside them.
///
/// Units get finer, so that the parts are exact. Every ordered pair of ranks has one message's
/// worth of scratch in its host memory, and uses it again (more where an op reads several operands
/// from one rank). The program's own host memories, if it
/// has any, are those of `striping`; a program without such an op stays as it is. So do ops that
/// name their route, and ops that reduce and send the result on at once. Dependencies are derived
/// anew; those between ops that share no data hold between all their parts.
///
/// \pre `program` passed `verify` and was not read from a text; cannot_stripe returned nothing.
Program stripe(const Program& program, const Striping& striping);

}  // namespace espalier
