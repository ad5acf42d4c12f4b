// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/collective.h"

namespace espalier {

/// A row of the files of NCCL's example tuner plugin (NVIDIA/nccl plugins/tuner/example): what NCCL
/// is to do for messages of some sizes. -1: any, or for `channels` NCCL's own number.
struct TunerRow {
  Collective collective = Collective::allreduce;
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = -1;  ///< included; -1: no largest one
  std::string algorithm;        ///< "ring", "tree", "collnet_direct", "nvls", "pat", ...
  std::string protocol;         ///< "simple", "ll", "ll128"
  int channels = -1;
  int nodes = -1;
  int ranks = -1;
  int pipe_ops = -1;    ///< operations of a group that are launched together
  int registered = -1;  ///< 0: user's buffers are not registered; 1: they are
  bool operator==(const TunerRow&) const = default;
};

/// A file of these rows, by collective, nodes, ranks and size, which says for which version of NCCL
/// ("2.27.3") it is. Throws Error{unsupported} with everything that is wrong with rows: values out
/// of range, what this version lacks or never does, rows that apply to the same call; Error{usage}
/// when the version is none.
std::string tuner_csv(const std::vector<TunerRow>& rows, const std::string& nccl_version);

/// Whether a version of NCCL has an algorithm of a name that rows may have for a collective. Throws
/// Error{usage} when the version is none.
bool nccl_has(std::string_view algorithm, Collective collective, const std::string& nccl_version);
/// Whether there can be rows for a collective.
bool is_tuned_by_plugin(Collective collective);

struct TunerFile {
  std::vector<TunerRow> rows;      ///< in the order of the file: the first that applies counts
  std::vector<std::string> notes;  ///< what the plugin makes of a line that its author may not know
};
/// Reads such a file by its documented grammar. Throws Error{input} with everything that is wrong,
/// also where the plugin takes something else without a word, such as a ring for a word that it
/// does not know.
TunerFile parse_tuner_csv(std::string_view text, const std::string& file);

}  // namespace espalier
