// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/peers.h"

#include <fmt/format.h>

#include <algorithm>

#include "exec/cuda/calls.h"

namespace espalier::cuda {
namespace {

struct ProcessPeers {
  std::set<PeerPair> mapped;
  std::set<PeerPair> refused;
};

ProcessPeers& process_peers() {
  static ProcessPeers only;
  return only;
}

/// The GPUs that one is joined to, by a mapping in either direction.
std::set<int> joined_to(int gpu, const std::set<PeerPair>& mapped) {
  std::set<int> others;
  for (const auto& [from, to] : mapped) {
    if (from == gpu) others.insert(to);
    if (to == gpu) others.insert(from);
  }
  return others;
}

/// Removes mappings from and to this GPU that are not needed now.
void unmap_unwanted(int gpu, const std::set<PeerPair>& wanted, std::set<PeerPair>& mapped) {
  for (auto pair = mapped.begin(); pair != mapped.end();) {
    const bool concerned = pair->first == gpu || pair->second == gpu;
    if (!concerned || wanted.count(*pair) > 0) {
      ++pair;
      continue;
    }
    use_gpu(pair->first);
    require(cudaDeviceDisablePeerAccess(pair->second), "cudaDeviceDisablePeerAccess", pair->first,
            fmt::format("for the memory of GPU {}", pair->second));
    pair = mapped.erase(pair);
  }
}

}  // namespace

bool map_peers(const std::set<PeerPair>& wanted, int maximum) {
  auto& [mapped, refused] = process_peers();
  bool all = true;
  for (const PeerPair& pair : wanted) {
    if (mapped.count(pair) > 0) continue;
    for (const auto& [gpu, other] : {pair, PeerPair{pair.second, pair.first}}) {
      const std::set<int> others = joined_to(gpu, mapped);
      const bool is_full = others.size() >= static_cast<std::size_t>(maximum);
      if (is_full && others.count(other) == 0) unmap_unwanted(gpu, wanted, mapped);
    }
    use_gpu(pair.first);
    const cudaError_t status = cudaDeviceEnablePeerAccess(pair.second, 0);
    if (status != cudaSuccess) cudaGetLastError();
    // Somebody else in this process may have mapped it.
    if (status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled) {
      mapped.insert(pair);
    } else {
      refused.insert(pair);
      all = false;
    }
  }
  return all;
}

bool is_refused(const PeerPair& pair) { return process_peers().refused.count(pair) > 0; }

}  // namespace espalier::cuda
