// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace espalier {

// What p2pBandwidthLatencyTest and nvbandwidth print. Private to the room.

constexpr std::size_t kMostP2pGpus = 256;

/// A table of pairs of GPUs.
struct P2pMatrix {
  std::string title;
  enum class What : std::uint8_t { connectivity, bandwidth, latency } what = What::bandwidth;
  bool both_directions = false;                           ///< at once; the figure is their sum
  bool by_peer_access = true;                             ///< false: "P2P=Disabled"
  bool is_read = false;                                   ///< the second form of a measurement
  int line = 0;                                           ///< of its header; 0: not known
  std::vector<std::vector<std::optional<double>>> cells;  ///< nothing: "N/A"
};

struct P2pText {
  std::vector<P2pMatrix> matrices;
  std::map<int, std::string> names;          ///< of devices, by number
  std::map<std::pair<int, int>, bool> maps;  ///< "Device=0 CAN Access Peer Device=1"
};

/// What a table says, by its title and by nvbandwidth's name of the test (empty: it is another
/// program's); its cells are not read. Nothing for tables that are not of pairs of GPUs, and for
/// parts of a sum that has a table as well.
std::optional<P2pMatrix> matrix_titled(const std::string& title, std::string_view test);

/// A rate or time of a cell, or nothing for what is none.
std::optional<double> parse_p2p_rate(std::string_view word);

/// Every matrix and device line of a text. Adds a problem for every row and cell that is wrong or
/// missing.
P2pText read_p2p_text(std::string_view text, const std::string& file, DiagnosticList& problems);

/// The same of nvbandwidth's JSON. Throws Error{input} with every problem.
P2pText read_p2p_json(std::string_view text, const std::string& file);

/// Rates in one direction of `gpus` GPUs.
struct P2pRates {
  using Matrix = std::vector<std::vector<std::optional<double>>>;
  int gpus = 0;
  Matrix direct;                              ///< GB/s with peer access, where there is any
  Matrix staged;                              ///< without it; empty: not measured
  Matrix maps;                                ///< 1: maps the other's memory; empty: not said
  std::vector<std::optional<double>> memory;  ///< GB/s read and written by copies within a GPU
  std::vector<std::string> names;             ///< empty: not said
  std::vector<std::string> notes;

  /// The slower direction of a pair; nothing where neither was measured.
  static std::optional<double> slower(const Matrix& matrix, int a, int b);
};

}  // namespace espalier
