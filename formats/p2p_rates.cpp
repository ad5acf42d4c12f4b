// SPDX-License-Identifier: Apache-2.0
// Rates of all pairs of GPUs, as p2pBandwidthLatencyTest and nvbandwidth print them.
#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "core/words.h"
#include "formats/format.h"
#include "formats/p2p_machine.h"
#include "formats/p2p_matrices.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

/// What the machine is made of: the first table of each kind; those of both directions at once
/// where there is none of one.
struct Chosen {
  const P2pMatrix* direct = nullptr;
  const P2pMatrix* staged = nullptr;
  const P2pMatrix* maps = nullptr;
};

const P2pMatrix* first_of(const std::vector<P2pMatrix>& matrices, bool by_peer_access,
                          bool both_directions, bool reads) {
  const auto found = std::ranges::find_if(matrices, [&](const P2pMatrix& one) {
    return one.what == P2pMatrix::What::bandwidth && one.by_peer_access == by_peer_access &&
           one.both_directions == both_directions && one.is_read == reads;
  });
  return found == matrices.end() ? nullptr : &*found;
}

const P2pMatrix* best_of(const std::vector<P2pMatrix>& matrices, bool by_peer_access) {
  for (const bool both_directions : {false, true}) {
    for (const bool reads : {false, true}) {
      if (const auto* found = first_of(matrices, by_peer_access, both_directions, reads)) {
        return found;
      }
    }
  }
  return nullptr;
}

Chosen choose(const P2pText& text) {
  Chosen chosen;
  chosen.direct = best_of(text.matrices, true);
  chosen.staged = best_of(text.matrices, false);
  const auto maps =
      std::ranges::find(text.matrices, P2pMatrix::What::connectivity, &P2pMatrix::what);
  if (maps != text.matrices.end()) chosen.maps = &*maps;
  return chosen;
}

/// In one direction: half of what both reach together.
P2pRates::Matrix one_way(const P2pMatrix* matrix, std::vector<std::string>& notes) {
  if (matrix == nullptr) return {};
  P2pRates::Matrix rates = matrix->cells;
  if (matrix->both_directions) {
    notes.push_back(
        fmt::format("there are only rates of both directions at once in {}: half of "
                    "each is taken for one direction",
                    quote(matrix->title)));
    for (std::size_t a = 0; a < rates.size(); ++a) {
      for (std::size_t b = 0; b < rates.size(); ++b) {
        if (a != b && rates[a][b]) *rates[a][b] /= 2;
      }
    }
  }
  return rates;
}

/// Both tables say how fast a direction is alone and while the other is busy.
void compare_directions(const P2pText& text, const Chosen& chosen, P2pRates& rates) {
  const P2pMatrix* both = first_of(text.matrices, true, true, false);
  if (both == nullptr || chosen.direct == nullptr || chosen.direct->both_directions) return;
  if (both->cells.size() != chosen.direct->cells.size()) return;
  std::size_t slower = 0, pairs = 0;
  const int gpus = static_cast<int>(both->cells.size());
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) {
      const auto alone = P2pRates::slower(chosen.direct->cells, a, b);
      const auto together = P2pRates::slower(both->cells, a, b);
      if (!alone || !together) continue;
      ++pairs;
      // As in probing: together below three quarters of twice one direction.
      if (*together < 0.75 * 2 * *alone) ++slower;
    }
  }
  if (slower == 0) return;
  rates.notes.push_back(fmt::format(
      "{} of {} pairs reach less than three quarters of twice their rate in both directions at "
      "once; links stay full duplex",
      slower, pairs));
}

