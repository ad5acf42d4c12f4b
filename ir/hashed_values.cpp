// SPDX-License-Identifier: Apache-2.0
#include "ir/hashed_values.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.h"

namespace espalier {

HashedValues::HashedValues(const Program& program, const CellMap& cells, std::uint64_t seed)
    : seed_(seed), ranks_(static_cast<std::uint64_t>(program.ranks())) {
  if (!info(program.contract.collective).reduces) return;
  reduced_.assign(cells.cells_of(program.contract.units), 0);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    for (std::uint64_t i = 0; i < reduced_.size(); ++i) {
      reduced_[i] = residue(reduced_[i] + weight(rank, i));
    }
  }
}

std::uint64_t process_seed() {
  static const std::uint64_t seed = [] {
    std::uint64_t drawn = 0;
    if (getentropy(&drawn, sizeof drawn) != 0) {
      throw Error(ErrorKind::runtime,
                  std::string("the operating system gives no randomness to verify with: ") +
                      std::strerror(errno),
                  "give a seed");
    }
    return drawn;
  }();
  return seed;
}

}  // namespace espalier
