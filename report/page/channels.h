// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ir/program.h"
#include "run/report.h"
#include "run/target.h"

namespace espalier {

/// What carries bytes, as reports name it (see link_name): a direction of a link, both where they
/// share its bandwidth, or a medium.
struct Channel {
  std::string name;
  LinkId link = 0;  ///< of a medium, the first that was used
  bool forward = true;
  double capacity_gbps = 0;  ///< under the profile
  double bytes = 0;          ///< as the simulation counted them
  double busy_s = 0;         ///< same
  double utilization = 0;    ///< same
  std::int64_t ops = 0;      ///< that put something on it
  /// By bin of time: the share of its capacity that is used.
  std::vector<double> load;
};

/// Which channels the transfers of ops cross: the routes that a simulation takes them on. Of a
/// folded program, whose ops are those of one group, all that the rotation moves onto each other
/// are one channel.
class Channels {
 public:
  /// Refers to its arguments. \pre there is a router, and every transfer has a route (rule R10)
  Channels(const Program& program, const Target& target) : program_(program), target_(target) {}

  /// Those of an op, each once for every transfer that crosses it.
  const std::vector<int>& of(const Op& op);
  const std::vector<Channel>& all() const { return channels_; }
  Channel& at(int channel) { return channels_[static_cast<std::size_t>(channel)]; }

 private:
  const std::vector<int>& crossed(NodeId from, NodeId to, int via);
  int channel_of(const Hop& of_route);

  const Program& program_;
  const Target& target_;
  std::vector<Channel> channels_;
  std::unordered_map<std::string, int> by_name_;
  std::map<std::tuple<NodeId, NodeId, int>, std::vector<int>> by_route_;
  std::vector<int> of_op_;
};

/// The load of every channel that carries anything, in `bins` equal parts of the run's time: what
/// an op moves is taken to move evenly while it holds its lane, so that the bytes of a channel are
/// as simulated, and when they move within an op is not. Returned in `channels`, which then also
/// has what the simulation counted.
void load_in_time(const Program& program, const RunReport& report, int bins, Channels& channels);

}  // namespace espalier
