// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/words.h"

namespace espalier {
namespace {

bool is_bus_id(std::string_view text) {
  return text.size() == 12 && text[4] == ':' && text[7] == ':' && text[10] == '.';
}

}  // namespace

std::vector<ProbedNvlink> bundle_nvlinks(const std::vector<std::string>& bus_ids,
                                         const std::vector<std::vector<NvlinkEnd>>& links) {
  struct Bundle {
    int count = 0;
    int generation = 0;
  };
  std::map<std::pair<int, int>, Bundle> ends;  // by GPU, and GPU at the other end or kSwitch
  for (int gpu = 0; gpu < static_cast<int>(links.size()); ++gpu) {
    for (const NvlinkEnd& link : links[static_cast<std::size_t>(gpu)]) {
      int peer = ProbedNvlink::kSwitch;
      if (!link.to_switch) {
        const auto found = std::ranges::find(bus_ids, link.peer_bus_id);
        if (found == bus_ids.end()) continue;
        peer = static_cast<int>(found - bus_ids.begin());
        if (peer == gpu) continue;  // some virtual machines show links that way
      }
      Bundle& bundle = ends[{gpu, peer}];
      ++bundle.count;
      bundle.generation = std::max(bundle.generation, link.generation);
    }
  }
  std::vector<ProbedNvlink> bundles;
  for (const auto& [pair, bundle] : ends) {
    const auto [gpu, peer] = pair;
    if (peer == ProbedNvlink::kSwitch) {
      bundles.push_back({gpu, peer, bundle.count, bundle.generation});
      continue;
    }
    const auto other = ends.find({peer, gpu});
    if (gpu > peer && other != ends.end()) continue;  // came with the other end
    const int count =
        other == ends.end() ? bundle.count : std::min(bundle.count, other->second.count);
    bundles.push_back({std::min(gpu, peer), std::max(gpu, peer), count, bundle.generation});
  }
  return bundles;
}

std::vector<std::string> pcie_switches(std::string_view device_path) {
  std::vector<std::string> ports;
  for (const std::string& part : split(device_path, '/')) {
    if (is_bus_id(part)) ports.push_back(part);
  }
  // A root port, an upstream and a downstream port for every switch, the device.
  std::vector<std::string> switches;
  for (std::size_t upstream = 1; upstream + 2 < ports.size(); upstream += 2) {
    switches.insert(switches.begin(), ports[upstream]);
  }
  return switches;
}

PcieLink pcie_link(int generation, int lanes) {
  // GB/s of a lane and direction: 8b/10b up to generation 2, 128b/130b from 3, flits at 6.
  static constexpr std::array kLaneGbps{0.0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
  if (generation < 1 || generation >= static_cast<int>(kLaneGbps.size()) || lanes < 1) return {};
  return {fmt::format("pcie{}x{}", generation, lanes),
          kLaneGbps[static_cast<std::size_t>(generation)] * lanes};
}

}  // namespace espalier
