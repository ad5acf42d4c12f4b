// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "run/target.h"

namespace espalier {

/// How fast memories that nodes share are while a program runs, by how much of each it reads and
/// writes (SharedMemory::working_sets). Calls follow one another on the same buffers: what a call
/// has left in caches is there for the next one, as far as all of it fits.
///
/// Every byte that ops read or write counts once, and the nodes that have any share them alike.
/// What is reduced separately counts where it is stored on arrival, too, each operand in a place of
/// its own.
class WorkingSets {
 public:
  /// Looks at ops only where a memory has working sets. `message_bytes`: as in OpCosts. Keeps
  /// nothing of its arguments.
  WorkingSets(const Program& program, const Target& target, double message_bytes);

  /// Of the memory that the node has a part of; null where its figures are those of the machine.
  const WorkingSet* of(const Node& node) const;

 private:
  std::map<std::pair<int, std::string>, WorkingSet> by_host_and_name_;
};

}  // namespace espalier
