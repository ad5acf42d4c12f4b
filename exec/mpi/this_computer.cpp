// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/this_computer.h"

#include <unistd.h>

#include <array>
#include <fstream>

namespace espalier {

std::string id_of_computer() {
  std::string id;
  if (std::ifstream("/proc/sys/kernel/random/boot_id") >> id) return id;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace espalier
