// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "topologies/profile.h"

namespace espalier {

/// Profiles by name. Copies share them until one of the copies is changed: there are hundreds of
/// figures, and most machines have those that are built in.
class ProfileSet {
 public:
  using Map = std::map<std::string, Profile>;

  ProfileSet() : shared_(std::make_shared<Shared>()) {}
  // Moved from, one is as it was: there is nothing to be saved.
  ProfileSet(const ProfileSet&) = default;
  ProfileSet& operator=(const ProfileSet&) = default;
  ~ProfileSet() = default;

  Map::const_iterator begin() const { return shared_->profiles.begin(); }
  Map::const_iterator end() const { return shared_->profiles.end(); }
  Map::const_iterator find(const std::string& name) const { return shared_->profiles.find(name); }
  bool contains(const std::string& name) const { return shared_->profiles.contains(name); }
  std::size_t size() const { return shared_->profiles.size(); }
  /// \pre contains(name)
  const Profile& at(const std::string& name) const { return shared_->profiles.at(name); }

  /// The profile of that name with the named protocol in use, or the one for bulk data where none
  /// is named: all copies share it. \pre both are known
  std::shared_ptr<const Profile> in_use(const std::string& name, const std::string& protocol) const;

  /// The profiles, to be changed here alone. What it returns is good until the set is copied or a
  /// profile is asked for as it is in use: who changes more calls it again.
  Map& edit();
  /// The profile of that name, to be changed here alone; a new one where there is none. As edit().
  Profile& operator[](const std::string& name) { return edit()[name]; }

 private:
  struct Shared {
    Map profiles;
    std::mutex mutex;  ///< of what is in use
    std::map<std::pair<std::string, std::string>, std::shared_ptr<const Profile>> in_use;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace espalier
