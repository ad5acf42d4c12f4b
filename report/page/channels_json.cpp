// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "report/page/parts.h"

namespace espalier {

namespace {

/// Steps of a share of a link's capacity.
constexpr int kLoadSteps = 200;
constexpr unsigned kFirstLoad = 0x100;

/// Where a channel is drawn: indices of drawn links, in their direction and against it. Several,
/// where links share a medium or behave alike; none within a fold.
struct Ways {
  std::set<int> forward;
  std::set<int> backward;
};

void add_way(const Hop& hop, const DrawnMachines::One& machine, Ways& ways) {
  const int index = machine.link_index[static_cast<std::size_t>(hop.link)];
  if (index < 0) return;
  const Link& link = machine.topology->link(hop.link);
  const DrawnLink& drawn_link = machine.drawing.links[static_cast<std::size_t>(index)];
  const bool is_same = machine.node_index[static_cast<std::size_t>(link.a)] == drawn_link.a;
  const bool both = link.duplex != Duplex::full;
  if (both || is_same == hop.forward) ways.forward.insert(index);
  if (both || is_same != hop.forward) ways.backward.insert(index);
}

std::vector<Ways> ways_of(const std::vector<Channel>& channels, const Rotation* rotation,
                          const DrawnMachines::One& machine) {
  const Topology& topology = *machine.topology;
  std::vector<Ways> ways(channels.size());
  std::unordered_map<std::string, std::size_t> shared;  // by name: those of several links
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const Channel& one = channels[i];
    if (rotation != nullptr || topology.link(one.link).duplex == Duplex::shared) {
      shared.emplace(one.name, i);
    } else {
      add_way({one.link, one.forward}, machine, ways[i]);
    }
  }
  for (LinkId id = 0; id < static_cast<LinkId>(topology.links.size()) && !shared.empty(); ++id) {
    for (const bool forward : {true, false}) {
      const Hop hop{id, forward};
      const Hop first = rotation == nullptr ? hop : rotation->first(hop);
      const auto channel = shared.find(link_name(topology, first.link, first.forward));
      if (channel != shared.end()) add_way(hop, machine, ways[channel->second]);
    }
  }
  return ways;
}

/// Of every direction of a drawn link the busiest, and of the rest as many as there is room for.
std::vector<std::size_t> shown_channels(const std::vector<Channel>& all,
                                        const std::vector<Ways>& ways, std::size_t most) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.push_back(i);
  const auto is_busier = [&](std::size_t a, std::size_t b) {
    return all[a].utilization > all[b].utilization;
  };
  std::ranges::stable_sort(order, is_busier);
  if (order.size() <= most) return order;
  std::set<int> forward;
  std::set<int> backward;
  std::stable_partition(order.begin(), order.end(), [&](std::size_t at) {
    bool is_first = false;
    for (const int link : ways[at].forward) is_first |= forward.insert(link).second;
    for (const int link : ways[at].backward) is_first |= backward.insert(link).second;
    return is_first;
  });
  order.resize(most);
  std::ranges::stable_sort(order, is_busier);
  return order;
}

Json numbers_of(const std::set<int>& drawn_links, DrawnMachines::One& machine) {
  Json numbers = Json::array();
  for (const int link : drawn_links) {
    const int number = machine.number_of_drawn(link);
    if (number >= 0) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::string shares_text(const std::vector<double>& shares) {
  std::string text;
  text.reserve(2 * shares.size());
  for (const double share : shares) {
    const auto level = static_cast<unsigned>(
        std::clamp(std::lround(share * kLoadSteps), 0L, static_cast<long>(kLoadSteps)));
    // What is used at all does not look idle.
    const unsigned code = kFirstLoad + (share > 0 ? std::max(level, 1U) : 0);
    text += static_cast<char>(0xC0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
  return text;
}

Json channels_json(const std::vector<Channel>& all, std::size_t most, const Rotation* rotation,
                   DrawnMachines::One& machine, std::vector<int>* number) {
  const std::vector<Ways> ways = ways_of(all, rotation, machine);
  if (number != nullptr) number->assign(all.size(), -1);
  Json channels = Json::array();
  for (const std::size_t at : shown_channels(all, ways, most)) {
    const Channel& one = all[at];
    if (number != nullptr) (*number)[at] = static_cast<int>(channels.size());
    channels.push_back({{"name", one.name},
                        {"forward", numbers_of(ways[at].forward, machine)},
                        {"backward", numbers_of(ways[at].backward, machine)},
                        {"capacity_gbps", drawn(one.capacity_gbps)},
                        {"bytes", drawn(one.bytes)},
                        {"busy_us", drawn(one.busy_s * 1e6)},
                        {"utilization", drawn(one.utilization)},
                        {"ops", one.ops},
                        {"load", shares_text(one.load)}});
  }
  return channels;
}

}  // namespace espalier
