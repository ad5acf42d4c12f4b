// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <utility>

namespace espalier::cuda {

/// A GPU and another one whose memory it maps, as CUDA numbers them.
using PeerPair = std::pair<int, int>;

/// Maps the wanted pairs that are not mapped yet. Mappings belong to the process, whichever run
/// asked for them, and stay until CUDA has no place for another one: then those of its two GPUs
/// that are not wanted are given up. Returns whether all of `wanted` is mapped. Where there is no
/// place even so, `most_peers` is what there is place for; CUDA may also refuse a pair though it
/// says that it could be mapped, see `is_refused`. Either way less is to be asked for.
bool map_peers(const std::set<PeerPair>& wanted);

/// How many others a GPU may be joined to, by a mapping in either direction: any number until CUDA
/// has had no place for one (cudaErrorTooManyPeers), as beyond eight without NVSwitches.
int most_peers();

/// Whether CUDA refused to map this pair before.
bool is_refused(const PeerPair& pair);

}  // namespace espalier::cuda
