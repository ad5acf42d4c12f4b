// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "nccl/survey.h"
#include "topologies/route.h"

// Private to the room.

namespace espalier {

/// What algorithms have found out about a machine, for all that is asked of it.
struct MachineFindings {
  std::optional<Router> fabric;  ///< see BuildRequest::fabric_router
  std::shared_ptr<NcclSurvey> nccl = std::make_shared<NcclSurvey>();
};

}  // namespace espalier
