// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// A part of this computer: a memory, and the processors that reach it faster than any other one.
struct NumaNode {
  int number = 0;               ///< that Linux gives it
  std::vector<int> processors;  ///< that this process may use, ascending
  bool operator==(const NumaNode&) const = default;
};

/// Processors that the calling thread may use (sched_getaffinity), ascending; empty when they are
/// not known.
std::vector<int> allowed_processors();

/// The nodes that have processors among `allowed`, by number; empty where Linux lists no nodes.
/// Tests read another `folder`.
std::vector<NumaNode> numa_nodes(const std::vector<int>& allowed,
                                 const std::filesystem::path& folder = "/sys/devices/system/node");

/// On which nodes places and threads are. Where there is only one node, all of it is empty and
/// nothing is placed.
struct NumaPlan {
  std::vector<NumaNode> nodes;     ///< that are used: two or more
  std::vector<int> node_of_place;  ///< index in `nodes`
  std::vector<int> threads;        ///< number of threads on each node, at least one
};

/// Neighbouring ranks are placed together, since most programs exchange most data between them:
/// each node gets consecutive ranks, host memories and relays, in proportion to its processors.
/// Threads are divided in the same proportion. At most as many nodes are used as there are threads
/// or ranks.
NumaPlan spread_over_nodes(const Program& program, std::vector<NumaNode> nodes, int threads);

/// Keeps the calling thread on these processors as long as the object lives. Where the system does
/// not allow that or the list is empty, the thread stays where it was.
class PinnedThread {
 public:
  explicit PinnedThread(const std::vector<int>& processors);
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

  /// False when the system refused.
  bool is_as_wanted() const { return is_as_wanted_; }

 private:
  std::vector<unsigned long> before_;  ///< the thread's processors as bits; none: nothing changed
  bool is_as_wanted_ = true;
};

/// Asks the system to take pages that are not touched yet from the memory of that node, or from
/// another one's when it is full. Returns whether the system allowed it. Containers often do not;
/// a page is then on the node of the thread that touches it first. \pre `memory` is at the
/// beginning of a page
bool prefer_node(void* memory, std::size_t bytes, int number);

/// A line for each node: "NUMA node 0: r0-r3, h0; 8 threads". `threads`: how many
/// threads run on each node.
std::vector<std::string> describe(const Program& program, const NumaPlan& plan,
                                  const std::vector<int>& threads);

}  // namespace espalier
