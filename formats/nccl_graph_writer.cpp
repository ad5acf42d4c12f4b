// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_graph_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/words.h"
#include "formats/nccl_graph_file.h"
#include "ir/print.h"

namespace espalier {
namespace {

/// Of a channel, where a program does not say: NCCL's figure for an NVLink of V100 or A100.
constexpr int kGuessedGbps = 20;

/// What the transfers of a lane make: for each rank where its data goes, and comes from.
struct Lane {
  std::map<int, int> next, previous;
  std::size_t first_op = 0;
  std::int64_t units = 0;
};

class RingFinder {
 public:
  explicit RingFinder(const Program& program) : program_(program) {}

  /// The order of ranks on each lane that moves data between them.
  std::vector<std::vector<int>> find() {
    require_collective();
    for (std::size_t op = 0; op < program_.ops.size(); ++op) add(op);
    std::vector<std::vector<int>> orders;
    for (const auto& [number, lane] : lanes_) orders.push_back(order_of(number, lane));
    if (orders.empty()) refuse("no op moves data from one rank to another");
    return orders;
  }

  bool are_equal() const {
    const auto units = [](const auto& entry) { return entry.second.units; };
    return std::ranges::adjacent_find(lanes_, std::not_equal_to{}, units) == lanes_.end();
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw Error(ErrorKind::unsupported, "a graph file of NCCL holds rings: " + why,
                "name a program of rings, such as those of nccl_rings without relays");
  }
  [[noreturn]] void refuse(std::size_t op, const std::string& why) const {
    const std::string line = op < program_.lines.size() && program_.lines[op] > 0
                                 ? fmt::format(" (line {})", program_.lines[op])
                                 : "";
    refuse(fmt::format("op {}{} is no part of one: {}", op, line, why));
  }

  bool is_rooted() const { return info(program_.contract.collective).rooted; }

  void require_collective() const {
    switch (program_.contract.collective) {
      case Collective::allreduce:
      case Collective::allgather:
      case Collective::reducescatter:
      case Collective::broadcast:
      case Collective::reduce:
        return;
      default:
        refuse(
            fmt::format("NCCL uses them for allreduce, allgather, reducescatter, broadcast and "
                        "reduce, not for {}",
                        to_string(program_.contract.collective)));
    }
  }

  std::string name(PlaceId place) const {
    const PlaceNumber number = place_number(program_, place);
    const char kind = number.kind == PlaceKind::rank   ? 'r'
                      : number.kind == PlaceKind::host ? 'h'
                                                       : 'g';
    return fmt::format("{}{}", kind, number.number);
  }

  void add(std::size_t index) {
    const Op& op = program_.ops[index];
    if (op.kind != OpKind::combine) refuse(index, "it moves nothing");
    if (op.in_switch) refuse(index, "a switch does it");
    for_each_transfer(program_, op, [&](PlaceId from, PlaceId to) {
      for (const PlaceId place : {from, to}) {
        if (place >= program_.ranks()) refuse(index, fmt::format("{} is no rank", name(place)));
      }
      const auto [at, is_new] = lanes_.try_emplace(op.lane);
      Lane& lane = at->second;
      if (is_new) lane.first_op = index;
      lane.units += op.length;
      const int next = lane.next.try_emplace(from, to).first->second;
      const int previous = lane.previous.try_emplace(to, from).first->second;
      if (next != to) {
        refuse(index, fmt::format("{} sends to {} on lane {}, and to {} before", name(from),
                                  name(to), op.lane, name(next)));
      }
      if (previous != from) {
        refuse(index, fmt::format("{} receives from {} on lane {}, and from {} before", name(to),
                                  name(from), op.lane, name(previous)));
      }
    });
  }

  /// From the first rank without a predecessor, or rank 0. Only where one rank has everything
  /// first or last may a hop of the ring be missing.
  std::vector<int> order_of(int number, const Lane& lane) const {
    int start = 0;
    for (int rank = 0; rank < program_.ranks() && is_rooted(); ++rank) {
      if (lane.previous.contains(rank)) continue;
      start = rank;
      break;
    }
    std::vector<int> order = {start};
    for (auto next = lane.next.find(start); next != lane.next.end() && next->second != start;
         next = lane.next.find(next->second)) {
      order.push_back(next->second);
    }
    const bool has_all = order.size() == static_cast<std::size_t>(program_.ranks());
    const bool is_closed = lane.next.size() == order.size();
    if (has_all && (is_closed || is_rooted())) return order;
    std::vector<std::string> names;
    for (const int rank : order) names.push_back(name(rank));
    constexpr std::size_t kShown = 8;
    if (names.size() > kShown) names.resize(kShown);
    refuse(lane.first_op,
           fmt::format("the transfers of lane {} are no ring through all {} ranks, but go {}",
                       number, program_.ranks(), join(names, " to ")));
  }

  const Program& program_;
  std::map<int, Lane> lanes_;
};

}  // namespace

Written write_nccl_graph(const Program& program, const WritingOptions& options) {
  const std::set<int> hosts(options.host_of_rank.begin(), options.host_of_rank.end());
  if (hosts.size() > 1) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("a graph file of NCCL holds the channels of one host, and the ranks are "
                    "on {}",
                    hosts.size()),
        "write a program for the GPUs of one host");
  }
  RingFinder finder(program);
  const std::vector<std::vector<int>> rings = finder.find();
  if (rings.size() > kMaxNcclChannels) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the program has {}, but NCCL {} channels at most",
                            counted(rings.size(), "ring"), kMaxNcclChannels));
  }
  Written written;
  written.text = fmt::format(
      "<graphs version=\"1\">\n"
      "  <!-- Experimental: rings of a program by Espalier, for NCCL_GRAPH_FILE. -->\n"
      "  <graph id=\"0\" pattern=\"{}\" crossnic=\"0\" nchannels=\"{}\" speedintra=\"{}\" "
      "speedinter=\"{}\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" "
      "samechannels=\"0\">\n",
      kRingPattern, rings.size(), kGuessedGbps, kGuessedGbps);
  for (const std::vector<int>& order : rings) {
    written.text += "    <channel>\n";
    for (const int rank : order) written.text += fmt::format("      <gpu dev=\"{:#x}\"/>\n", rank);
    written.text += "    </channel>\n";
  }
  written.text += "  </graph>\n</graphs>\n";
  written.notes = {
      "experimental: NCCL reads the file without checking that its rings can be made",
      "rank i is taken for the GPU with device number i",
      fmt::format("a program does not say how fast a channel is: {} GB/s and NVL are guesses, on "
                  "which NCCL's choice among algorithms depends",
                  kGuessedGbps),
      fmt::format("NCCL doubles the {} of the file where it has room",
                  counted(rings.size(), "channel"))};
  if (!finder.are_equal()) {
    written.notes.push_back("rings carry unequal parts of the message; NCCL gives all the same");
    written.is_reshaped = true;
  }
  if (info(program.contract.collective).rooted) {
    written.notes.push_back("the last hop of each ring is one that the program does not use");
  }
  return written;
}

}  // namespace espalier
