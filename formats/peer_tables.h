// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace espalier {

/// What `nvidia-smi topo -p2p` prints: for every pair of GPUs "OK", or why not ("CNS"). Private to
/// the room.
struct PeerTable {
  char property = 0;                 ///< of the command's line, if there is one: 'r', 'w', 'n', ...
  int line = 0;                      ///< of its header
  std::vector<std::string> devices;  ///< "GPU0"
  std::vector<std::vector<std::string>> cells;  ///< by row; "X" for a GPU itself
};

/// Every such table of a text; a problem for each row or cell that is wrong or missing.
std::vector<PeerTable> read_peer_tables(std::string_view text, const std::string& file,
                                        DiagnosticList& problems);

/// Whether the first table of GPUs in a text is one of these.
bool is_peer_table(std::string_view text);

}  // namespace espalier
