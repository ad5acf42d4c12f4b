// SPDX-License-Identifier: Apache-2.0
#include "run/inventory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"

namespace espalier {
namespace {

/// Of the ranks of a host, numbered as they appear; all 0 where that of one is not known.
std::vector<int> numbered(std::vector<int> sockets) {
  std::vector<int> known;
  const bool is_known = std::ranges::count(sockets, -1) == 0;
  for (int& socket : sockets) {
    if (std::ranges::count(known, socket) == 0) known.push_back(socket);
    socket = is_known ? static_cast<int>(std::ranges::find(known, socket) - known.begin()) : 0;
  }
  return sockets;
}

/// How many hosts there are, of the host of each rank.
int count_alike(const std::vector<int>& hosts) {
  const auto each = std::ranges::count(hosts, hosts.front());
  for (auto first = hosts.begin(); first < hosts.end(); first += each) {
    const bool is_whole =
        hosts.end() - first >= each && std::count(first, first + each, *first) == each;
    if (is_whole && std::ranges::count(hosts, *first) == each) continue;
    throw Error(ErrorKind::unsupported,
                "the network is measured between hosts with the same number of ranks each, one "
                "host's after the other's",
                "mpirun --map-by ppr:4:node, or as many slots on each host");
  }
  return static_cast<int>(hosts.size()) / static_cast<int>(each);
}

/// Whether the ranks of each host share one GPU.
bool share_gpus(const std::vector<ProbedProcess>& processes) {
  std::map<int, std::vector<std::string>> bus_ids;  // by host
  for (const ProbedProcess& process : processes) {
    bus_ids[process.host].push_back(process.bus_id);
  }
  std::set<bool> shares;
  for (const auto& [host, all] : bus_ids) {
    const std::set<std::string> different(all.begin(), all.end());
    const bool is_shared = different.size() == 1 && all.size() > 1;
    if (!is_shared && different.size() < all.size()) shares = {false, true};
    shares.insert(is_shared);
  }
  if (shares.size() == 1) return *shares.begin();
  throw Error(ErrorKind::unsupported, "some ranks share a GPU, and others do not",
              "give each rank its own GPU, or all of a host the same one");
}

}  // namespace

std::vector<std::vector<int>> Inventory::ranks_by_socket() const {
  std::vector<std::vector<int>> groups(1);
  for (int rank = 0; rank < ranks_of_a_host(); ++rank) {
    const std::size_t socket =
        sockets.empty() ? 0 : static_cast<std::size_t>(sockets[static_cast<std::size_t>(rank)]);
    groups.resize(std::max(groups.size(), socket + 1));
    groups[socket].push_back(rank);
  }
  return groups;
}

std::vector<int> Inventory::paired_ranks() const {
  std::vector<int> paired;
  if (!is_shared()) {
    for (int rank = 0; rank < ranks_of_a_host(); ++rank) paired.push_back(rank);
    return paired;
  }
  for (const std::vector<int>& neighbours : ranks_by_socket()) {
    if (neighbours.size() > 1) return {neighbours[0], neighbours[1]};
  }
  return {0};
}

Inventory inventory_of_one_memory(std::string name, std::string device, int ranks) {
  Inventory inventory;
  inventory.name = std::move(name);
  inventory.devices.emplace_back().name = std::move(device);
  inventory.can_access = {{true}};
  inventory.sharing = ranks;
  inventory.is_host = true;
  return inventory;
}

Inventory inventory_of_processes(const std::vector<int>& hosts, const std::vector<int>& sockets) {
  const auto ranks = static_cast<int>(hosts.size());
  Inventory inventory = inventory_of_one_memory("mpi", "processes of a computer", ranks);
  inventory.has_messages = true;
  inventory.hosts = count_alike(hosts);
  const auto each = inventory.ranks_of_a_host();
  for (auto first = sockets.begin(); first < sockets.end(); first += each) {
    for (const int socket : numbered({first, first + each})) inventory.sockets.push_back(socket);
  }
  if (std::ranges::all_of(inventory.sockets, [](int socket) { return socket == 0; })) {
    inventory.sockets.clear();
  }
  return inventory;
}

Inventory inventory_of_gpu_processes(const std::vector<ProbedProcess>& processes) {
  std::vector<int> hosts;
  for (const ProbedProcess& process : processes) hosts.push_back(process.host);
  Inventory inventory;
  inventory.name = "mpi";
  inventory.has_messages = true;
  inventory.hosts = count_alike(hosts);
  if (share_gpus(processes)) {
    inventory.devices = {processes.front().device};
    // Of any host, as all of them get buffers of one size.
    std::int64_t& free_bytes = inventory.devices.front().free_bytes;
    for (const ProbedProcess& process : processes) {
      free_bytes = std::min(free_bytes, process.device.free_bytes);
    }
    inventory.can_access = {{true}};
    inventory.sharing = static_cast<int>(processes.size());
    return inventory;
  }
  for (const ProbedProcess& process : processes) {
    inventory.devices.push_back(process.device);
    inventory.can_access.push_back(process.can_map);
  }
  return inventory;
}

}  // namespace espalier
