// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// A part of this computer whose processors reach its memory faster than the memory of others.
struct NumaNode {
  int number = 0;               ///< as Linux has it
  std::vector<int> processors;  ///< those that this process may use, ascending
};

/// Processors that the calling thread may use (sched_getaffinity), ascending; none when that is not
/// known.
std::vector<int> allowed_processors();

/// The nodes that have processors among `allowed`, by number; none where Linux tells of none.
/// `folder`: another one for tests.
std::vector<NumaNode> numa_nodes(const std::vector<int>& allowed,
                                 const std::filesystem::path& folder = "/sys/devices/system/node");

/// Where places and threads are. Of one node only, everything is empty and nothing is placed.
struct NumaPlan {
  std::vector<NumaNode> nodes;     ///< that are used: two or more
  std::vector<int> node_of_place;  ///< into `nodes`
  std::vector<int> threads;        ///< by node, one at least
};

/// Neighbouring ranks lie together, since most programs exchange most with them: each node gets a
/// run of ranks, one of host memories and one of relays, in proportion to its processors. So are
/// the threads divided. No more nodes are used than there are threads or ranks.
NumaPlan spread_over_nodes(const Program& program, std::vector<NumaNode> nodes, int threads);

/// Keeps the calling thread on these processors while it lives, or where it was when the system
/// does not allow that or there are none in the list.
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

/// Asks for pages that are not touched yet to be of the memory of that node, or of another when it
/// is full. Whether the system allowed it; containers often don't, and then a page is of the node
/// of the thread that first touches it. \pre `memory` is at the beginning of a page
bool prefer_node(void* memory, std::size_t bytes, int number);

/// A line for each node: "NUMA node 0: r0-r3, h0; 8 threads". \p threads by node, those that run.
std::vector<std::string> describe(const Program& program, const NumaPlan& plan,
                                  const std::vector<int>& threads);

}  // namespace espalier
