// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// What `nvidia-smi topo -m` and its like print, and amd-smi. Private to the room.

/// How two devices reach each other, from near to far; `fabric` is an NVLink, xGMI link or another
/// vendor's.
enum class SmiWay : std::uint8_t { self, fabric, pix, pxb, phb, node, sys };

struct SmiCell {
  SmiWay way = SmiWay::sys;
  int links = 0;  ///< of the fabric
  bool operator==(const SmiCell&) const = default;
};

struct SmiDevice {
  std::string name;  ///< as the header has it: "GPU0", "NIC3", "mlx5_0"
  bool is_gpu = false;
  int numa = -1;  ///< -1: not said
  int line = 0;   ///< of its row
  std::vector<SmiCell> cells;
};

/// The first table of a text; every device has a cell for each, the same in both halves.
struct SmiTable {
  std::vector<SmiDevice> devices;
  bool is_amd = false;
  bool lacks_peer_access = false;  ///< some GPUs have none to others
  std::vector<std::string> notes;  ///< what else is in the text
};

/// Throws Error{input} with everything that is wrong, line by line.
SmiTable read_smi_table(std::string_view text, const std::string& file);
/// The same of what `amd-smi topology` prints, in any of its forms.
SmiTable read_amd_smi_table(std::string_view text, const std::string& file);
/// Throws Error{input} where devices have no cells, or the two halves differ.
void check_smi_table(const SmiTable& table, const std::string& file);

/// Whether a text begins with such a table, or has one among its first lines.
bool has_smi_table(std::string_view text);

}  // namespace espalier
