// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/study.h"

namespace espalier {

/// A figure of a profile that measured times may determine.
struct ProfileConstant {
  /// Its keys in a file of profiles, from the outermost: {"protocols", "ll", "hop_us", "host"}.
  std::vector<std::string> path;
  std::string unit;    ///< as files have it: "us", "GB/s"; empty for a share
  double scale = 1;    ///< the figure in the profile / the figure in a file: 1e-6 for "us"
  double minimum = 0;  ///< what a file may say, in its unit; above 0
  double maximum = 0;  ///< same
  /// Whether the time of an answer may depend on it. Not set: that of any.
  std::function<bool(const Outcome& answer)> concerns;
  bool of_launch = false;  ///< of hosts that launch calls: simulations do not depend on it
  /// Of hosts or networks, which differ where GPUs and their fabric are the same.
  bool is_local = false;
  /// The figure itself, which is made where the profile has it only by default.
  std::function<double&(Profile& profile)> figure;

  std::string name() const;                        ///< "protocols.ll.hop_us.host"
  double value(Profile profile) const;             ///< in the unit of files
  void set(Profile& profile, double value) const;  ///< same
};

/// What carried the messages that were measured.
struct Traffic {
  std::map<std::string, LinkClass> link_kinds;
  std::set<std::string> protocols;
  std::set<std::string> models;  ///< of GPUs
  bool in_switch = false;        ///< ops in switches
  /// How calls were launched, and by which version of the library (Outcome::library_version).
  std::set<std::pair<LaunchMode, int>> launches;

  /// Whether nothing but the GPU fabric carried anything.
  bool in_fabric() const;
  /// Adds what an answer used. \pre it ran, simulated, on this machine
  void add(const Outcome& outcome, const Topology& machine, const std::vector<NodeId>& ranks);
};

/// The constants of a profile that may be fitted to such messages: those that are above 0. Of
/// several with the same effect the first should be fitted.
std::vector<ProfileConstant> constants_in_use(const Profile& profile, const Traffic& traffic);

}  // namespace espalier
