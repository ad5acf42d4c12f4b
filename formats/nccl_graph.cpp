// SPDX-License-Identifier: Apache-2.0
// NCCL's graph files (NCCL_GRAPH_DUMP_FILE, NCCL_GRAPH_FILE; src/graph/search.cc): in which order
// channels visit the GPUs of a host. The rings are a program here, an allreduce as NCCL's.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
#include "formats/nccl_graph_file.h"
#include "formats/nccl_graph_writer.h"
#include "formats/xml_text.h"
#include "ir/rings.h"

namespace espalier {
namespace {

/// Ops of a program: a ring has 2 n (n - 1) for each channel.
constexpr std::size_t kMaxOps = std::size_t{1} << 22;

using Gpu = std::pair<std::uint64_t, std::uint64_t>;

std::string name_of(const Gpu& gpu) {
  return gpu.first == 0 ? fmt::format("gpu {:#x}", gpu.second)
                        : fmt::format("gpu {:#x} of system {}", gpu.second, gpu.first);
}

std::set<Gpu> gpus_of(const NcclFileGraph::Channel& channel) {
  std::set<Gpu> gpus;
  for (const NcclFileGraph::Device& device : channel.gpus())
    gpus.insert({device.system, device.dev});
  return gpus;
}

/// "ring: 8 channels over 8 GPUs, 24 GB/s each (NVL), 24 between hosts (PXN)"
std::string describe(const NcclFileGraph& graph) {
  std::set<Gpu> gpus;
  for (const NcclFileGraph::Channel& channel : graph.channels) gpus.merge(gpus_of(channel));
  if (graph.channels.empty()) return fmt::format("{}: none found", pattern_name(graph.pattern));
  return fmt::format("{}: {} over {}, {} GB/s each ({}), {} between hosts ({})",
                     pattern_name(graph.pattern), counted(graph.channels.size(), "channel"),
                     counted(gpus.size(), "GPU"), graph.gbps_intra, graph.type_intra,
                     graph.gbps_inter, graph.type_inter);
}

class ProgramMaker {
 public:
  explicit ProgramMaker(const FormatText& given)
      : given_(given), file_(read_nccl_graphs(given.text, given.file)) {}

  ForeignProgram make() {
    std::vector<std::string> said;
    for (const NcclFileGraph& graph : file_.graphs) said.push_back(describe(graph));
    result_.facts = fmt::format("NCCL graphs: {}", join(said, "; "));
    result_.notes = file_.notes;
    const auto ring = std::ranges::find(file_.graphs, kRingPattern, &NcclFileGraph::pattern);
    if (ring == file_.graphs.end() || ring->channels.empty()) {
      refuse(ring == file_.graphs.end() ? file_.graphs.front().line : ring->line,
             "the file has no ring: only rings are made a program",
             "trees, NVLS and CollNet are described, and NCCL does not say how data moves there");
      return std::move(result_);
    }
    number_ranks(*ring);
    if (result_.verification.ok()) build(*ring);
    return std::move(result_);
  }

 private:
  void refuse(int line, std::string message, std::string suggestion = {}) {
    result_.verification.problems.push_back(
        {"", std::move(message), std::move(suggestion), {given_.file, line, 0}});
  }

