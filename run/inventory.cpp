// SPDX-License-Identifier: Apache-2.0
#include "run/inventory.h"

#include <utility>

namespace espalier {

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
