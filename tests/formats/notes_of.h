// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/foreign_program.h"

namespace espalier {

/// The notes of a program as they are printed.
inline std::vector<std::string> notes_of(const ForeignProgram& foreign) {
  std::vector<std::string> texts;
  for (const ForeignNote& note : foreign.notes) texts.push_back(render(note));
  return texts;
}

}  // namespace espalier
