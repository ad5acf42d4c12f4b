// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi topo -p2p` prints: which GPUs may copy to each other directly. It says nothing
// of links, so it changes a machine that is named.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/words.h"
#include "formats/format.h"
#include "formats/peer_tables.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

/// Takes direct copies away from pairs that are not OK.
class Changer {
 public:
  Changer(const PeerTable& table, Topology& machine)
      : table_(table), machine_(machine), gpus_(machine.gpus()) {}

  void change() {
    take_links();
    leave_switches();
    choose_access();
  }

 private:
  std::size_t size() const { return gpus_.size(); }
  /// Directions that differ count as the worse one.
  bool is_ok(std::size_t a, std::size_t b) const {
    return table_.cells[a][b] == "OK" && table_.cells[b][a] == "OK";
  }
  std::string pair_name(std::size_t a, std::size_t b) const {
    const std::string& why = table_.cells[a][b] == "OK" ? table_.cells[b][a] : table_.cells[a][b];
    return fmt::format("{}-{} ({})", machine_.node(gpus_[a]).name, machine_.node(gpus_[b]).name,
                       why);
  }
  void note(const std::string& what, const std::vector<std::string>& pairs) {
    if (!pairs.empty()) machine_.notes.push_back(what + ": " + join(pairs, ", "));
  }

  void take_links() {
    std::map<NodeId, std::size_t> number;
    for (std::size_t i = 0; i < size(); ++i) number[gpus_[i]] = i;
    std::vector<std::string> taken;
    std::erase_if(machine_.links, [&](const Link& link) {
      const auto a = number.find(link.a), b = number.find(link.b);
      const bool joins_gpus = a != number.end() && b != number.end();
      if (!joins_gpus || link.link_class != LinkClass::gpu_fabric) return false;
      if (is_ok(a->second, b->second)) return false;
      taken.push_back(pair_name(a->second, b->second));
      return true;
    });
    note("no direct copies, so their links are taken away", taken);
  }

  /// A GPU that reaches nobody loses its links to switches; single pairs cannot be told apart
  /// there.
  void leave_switches() {
    std::vector<std::string> alone, kept;
    const Router router(machine_, machine_.profile("ideal"), LinkScope::fabric);
    std::set<NodeId> leaving;
    for (std::size_t a = 0; a < size(); ++a) {
      bool reaches = false;
      for (std::size_t b = 0; b < size(); ++b) reaches = reaches || (a != b && is_ok(a, b));
      if (!reaches) leaving.insert(gpus_[a]);
    }
    for (std::size_t a = 0; a < size(); ++a) {
      for (std::size_t b = a + 1; b < size(); ++b) {
        if (is_ok(a, b) || leaving.contains(gpus_[a]) || leaving.contains(gpus_[b])) continue;
        const Route* route = router.route(gpus_[a], gpus_[b]);
        if (route != nullptr && route->kind == RouteKind::gpu_fabric)
          kept.push_back(pair_name(a, b));
      }
    }
    const auto leaves = [&](const Link& link) {
      const bool a = leaving.contains(link.a) && is_switch(machine_.node(link.b));
      const bool b = leaving.contains(link.b) && is_switch(machine_.node(link.a));
      if (link.link_class != LinkClass::gpu_fabric || (!a && !b)) return false;
      alone.push_back(machine_.node(a ? link.a : link.b).name);
      return true;
    };
    std::erase_if(machine_.links, leaves);
    note("no direct copies with anybody, so their links to switches are taken away", alone);
    note(
        "these pairs are not OK, but copy through switches, which cannot be changed for single "
        "pairs",
        kept);
  }

  /// The widest access over host links that gives none to a pair that is not OK.
  void choose_access() {
    using Access = Topology::PeerAccess;
    const Router router(machine_, machine_.profile("ideal"), LinkScope::fabric);
    bool all = true, socket = true;
    std::vector<std::pair<std::size_t, std::size_t>> able;
    for (std::size_t a = 0; a < size(); ++a) {
      for (std::size_t b = a + 1; b < size(); ++b) {
        const Route* route = router.route(gpus_[a], gpus_[b]);
        if (route != nullptr && route->kind == RouteKind::gpu_fabric) continue;
        const bool same = machine_.node(gpus_[a]).numa == machine_.node(gpus_[b]).numa;
        if (is_ok(a, b)) {
          able.emplace_back(a, b);
        } else {
          all = false;
          socket = socket && !same;
        }
      }
    }
    machine_.peer_access = all ? Access::all : socket ? Access::socket : Access::fabric;
    std::vector<std::string> staged;
    for (const auto& [a, b] : able) {
      const bool same = machine_.node(gpus_[a]).numa == machine_.node(gpus_[b]).numa;
      if (!all && !(socket && same)) {
        staged.push_back(
            fmt::format("{}-{}", machine_.node(gpus_[a]).name, machine_.node(gpus_[b]).name));
      }
    }
    note(
        "these pairs are OK, but go through host memory, as access is that of all GPUs, of "
        "sockets or of none",
        staged);
  }

  const PeerTable& table_;
  Topology& machine_;
  std::vector<NodeId> gpus_;
};

/// That of reading counts, then that of writing, then any that has no name.
const PeerTable& deciding(const std::vector<PeerTable>& tables) {
  for (const char property : {'r', 'w', '\0'}) {
    const auto found = std::ranges::find(tables, property, &PeerTable::property);
    if (found != tables.end()) return *found;
  }
  return tables.front();
}

Topology read(const MachineText& given) {
  const auto fail = [&](int line, std::string message, std::string suggestion = {}) {
    throw Error(ErrorKind::input,
                {{"", std::move(message), std::move(suggestion), {given.file, line, 0}}});
  };
  if (given.text.size() > kMaxBytes) {
    fail(0, fmt::format("the text has {} bytes, more than the {} that are read", given.text.size(),
                        kMaxBytes));
  }
  DiagnosticList problems;
  const std::vector<PeerTable> tables = read_peer_tables(given.text, given.file, problems);
  problems.throw_if_any();
  const PeerTable& table = deciding(tables);
  if (given.as == nullptr) {
    fail(table.line, "a table of peer access says nothing of links",
         fmt::format("name the machine whose GPUs these are: '{}:as=dgx1-v100'; `nvidia-smi topo "
                     "-m` says more",
                     given.file));
  }
  Topology machine = *given.as;
  if (machine.gpus().size() != table.devices.size()) {
    fail(table.line,
         fmt::format("the table has {}, but {} has {}", counted(table.devices.size(), "GPU"),
                     machine.name, machine.gpus().size()));
  }
  machine.name = given.file;
  if (tables.size() > 1) {
    machine.notes.push_back(
        fmt::format("there are {} tables; that on line {} counts", tables.size(), table.line));
  }
  if (table.property != 0 && table.property != 'r' && table.property != 'w') {
    machine.notes.push_back(
        fmt::format("the table is about property '{}', not about reads (-p2p r)", table.property));
  }
  Changer(table, machine).change();
  const std::vector<Diagnostic> wrong = check_topology(machine);
  if (!wrong.empty()) throw Error(ErrorKind::input, wrong);
  return machine;
}

}  // namespace

const Format& smi_peers_format() {
  static const Format format = {.name = "smi-peers",
                                .title = "tables of nvidia-smi topo -p2p, about a machine (:as=)",
                                .recognises = is_peer_table,
                                .read_machine = read};
  return format;
}

}  // namespace espalier
