// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign_program.h"

namespace espalier {

/// What NCCL's search found (src/graph/search.cc), as its graph files hold it. Private to the room.
struct NcclFileGraph {
  /// A GPU, or a network card at one end of a channel.
  struct Device {
    bool is_net = false;
    std::uint64_t system = 0;  ///< of a GPU, where a file has those of several hosts
    std::uint64_t dev = 0;     ///< NVML's number of a GPU; NCCL's of a network card
    int rank = -1;             ///< of a GPU; -1: the file does not say
    bool operator==(const Device&) const = default;
  };
  struct Channel {
    std::vector<Device> devices;  ///< in the order of the file
    int line = 0;

    std::vector<Device> gpus() const;
    bool has_net() const { return gpus().size() < devices.size(); }
  };
  int id = 0;       ///< 0 ring, 1 tree, 2 CollNet chain, 3 NVLS, 4 CollNet direct
  int pattern = 0;  ///< 1 to 6, see pattern_name
  int line = 0;
  bool crosses_nics = false;
  bool has_same_channels = false;
  double gbps_intra = 0;  ///< of a channel, inside the host
  double gbps_inter = 0;  ///< between hosts
  double latency_inter_us = 0;
  std::string type_intra, type_inter;  ///< path classes: "NVL"
  std::vector<Channel> channels;
};

inline constexpr int kRingPattern = 4;
/// Channels of a graph: MAXCHANNELS of NCCL.
inline constexpr int kMaxNcclChannels = 64;

/// "ring", "balanced tree", "split tree", "tree", "nvls", "collnet direct". \pre 1 to 6
std::string_view pattern_name(int pattern);

struct NcclGraphs {
  std::vector<NcclFileGraph> graphs;
  std::vector<ForeignNote> notes;  ///< what was not read
};
/// Throws Error{input} with everything that is wrong with the text.
NcclGraphs read_nccl_graphs(std::string_view text, const std::string& file);

}  // namespace espalier
