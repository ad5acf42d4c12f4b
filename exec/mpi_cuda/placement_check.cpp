// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/placement_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "exec/cuda/gpus.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/packed.h"

namespace espalier::cuda {
namespace {

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

/// The ranks on the computer of a rank.
std::vector<int> ranks_beside(const std::vector<GpuPlace>& places, std::size_t rank) {
  std::vector<int> ranks;
  for (std::size_t other = 0; other < places.size(); ++other) {
    if (places[other].computer == places[rank].computer) ranks.push_back(static_cast<int>(other));
  }
  return ranks;
}

/// Two ranks of which the machine has another opinion than the computers that they are on.
std::optional<std::string> misplaced_hosts(const Topology& machine, const Placement& placement,
                                           const std::vector<GpuPlace>& places) {
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      const bool share_host = placement.machine_of_rank[rank] == placement.machine_of_rank[other];
      const bool share_computer = places[rank].computer == places[other].computer;
      if (share_host == share_computer) continue;
      return fmt::format("ranks {} and {} are on {}, but on {} of '{}'", other, rank,
                         share_computer ? "one computer" : "two computers",
                         share_host ? "one host" : "two hosts", machine.name);
    }
  }
  return std::nullopt;
}

/// The ranks of this computer whose GPUs this process sees, too, and these as it numbers them.
MachineGpus seen_by(std::size_t process, const Topology& machine, const Placement& placement,
                    const std::vector<GpuPlace>& places, bool are_named) {
  MachineGpus seen{machine, {}, {}, are_named};
  std::vector<std::string> bus_ids;
  for (int gpu = 0; gpu < gpu_count(); ++gpu) bus_ids.push_back(bus_id_of(gpu));
  for (const int rank : ranks_beside(places, process)) {
    const auto found = std::ranges::find(bus_ids, places[index(rank)].bus_id);
    if (found == bus_ids.end()) continue;
    seen.gpus.push_back(placement.ranks[index(rank)]);
    seen.devices.push_back(static_cast<int>(found - bus_ids.begin()));
  }
  return seen;
}

/// Whether their own processes number them in the same way.
bool are_numbered_alike(const MachineGpus& seen, const Placement& placement,
                        const std::vector<GpuPlace>& places) {
  for (std::size_t i = 0; i < seen.gpus.size(); ++i) {
    const auto rank = std::ranges::find(placement.ranks, seen.gpus[i]) - placement.ranks.begin();
    if (places[static_cast<std::size_t>(rank)].number != seen.devices[i]) return false;
  }
  return true;
}

/// What all ranks have been given, as if it were right.
MachineFinding as_given(const Topology& machine, const Placement& placement,
                        const std::vector<GpuPlace>& places) {
  MachineFinding given;
  const std::vector<NodeId> all = machine.gpus();
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    given.devices.push_back(places[rank].number);
    given.gpus.push_back(
        static_cast<int>(std::ranges::find(all, placement.ranks[rank]) - all.begin()));
  }
  return given;
}

Packed pack(const MachineFinding& finding) {
  Packed packed;
  packed.put(finding.unchecked);
  packed.put(finding.wrong.size());
  for (const std::string& sentence : finding.wrong) packed.put(sentence);
  packed.put(finding.devices);
  packed.put(finding.are_by_bus);
  packed.put(finding.gpus);
  return packed;
}

MachineFinding unpack(const std::vector<std::byte>& bytes) {
  MachineFinding finding;
  Unpacking unpacking(bytes);
  std::size_t sentences = 0;
  unpacking.get(finding.unchecked);
  unpacking.get(sentences);
  finding.wrong.resize(sentences);
  for (std::string& sentence : finding.wrong) unpacking.get(sentence);
  unpacking.get(finding.devices);
  unpacking.get(finding.are_by_bus);
  unpacking.get(finding.gpus);
  return finding;
}

std::vector<MachineFinding> gather(const Processes& processes, const MachineFinding& mine) {
  const Meeting meeting(processes.board);
  std::vector<MachineFinding> all;
  for (const auto& bytes : gather_from_all(processes.transport, pack(mine).bytes())) {
    all.push_back(unpack(bytes));
  }
  return all;
}

/// Puts what is right for some ranks in the list of all, which is given up where that is nothing,
/// or was said by a process that does not see all of them.
void replace(std::vector<int>& all, const std::vector<int>& ranks, const std::vector<int>& right) {
  if (right.size() != ranks.size()) all.clear();
  for (std::size_t i = 0; i < ranks.size() && !all.empty(); ++i) all[index(ranks[i])] = right[i];
}

}  // namespace

std::vector<std::string> PlacementCheck::check(const Processes& processes, const Target& target,
                                               const std::vector<GpuPlace>& places,
                                               bool are_named) {
  const Topology& machine = target.router->topology();
  const Placement& placement = target.placement;
  if (const auto problem = misplaced_hosts(machine, placement, places)) {
    if (are_named) return {*problem};
    throw_together(processes, {true, false, ErrorKind::usage, *problem,
                               "as many processes on each computer as ranks on each host of the "
                               "machine, or any GPUs with --devices"});
  }
  MachineFinding mine;
  agree(processes, refusal_of([&] {
          const std::size_t process = index(processes.transport.process());
          const MachineGpus seen = seen_by(process, machine, placement, places, are_named);
          mine = machine_.find(seen);
          // Numbers that mean something else in another process can't be proposed.
          if (!are_numbered_alike(seen, placement, places)) mine.devices.clear();
        }),
        {});
  const std::vector<MachineFinding> found = gather(processes, mine);

  MachineFinding right = as_given(machine, placement, places);
  std::vector<std::string> notes;
  std::string wrong;
  std::set<std::string> told;  // computers; one of their processes says it
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    const std::vector<int> beside = ranks_beside(places, rank);
    const std::string where =
        beside.size() == places.size() ? "" : fmt::format("{}: ", processes.places[rank]);
    if (index(beside.front()) == rank && !found[rank].unchecked.empty()) {
      notes.push_back(where + found[rank].unchecked);
    }
    if (found[rank].wrong.empty() || !told.insert(places[rank].computer).second) continue;
    wrong += (wrong.empty() ? "" : "; ") + where + contradiction_text(machine, found[rank].wrong);
    replace(right.devices, beside, found[rank].devices);
    replace(right.gpus, beside, found[rank].gpus);
    right.are_by_bus = found[rank].are_by_bus;
  }
  if (wrong.empty()) return notes;
  const std::string help = advice(right, are_named);
  if (!are_named) throw_together(processes, {true, false, ErrorKind::usage, wrong, help});
  notes.push_back(wrong + "; " + help);
  return notes;
}

}  // namespace espalier::cuda