P2pRates rates_of(const P2pText& text, const MachineText& given) {
  P2pRates rates;
  const Chosen chosen = choose(text);
  const P2pMatrix* sized = chosen.direct != nullptr ? chosen.direct : chosen.staged;
  if (sized == nullptr) {
    throw Error(ErrorKind::input,
                {{"",
                  "there is no table of rates between GPUs",
                  "expected 'Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)' or "
                  "nvbandwidth's 'device_to_device_memcpy_write_ce'",
                  {given.file, 0, 0}}});
  }
  rates.gpus = static_cast<int>(sized->cells.size());
  DiagnosticList problems;
  for (const P2pMatrix* one : {chosen.direct, chosen.staged, chosen.maps}) {
    if (one == nullptr || one->cells.size() == sized->cells.size()) continue;
    problems.add(
        {given.file, one->line, 0},
        fmt::format("{} has {} rows, but {} on line {} has {}", quote(one->title),
                    one->cells.size(), quote(sized->title), sized->line, sized->cells.size()));
  }
  problems.throw_if_any();
  rates.direct = one_way(chosen.direct, rates.notes);
  rates.staged = one_way(chosen.staged, rates.notes);
  if (chosen.maps != nullptr) rates.maps = chosen.maps->cells;
  for (std::size_t gpu = 0; gpu < sized->cells.size(); ++gpu) {
    const auto& own = sized->cells[gpu][gpu];
    rates.memory.push_back(own && *own > 0 ? own : std::nullopt);
    const auto name = text.names.find(static_cast<int>(gpu));
    rates.names.push_back(name == text.names.end() ? "" : name->second);
  }
  if (rates.maps.empty() && !text.maps.empty()) {
    rates.maps.assign(sized->cells.size(), std::vector<std::optional<double>>(sized->cells.size()));
    for (const auto& [pair, can] : text.maps) {
      if (pair.first >= rates.gpus || pair.second >= rates.gpus) continue;
      rates.maps[static_cast<std::size_t>(pair.first)][static_cast<std::size_t>(pair.second)] =
          can ? 1 : 0;
    }
  }
  compare_directions(text, chosen, rates);
  const auto times = std::ranges::count(text.matrices, P2pMatrix::What::latency, &P2pMatrix::what);
  if (times > 0) {
    rates.notes.push_back(
        "latencies are not taken over: they include the start of a copy, which a profile says");
  }
  return rates;
}

bool is_json(std::string_view text) { return trim(text.substr(0, 4096)).starts_with('{'); }

P2pText read_text(const MachineText& given) {
  if (is_json(given.text)) return read_p2p_json(given.text, given.file);
  DiagnosticList problems;
  P2pText text = read_p2p_text(given.text, given.file, problems);
  problems.throw_if_any();
  return text;
}

Topology read(const MachineText& given) {
  if (given.text.size() > kMaxBytes) {
    throw Error(ErrorKind::input,
                {{"",
                  fmt::format("the text has {} bytes, more than the {} that are read",
                              given.text.size(), kMaxBytes),
                  "",
                  {given.file, 0, 0}}});
  }
  const P2pText text = read_text(given);
  const P2pRates rates = rates_of(text, given);
  Topology machine;
  if (given.as == nullptr) {
    machine = guess_machine(rates, given.file);
  } else {
    machine = *given.as;
    const std::size_t gpus = machine.gpus().size();
    if (gpus != static_cast<std::size_t>(rates.gpus)) {
      throw Error(
          ErrorKind::input,
          {{"",
            fmt::format("there are rates of {}, but {} has {}",
                        counted(static_cast<std::size_t>(rates.gpus), "GPU"), machine.name, gpus),
            fmt::format("name a machine with {} GPUs", rates.gpus),
            {given.file, 0, 0}}});
    }
    machine.name = given.file;
  }
  for (const std::string& note : rates.notes) machine.notes.push_back(note);
  apply_rates(rates, machine);
  const std::vector<Diagnostic> wrong = check_topology(machine);
  if (!wrong.empty()) throw Error(ErrorKind::input, wrong);
  return machine;
}

bool looks_like_rates(std::string_view text) {
  const std::string_view head = text.substr(0, std::min<std::size_t>(text.size(), 200'000));
  if (is_json(head)) return head.find("\"nvbandwidth\"") != std::string_view::npos;
  for (const std::string_view mark : {"Matrix (GB/s)", "GPU(column)", "P2P Connectivity Matrix"}) {
    if (head.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

const Format& p2p_rates_format() {
  static const Format format = {
      .name = "p2p-rates",
      .title = "rates between GPUs of p2pBandwidthLatencyTest and nvbandwidth",
      .recognises = looks_like_rates,
      .read_machine = read};
  return format;
}

}  // namespace espalier
