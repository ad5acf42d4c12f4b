// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "exec/cuda/calls.h"

namespace espalier::cuda {
namespace {

struct ProcessPeers {
  std::set<PeerPair> mapped;
  std::set<PeerPair> refused;
  int most = std::numeric_limits<int>::max();  ///< see `most_peers`
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

cudaError_t map(const PeerPair& pair) {
  use_gpu(pair.first);
  const cudaError_t status = cudaDeviceEnablePeerAccess(pair.second, 0);
  if (status != cudaSuccess) cudaGetLastError();
  // Somebody else in this process may have mapped it.
  return status == cudaErrorPeerAccessAlreadyEnabled ? cudaSuccess : status;
}

}  // namespace

bool map_peers(const std::set<PeerPair>& wanted) {
  auto& [mapped, refused, most] = process_peers();
  bool all = true;
  for (const PeerPair& pair : wanted) {
    if (mapped.count(pair) > 0) continue;
    cudaError_t status = map(pair);
    if (status == cudaErrorTooManyPeers) {
      for (const int gpu : {pair.first, pair.second}) unmap_unwanted(gpu, wanted, mapped);
      status = map(pair);
    }
    if (status == cudaErrorTooManyPeers) {
      const std::set<PeerPair>& joins = mapped;  // clang 14 captures no structured bindings
      const auto joined = [&](int gpu) { return static_cast<int>(joined_to(gpu, joins).size()); };
      most = std::max(joined(pair.first), joined(pair.second));
      return false;
    }
    (status == cudaSuccess ? mapped : refused).insert(pair);
    all = all && status == cudaSuccess;
  }
  return all;
}

int most_peers() { return process_peers().most; }

bool is_refused(const PeerPair& pair) { return process_peers().refused.count(pair) > 0; }

}  // namespace espalier::cuda
