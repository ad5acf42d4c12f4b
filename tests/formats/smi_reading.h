// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/error.h"
#include "formats/format.h"
#include "tests/error_of.h"
#include "topologies/load.h"
#include "topologies/route.h"

// Tables that nvidia-smi and its like print, as tests read them.

namespace espalier {

/// A machine from a table that is recognised as one. Throws Error{input}.
inline Topology read(const std::string& text, const Topology* as = nullptr) {
  const Format* format = recognise(text);
  if (format == nullptr || format->name != "smi-topology") {
    throw Error(ErrorKind::input, "not known as a table");
  }
  return format->read_machine({text, "topo.txt", as});
}

/// What reading the text complains of.
inline std::string errors(const std::string& text) {
  return error_of([&] { read(text); }, ErrorKind::input);
}

/// Links of the GPU fabric in the bundle that joins two nodes; 0: none does.
inline int links_between(const Topology& machine, const std::string& a, const std::string& b) {
  const Router router(machine, machine.profile("ideal"), LinkScope::fabric);
  const auto hop = router.hop(*machine.find(a), *machine.find(b));
  return hop ? machine.link(hop->link).count : 0;
}

}  // namespace espalier
