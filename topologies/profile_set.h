// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "topologies/profile.h"

namespace espalier {

/// Profiles by name. Copies share them until one of the copies is changed: there are hundreds of
/// figures, and most machines have those that are built in.
class ProfileSet {
 public:
  using Map = std::map<std::string, Profile>;

  ProfileSet() : shared_(std::make_shared<Map>()) {}
  // Moved from, one is as it was: there is nothing to be saved.
  ProfileSet(const ProfileSet&) = default;
  ProfileSet& operator=(const ProfileSet&) = default;
  ~ProfileSet() = default;

  Map::const_iterator begin() const { return shared_->begin(); }
  Map::const_iterator end() const { return shared_->end(); }
  Map::const_iterator find(const std::string& name) const { return shared_->find(name); }
  bool contains(const std::string& name) const { return shared_->contains(name); }
  std::size_t size() const { return shared_->size(); }
  /// \pre contains(name)
  const Profile& at(const std::string& name) const { return shared_->at(name); }

  /// The profiles, to be changed here alone.
  Map& edit() {
    if (shared_.use_count() > 1) shared_ = std::make_shared<Map>(*shared_);
    return *shared_;
  }
  /// The profile of that name, to be changed here alone; a new one where there is none.
  Profile& operator[](const std::string& name) { return edit()[name]; }

 private:
  std::shared_ptr<Map> shared_;
};

}  // namespace espalier