  /// By the file's ranks, or else by system and device.
  void number_ranks(const NcclFileGraph& ring) {
    std::set<Gpu> all;
    std::map<Gpu, int> stated;
    for (const NcclFileGraph::Channel& channel : ring.channels) {
      all.merge(gpus_of(channel));
      for (const NcclFileGraph::Device& gpu : channel.gpus()) {
        if (gpu.rank < 0) continue;
        const auto [known, is_new] = stated.try_emplace({gpu.system, gpu.dev}, gpu.rank);
        if (is_new || known->second == gpu.rank) continue;
        refuse(channel.line, fmt::format("{} has rank {} here and {} elsewhere",
                                         name_of(known->first), gpu.rank, known->second));
      }
    }
    for (std::size_t c = 0; c < ring.channels.size(); ++c) {
      const std::set<Gpu> own = gpus_of(ring.channels[c]);
      for (const Gpu& gpu : all) {
        if (own.contains(gpu)) continue;
        refuse(ring.channels[c].line,
               fmt::format("channel {} is no ring through all GPUs: it lacks {}", c, name_of(gpu)));
        break;
      }
    }
    if (all.size() == 1) refuse(ring.line, "the channels have one GPU, which makes no ring");
    std::vector<std::pair<int, Gpu>> order;
    for (const Gpu& gpu : all) {
      const auto known = stated.find(gpu);
      order.emplace_back(stated.size() == all.size() ? known->second : 0, gpu);
    }
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) rank_[order[i].second] = static_cast<int>(i);
    result_.notes.push_back({stated.size() == all.size()
                                 ? "ranks are in the order of the file's"
                                 : "ranks are in the order of the GPUs' device numbers"});
  }

  void build(const NcclFileGraph& graph) {
    const std::size_t n = rank_.size();
    if (2 * n * n * graph.channels.size() > kMaxOps) {
      refuse(graph.line,
             fmt::format("{} over {} have more than {} ops", counted(graph.channels.size(), "ring"),
                         counted(n, "GPU"), kMaxOps));
      return;
    }
    std::vector<Ring> rings;
    for (const NcclFileGraph::Channel& channel : graph.channels) {
      Ring ring;
      for (const NcclFileGraph::Device& gpu : channel.gpus()) {
        ring.order.push_back(rank_.at({gpu.system, gpu.dev}));
      }
      ring.relays.assign(n, -1);
      rings.push_back(std::move(ring));
    }
    Contract contract;
    contract.collective = Collective::allreduce;
    contract.ranks = static_cast<int>(n);
    contract.units = ring_units(contract.collective, contract.ranks, rings.size());
    Builder builder("nccl_graph", contract);
    for (const RingChannel& channel : ring_channels(rings, false, true)) {
      add_ring_channel(builder, channel);
    }
    result_.program = builder.finish();
    for (const Op& op : result_.program.ops) {
      result_.program.lines.push_back(graph.channels[op.lane % rings.size()].line);
    }
    result_.has_program = true;
    result_.verification = verify(result_.program);
    add_notes(graph);
  }

  void add_notes(const NcclFileGraph& ring) {
    const std::size_t channels = ring.channels.size();
    result_.notes.push_back({fmt::format(
        "the file has channels as they were before NCCL doubled them: its logs show up "
        "to {} where this program has {}",
        2 * channels, counted(channels, "lane"))});
    if (std::ranges::any_of(ring.channels, &NcclFileGraph::Channel::has_net)) {
      result_.notes.push_back(
          {"channels begin and end at network cards, where rings over several hosts go on; this "
           "program closes them over the GPUs of the file alone"});
    }
    std::vector<std::string> others;
    for (const NcclFileGraph& graph : file_.graphs) {
      if (&graph == &ring || graph.channels.empty()) continue;
      others.push_back(fmt::format("{} ({})", graph.id, pattern_name(graph.pattern)));
    }
    if (!others.empty()) {
      result_.notes.push_back({fmt::format(
          "the other graphs of the file are no part of the program: {}", join(others, ", "))});
    }
    result_.notes.push_back(
        {"GB/s and classes of paths are not in a program: the machine has them"});
  }

  const FormatText& given_;
  NcclGraphs file_;
  std::map<Gpu, int> rank_;
  ForeignProgram result_;
};

}  // namespace

const Format& nccl_graph_format() {
  static const Format format = {
      .name = "nccl-graph",
      .title = "graph XML of NCCL: rings and trees (NCCL_GRAPH_DUMP_FILE, NCCL_GRAPH_FILE)",
      .extension = ".xml",
      .recognises = [](std::string_view text) { return first_element(text) == "graphs"; },
      .read_program = [](const FormatText& text) { return ProgramMaker(text).make(); },
      .write_program = write_nccl_graph,
      .is_repeated_by_reader = true};
  return format;
}

}  // namespace espalier
