// SPDX-License-Identifier: Apache-2.0
#include "topologies/profile_set.h"

namespace espalier {

std::shared_ptr<const Profile> ProfileSet::in_use(const std::string& name,
                                                  const std::string& protocol) const {
  const std::lock_guard lock(shared_->mutex);
  auto& known = shared_->in_use[{name, protocol}];
  if (!known) known = std::make_shared<const Profile>(at(name).in_use(protocol));
  return known;
}

ProfileSet::Map& ProfileSet::edit() {
  if (shared_.use_count() > 1) {
    const auto own = std::make_shared<Shared>();
    own->profiles = shared_->profiles;
    shared_ = own;
  }
  shared_->in_use.clear();
  return shared_->profiles;
}

}  // namespace espalier
