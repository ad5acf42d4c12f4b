// SPDX-License-Identifier: Apache-2.0
#include "run/options.h"

#include "core/check.h"

namespace espalier {

std::string_view to_string(SimEngine engine) {
  switch (engine) {
    case SimEngine::automatic:
      return "auto";
    case SimEngine::simgrid:
      return "simgrid";
    case SimEngine::classes:
      return "classes";
  }
  CHECK(false);
}

const std::vector<SimEngine>& all_sim_engines() {
  static const std::vector<SimEngine> all = {SimEngine::automatic, SimEngine::simgrid,
                                             SimEngine::classes};
  return all;
}

}  // namespace espalier
