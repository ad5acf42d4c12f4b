// SPDX-License-Identifier: Apache-2.0
#include "run/inventory.h"

#include <algorithm>
#include <utility>

namespace espalier {

std::vector<std::vector<int>> ranks_by_socket(const Inventory& inventory) {
  std::vector<int> numbers;  // of sockets, as they come
  std::vector<std::vector<int>> ranks;
  for (int rank = 0; rank < inventory.ranks_of_a_host(); ++rank) {
    const int socket =
        inventory.sockets.empty() ? 0 : inventory.sockets[static_cast<std::size_t>(rank)];
    const auto known = std::ranges::find(numbers, socket);
    const auto index = static_cast<std::size_t>(known - numbers.begin());
    if (known == numbers.end()) {
      numbers.push_back(socket);
      ranks.emplace_back();
    }
    ranks[index].push_back(rank);
  }
  return ranks;
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

}  // namespace espalier
