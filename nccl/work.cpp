// SPDX-License-Identifier: Apache-2.0
#include "nccl/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/check.h"

namespace espalier {
namespace {

constexpr double kKib = 1024;

// A step of the FIFO in bytes of data (src/include/device.h), and how many steps a chunk has.
constexpr double kSimpleStep = 512 * kKib;
constexpr double kLlStep = 32 * kKib;
constexpr double kOldLlStep = 16 * kKib;  // 2.4
constexpr double kLl128Step = 562.5 * kKib;
constexpr int kStepsOfChunk = 4;
/// What a thread holds at once, of data: a word beside its flag; eight words beside those of
/// LL128's lines (src/device, prims_ll and prims_ll128).
constexpr double kLlOfThread = 8;
constexpr double kLl128OfThread = 60;

/// Trees and PAT have all threads from this version on (src/enqueue.cc): "always". Under Simple the
/// last four warps only wait and post.
constexpr int kFirstTreeOfAllThreads = 22;
constexpr int kAllThreads = 640;
constexpr int kAllSimpleThreads = 512;

/// Of NVLS (NCCL_NVLS_CHUNKSIZE), and of its trees, which up to 2.20 have the chunks of others, and
/// in all versions shorter ones between many nodes (NCCL_NVLSTREE_MAX_CHUNKSIZE): src/enqueue.cc of
/// 2.19 (8c6c5951) and of 2.21 (ab2b89c4).
constexpr double kNvlsChunk = 128 * kKib;
constexpr int kFirstTreeOfNvlsChunks = 21;
constexpr double kNvlsTreeChunkOfManyNodes = 64 * kKib;
constexpr int kManyNodes = 4;

/// A channel carries no less traffic than this, a cell, and cells are not divided: src/enqueue.cc
/// of 2.25.1 (80f6bda4), which is taken to be that of 2.23 and later. In that of 2.22.3 (178b6b75)
/// it is 512 bytes, which never matter. What LL sends counts four times from 2.26 on (f44ac759; not
/// yet at 2.25.1).
constexpr double kLeastTraffic = 16 * kKib;
constexpr int kFirstLeastTraffic = 23;
constexpr int kFirstLlTraffic = 26;
constexpr double kLlTraffic = 4;

/// Parts of what one rank sends to another are whole multiples of this from 2.22 on
/// (ncclP2pPartBounds of src/include/device.h).
constexpr double kPartGrain = 4 * kKib;
constexpr int kFirstPartsOfGrains = 22;
/// No block has more sends than this where all ranks send to all: over a network, and up to 2.18 in
/// a node, too (src/enqueue.cc of 2.17.1 has the rule, that of 2.20 has not).
constexpr int kMostSendsOfBlock = 4;
constexpr int kLastLimitedSends = 18;
/// Channels that a pair has in the network, unless its GPUs have several NICs each, and over a
/// PCIe or NVLink each (ncclTopoGetNchannels of src/graph/paths.cc). 2.29.2 has as many as the
/// NIC's rate asks for: not told apart.
constexpr int kChannelsOfLink = 2;

/// LL carries so much of what one rank sends to another for each of their channels
/// (NCCL_P2P_LL_THRESHOLD of src/enqueue.cc@5d3ab08b, 2.17.1). 2.12.6 has no LL for sends and
/// receives (src/collectives/device/sendrecv.h@d427af5d); 2.14 added it, says its commit
/// (79fb0326).
constexpr double kP2pLlBytes = 16 * kKib;
constexpr int kFirstP2pLl = 14;
/// Short messages are divided among all channels that a pair has at least, and for LL those count
/// that it may have, in use or not: in src/enqueue.cc of 2.22.3 (178b6b75), 2.26.2 (f44ac759) and
/// 2.28.3 (zhanglin496/nccl-2.28.3-1), no longer in that of 2.29.2 (ebd1e929), and not yet in that
/// of 2.17.1.
bool counts_all_channels(NcclVersion version) { return version >= 22 && version < 29; }

bool is_collnet(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::collnet_direct || algorithm == NcclAlgorithm::collnet_chain;
}

bool is_allreduce(Collective collective) { return collective == Collective::allreduce; }

/// Bytes that a thread should have, so that another channel is worth it.
double threshold(NcclAlgorithm algorithm, NcclProtocol protocol, int ranks, NcclVersion version) {
  const bool is_plain = !is_collnet(algorithm) || version < 10;
  if (protocol == NcclProtocol::simple) return is_plain ? 64 : 512;
  if (protocol == NcclProtocol::ll128) return 8;
  return algorithm == NcclAlgorithm::ring ? 8.0 * ranks : 8;
}

/// Fewer channels, and then fewer threads, as long as there is too little for all.
void narrow(double bytes, double per_thread, NcclWork& work) {
  while (bytes < work.channels * work.threads * per_thread) {
    if (work.channels >= 2) {
      --work.channels;
    } else if (work.threads % 128 == 0) {
      work.threads /= 2;
    } else {
      break;
    }
  }
}

double step_bytes(NcclProtocol protocol, NcclVersion version) {
  if (protocol == NcclProtocol::simple) return kSimpleStep;
  if (protocol == NcclProtocol::ll128) return kLl128Step;
  return version < 5 ? kOldLlStep : kLlStep;
}

/// Of a tree of `depth` levels of which every block has `bytes` in all.
double tree_chunk(double bytes, NcclProtocol protocol, const NcclMachine& machine, int channels) {
  const double of_channel = bytes / channels;
  const double levels = std::floor(std::log2(machine.nodes));
  if (protocol == NcclProtocol::ll) return kLlStep;
  double chunk = protocol == NcclProtocol::simple ? kSimpleStep : kLl128Step;
  const auto shrink = [&](double rounds, double least_kib) {
    while (of_channel < rounds * chunk && chunk > least_kib * kKib) chunk /= 2;
  };
  const double per_node = machine.ranks_per_node;
  if (protocol == NcclProtocol::simple) {
    const double depth = per_node - 1 + levels;
    shrink(8 * depth, 128);
    shrink(4 * depth, 64);
    shrink(depth, 32);
    return chunk;
  }
  const double steps = 1 + levels + 0.1 * per_node;
  shrink(64 * steps / per_node, 128);
  shrink(16 * steps / per_node, 32);
  return chunk;
}

/// Of an algorithm whose heads each have a share of a channel's chunk, and combine across nodes.
double shared_chunk(double bytes, NcclAlgorithm algorithm, const NcclMachine& machine, int channels,
                    NcclVersion version) {
  struct Rule {
    double rounds;     ///< with less for each of these, chunks are halved,
    double least_kib;  ///< but no further
  };
  const bool is_chain = algorithm == NcclAlgorithm::collnet_chain;
  const double heads = is_chain ? 1 : machine.ranks_per_node;
  double chunk = kSimpleStep;
  std::vector<Rule> rules;
  switch (algorithm) {
    case NcclAlgorithm::nvls_tree:
      if (version >= kFirstTreeOfNvlsChunks) chunk = kNvlsChunk;
      if (machine.nodes >= kManyNodes) chunk = kNvlsTreeChunkOfManyNodes;
      rules = {{32, 256}, {16, 128}, {4, 64}, {1, 32}};
      break;
    case NcclAlgorithm::nvls:
      chunk = kNvlsChunk;
      rules = {{64, 64}, {8, 32}, {2, 16}};
      break;
    default: {
      const double depth = is_chain ? machine.ranks_per_node : 2;
      if (is_chain) chunk = 256 * kKib;
      rules = {{64 * depth, 128}, {8 * depth, 64}, {(is_chain ? 1 : 8) * depth, 32}};
    }
  }
  for (const auto& [rounds, least_kib] : rules) {
    while (bytes < rounds * channels * heads * chunk && chunk > least_kib * kKib) chunk /= 2;
  }
  return chunk;
}

/// Of aggregated trees (src/enqueue.cc of 2.23 and later): as many chunks as that, if they are long
/// enough.
double pat_chunk(Collective collective, double bytes, int channels) {
  const double wanted = collective == Collective::allgather ? 32 : 16;
  double chunk = kSimpleStep;
  while (chunk * channels * wanted > bytes && chunk > 64 * kKib) chunk /= 2;
  return chunk;
}

double ring_chunk(Collective collective, NcclProtocol protocol, NcclVersion version) {
  const double step = step_bytes(protocol, version);
  const bool is_bulk = protocol == NcclProtocol::simple;
  return is_bulk && !info(collective).rooted ? kStepsOfChunk * step : step;
}

/// Channels that serve what one rank sends to another.
struct P2pChannels {
  int least = 1;  ///< where all ranks send to all, no block has more than one
  int most = 1;
};

/// As many channels of every pair as leave all blocks no more than `room` together.
int that_fit(int channels, int ranks, int room) {
  while (channels > 1 && channels * ranks > room) channels /= 2;
  return channels;
}

P2pChannels p2p_channels(const NcclMachine& machine, const NcclGraph& graph, NcclVersion version) {
  const int blocks = nccl_p2p_blocks(graph);
  const bool is_network = machine.nodes > 1;
  // Behind switches a pair has more links than there are blocks. Pairs with a link each are taken
  // to be what limits all others: an estimate.
  const bool has_all = graph.kind == RingKind::switched && !is_network;
  P2pChannels channels;
  channels.most = has_all ? blocks : std::min(kChannelsOfLink, blocks);
  channels.least = that_fit(channels.most, machine.ranks, blocks);
  if (is_network || version <= kLastLimitedSends) {
    channels.most = that_fit(channels.most, machine.ranks, kMostSendsOfBlock * blocks);
  }
  return channels;
}

/// Of a chunk as long as that, on a network: short messages have shorter ones.
double network_chunk(double chunk, double per_peer) {
  if (per_peer < chunk) return chunk / 4;
  return per_peer < 8 * chunk ? chunk / 2 : chunk;
}

/// Channels among which a message of so many cells is divided: each has as many as the busiest
/// of `most` would have, but for the last, which has what is left.
int channels_of_cells(double cells, int most) {
  if (cells <= 1) return 1;
  const double each = std::ceil(cells / most);
  return static_cast<int>(std::ceil(cells / each));
}

/// As many channels as a pair has at least, and twice as many as long as each has too much
/// (scheduleP2pTasksToPlan and calcP2pChunkSize of src/enqueue.cc).
NcclWork p2p_work(Collective collective, double bytes, NcclProtocol protocol,
                  const NcclMachine& machine, const NcclGraph& graph, NcclVersion version) {
  const double per_peer = nccl_p2p_bytes(collective, bytes, machine);
  const bool is_network = machine.nodes > 1;
  const bool is_ll = protocol == NcclProtocol::ll;
  const bool is_wide = graph.is_nvlink() && !is_network;
  const double simple_chunk = is_wide ? kSimpleStep : kSimpleStep / 4;
  // LL's buffers hold a flag for every word of data. Other versions divide before they choose it.
  const double step = is_ll && counts_all_channels(version) ? 2 * kLlStep : simple_chunk;
  const double least_part = is_network ? step / 2 : step / 8;
  const double most_part = is_network ? step : step * 32;
  const P2pChannels channels = p2p_channels(machine, graph, version);
  int parts = channels.least;
  if (!counts_all_channels(version)) {
    parts = std::clamp(static_cast<int>(std::min(std::ceil(per_peer / least_part), 1e6)), 1, parts);
  }
  // NCCL has more channels for long messages between all ranks, too. They would share blocks, which
  // take several sends at once; here a block takes one, and the longer for it.
  const bool has_room = collective == Collective::sendrecv;
  while (has_room && per_peer / parts > most_part && parts <= channels.most / 2) parts *= 2;
  const double grain = version >= kFirstPartsOfGrains ? kPartGrain : least_part;
  const double part = std::max(1.0, std::ceil(per_peer / parts / grain)) * grain;
  NcclWork work;
  work.channels = std::max(1, static_cast<int>(std::ceil(per_peer / part)));
  work.chunk_bytes = is_ll        ? kLlStep
                     : is_network ? network_chunk(simple_chunk, per_peer)
                                  : simple_chunk;
  return work;
}

}  // namespace

bool has_all_nccl_threads(NcclAlgorithm algorithm, NcclVersion version) {
  const bool is_tree = algorithm == NcclAlgorithm::tree || algorithm == NcclAlgorithm::pat;
  return is_tree && version >= kFirstTreeOfAllThreads;
}

double nccl_tree_share(NcclProtocol protocol) {
  // runTreeSplit of src/device/all_reduce.h: half of the threads, or 70 % for the sums and 30 % for
  // handing out, "more compute intensive" as sums are. That both then go at one rate, as whoever
  // chose the shares will have seen to, is an estimate.
  return protocol == NcclProtocol::simple ? 0.5 : 0.7;
}

double nccl_part_bytes(Collective collective, NcclAlgorithm algorithm, NcclProtocol protocol,
                       int threads) {
  const bool is_tree = algorithm == NcclAlgorithm::tree;
  const bool is_chain = algorithm == NcclAlgorithm::ring && info(collective).rooted;
  if (!is_tree && !is_chain) return 0;
  const double of_direction = threads * (is_tree ? nccl_tree_share(protocol) : 1);
  switch (protocol) {
    case NcclProtocol::ll:
      return of_direction * kLlOfThread;
    case NcclProtocol::ll128:
      return of_direction * kLl128OfThread;
    case NcclProtocol::simple:
      return 0;
  }
  CHECK(false);
}

int nccl_p2p_blocks(const NcclGraph& graph) {
  int blocks = 1;
  while (blocks < nccl_blocks(graph)) blocks *= 2;
  return blocks;
}

double nccl_p2p_bytes(Collective collective, double bytes, const NcclMachine& machine) {
  return collective == Collective::sendrecv ? bytes : bytes / std::max(1, machine.ranks);
}

std::string why_no_p2p_ll(const NcclMachine& machine, NcclVersion version) {
  if (version < kFirstP2pLl) {
    return fmt::format("sends and receives have ll since NCCL 2.{}", kFirstP2pLl);
  }
  // NCCL_ALLOC_P2P_NET_LL_BUFFERS=0, the default (src/transport/net.cc). Peers in the node would
  // still use it, but the others take longer.
  return machine.nodes > 1 ? "sends and receives over a network have no buffers for ll" : "";
}

double nccl_p2p_ll_bytes(const NcclMachine& machine, const NcclGraph& graph, NcclVersion version) {
  const auto [least, most] = p2p_channels(machine, graph, version);
  if (counts_all_channels(version)) return most * kP2pLlBytes;
  // What has a second channel is too long for LL on both of them.
  if (graph.is_nvlink()) return kP2pLlBytes;
  // Over PCIe a channel's part is no longer than that to begin with.
  return least * kP2pLlBytes;
}

int most_nccl_threads(NcclAlgorithm algorithm, NcclProtocol protocol, const NcclGraph& graph,
                      NcclVersion version) {
  if (version < 5) return 256;
  if (protocol == NcclProtocol::ll128) return 640;
  const bool is_narrow = graph.gbps() <= 12;
  return algorithm == NcclAlgorithm::ring && protocol == NcclProtocol::simple && is_narrow ? 256
                                                                                           : 512;
}

NcclWork nccl_work(Collective collective, double bytes, NcclAlgorithm algorithm,
                   NcclProtocol protocol, const NcclMachine& machine, const NcclGraph& graph,
                   NcclVersion version) {
  if (algorithm == NcclAlgorithm::p2p) {
    return p2p_work(collective, bytes, protocol, machine, graph, version);
  }
  NcclWork work;
  work.channels = nccl_blocks(graph);
  work.most_threads = most_nccl_threads(algorithm, protocol, graph, version);
  work.threads = work.most_threads;
  if (algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree) {
    const bool is_blackwell = machine.era == NcclGpuEra::blackwell;
    work.channels = is_blackwell ? (machine.nodes > 1 ? 32 : 24) : 16;
    if (machine.nodes > 1) {
      work.chunk_bytes = shared_chunk(bytes, algorithm, machine, work.channels, version);
    }
    return work;
  }
  // 2.4 has its own rule. The tuner sets no number of threads for PAT ("Max NThreads" is 0 in a log
  // of 2.28.9), so that no message is too short for them.
  const bool has_all_channels =
      algorithm == NcclAlgorithm::pat || (version < 5 && protocol == NcclProtocol::simple);
  if (!has_all_channels) {
    narrow(bytes, threshold(algorithm, protocol, machine.ranks, version), work);
  }
  if (has_all_nccl_threads(algorithm, version)) {
    work.threads = protocol == NcclProtocol::simple ? kAllSimpleThreads : kAllThreads;
  }
  if (version >= kFirstLeastTraffic) {
    const bool counts_more = protocol == NcclProtocol::ll && version >= kFirstLlTraffic;
    const double traffic =
        bytes * (is_allreduce(collective) ? 2 : 1) * (counts_more ? kLlTraffic : 1);
    work.channels = channels_of_cells(std::ceil(traffic / kLeastTraffic), work.channels);
  }
  if (is_collnet(algorithm)) {
    work.chunk_bytes = shared_chunk(bytes, algorithm, machine, work.channels, version);
  } else if (algorithm == NcclAlgorithm::tree) {
    work.chunk_bytes = tree_chunk(bytes, protocol, machine, work.channels);
  } else if (algorithm == NcclAlgorithm::pat) {
    work.chunk_bytes = pat_chunk(collective, bytes, work.channels);
  } else {
    work.chunk_bytes = ring_chunk(collective, protocol, version);
  }
  const bool is_bulk = protocol == NcclProtocol::simple;
  if (is_bulk) work.slices = !info(collective).rooted && algorithm == NcclAlgorithm::ring ? 2 : 1;
  if (!is_bulk && version < 20) {
    work.align_bytes = work.threads * (protocol == NcclProtocol::ll ? 8.0 : 30.0);
  } else if (!is_bulk) {
    work.align_bytes = 16;
  }
  return work;
}

}  // namespace espalier
