// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// What a reader is given of a machine.
struct MachineText {
  std::string_view text;
  std::string file;              ///< for messages
  const Topology* as = nullptr;  ///< a machine that fills in what the text leaves out, or none
};

/// A format of files, made by other programs. One record per file in formats/.
struct Format {
  std::string name;   ///< "nccl-topology"
  std::string title;  ///< one line: what it is and who writes it
  /// Whether a text looks like this format: looks at its beginning, and is wrong about no other
  /// format's files.
  bool (*recognises)(std::string_view text) = nullptr;
  /// Makes a machine, with what it had to guess in Topology::notes. Throws Error{input} with
  /// everything that is wrong with the text, line by line.
  Topology (*read_machine)(const MachineText& text) = nullptr;
};

/// Every format, by name. Made from the files of the folder by CMake.
const std::vector<const Format*>& all_formats();
/// The format of a text, or null.
const Format* recognise(std::string_view text);

}  // namespace espalier
