// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <utility>

namespace espalier::cuda {

/// A GPU and another one whose memory it maps, as CUDA numbers them.
using PeerPair = std::pair<int, int>;

/// Maps the wanted pairs that are not mapped yet. Mappings belong to the process, whichever run
/// asked for them, and stay until their places are needed: a GPU may be joined to \p most others.
/// Returns whether all of `wanted` is mapped. CUDA may refuse a pair though it says that it could
/// be mapped; it is then remembered, see `is_refused`. \pre `wanted` joins no GPU to more than
/// `maximum` others
bool map_peers(const std::set<PeerPair>& wanted, int maximum);

/// Whether CUDA refused to map this pair before.
bool is_refused(const PeerPair& pair);

}  // namespace espalier::cuda
