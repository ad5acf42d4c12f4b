// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/machine_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/words.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/nvml.h"

namespace espalier::cuda {
namespace {

constexpr std::size_t kShown = 3;  // contradictions

std::string list_of(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

/// By the numbers that they have among all GPUs of the machine, as --gpus has them.
std::vector<int> numbers_in(const Topology& machine, const std::vector<NodeId>& gpus) {
  const std::vector<NodeId> all = machine.gpus();
  std::vector<int> numbers;
  for (const NodeId gpu : gpus) {
    numbers.push_back(static_cast<int>(std::ranges::find(all, gpu) - all.begin()));
  }
  return numbers;
}

/// The first few, and how many more there are.
std::string shown(const std::vector<std::string>& sentences) {
  const std::size_t count = std::min(kShown, sentences.size());
  std::string text =
      join({sentences.begin(), sentences.begin() + static_cast<std::ptrdiff_t>(count)}, "; ");
  if (count < sentences.size()) text += fmt::format("; and {} more", sentences.size() - count);
  return text;
}

/// NVML sees a link, but in some virtual machines not where it leads.
bool is_veiled(const NvlinkEnd& link) { return !link.to_switch && link.peer_bus_id.empty(); }

}  // namespace

std::string contradiction_text(const Topology& machine, const std::vector<std::string>& wrong) {
  return fmt::format("the GPUs are not those of '{}' with these numbers: {}", machine.name,
                     shown(wrong));
}

std::string advice(const MachineFinding& finding, bool are_named) {
  if (are_named && !finding.gpus.empty()) {
    return fmt::format("--gpus {} are what these devices are there", list_of(finding.gpus));
  }
  if (!finding.devices.empty()) {
    return fmt::format("--devices {} are these GPUs{}", list_of(finding.devices),
                       finding.are_by_bus ? ", as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them" : "");
  }
  if (!finding.gpus.empty()) {
    return fmt::format(
        "no GPUs of this computer are joined like that, but --gpus {} are joined as "
        "the machine says",
        list_of(finding.gpus));
  }
  return "no GPUs of this computer are joined like that; --devices runs the program on any";
}

MachineCheck::Computer MachineCheck::survey() {
  Computer computer;
  const int count = gpu_count();
  std::vector<std::string> models;
  std::vector<std::string> bus_ids;
  std::vector<std::vector<NvlinkEnd>> nvlinks;
  const std::unique_ptr<Nvml> nvml = Nvml::load();
  if (!nvml) computer.unknown_nvlinks = "there is no NVML (libnvidia-ml.so.1) to ask";
  for (int gpu = 0; gpu < count; ++gpu) {
    models.push_back(gpu_model(gpu));
    bus_ids.push_back(bus_id_of(gpu));
    if (!nvml) continue;
    nvlinks.push_back(nvml->nvlinks(bus_ids.back()));
    if (std::ranges::any_of(nvlinks.back(), is_veiled)) {
      computer.unknown_nvlinks = fmt::format("NVML does not say where those of GPU {} lead", gpu);
    }
  }
  computer.graph =
      graph_of(models, computer.unknown_nvlinks.empty() ? bundle_nvlinks(bus_ids, nvlinks)
                                                        : std::vector<ProbedNvlink>{});
  computer.by_bus.resize(bus_ids.size());
  std::iota(computer.by_bus.begin(), computer.by_bus.end(), 0);
  std::ranges::stable_sort(computer.by_bus, {}, [&](int gpu) -> const std::string& {
    return bus_ids[static_cast<std::size_t>(gpu)];
  });
  return computer;
}

/// What is not known of this computer is left out of the machine as well, and contradicts nothing.
GpuGraph MachineCheck::comparable(const Topology& machine, const std::vector<NodeId>& gpus) const {
  GpuGraph graph = graph_of(machine, gpus);
  if (computer_->unknown_nvlinks.empty()) return graph;
  GpuGraph without = graph_of(graph.models, {});
  without.names = graph.names;
  return without;
}

/// Which devices would be right.
void MachineCheck::find_devices(const MachineGpus& asked, MachineFinding& finding) const {
  const Topology& machine = asked.machine;
  const GpuGraph wanted = comparable(machine, asked.gpus);
  const std::vector<NodeId> host = gpus_of_host(machine, machine.node(asked.gpus.front()).host);
  /// Of the GPUs asked for, where those of the whole host are these.
  const auto chosen = [&](const std::vector<int>& of_host) {
    std::vector<int> devices;
    for (const NodeId gpu : asked.gpus) {
      devices.push_back(of_host[static_cast<std::size_t>(number_in_host(machine, gpu))]);
    }
    return devices;
  };
  if (host.size() <= computer_->by_bus.size()) {
    finding.devices = chosen(computer_->by_bus);
    finding.are_by_bus = contradictions(wanted, computer_->graph, finding.devices).empty();
    if (finding.are_by_bus) return;
  }
  // Few GPUs may be joined like many others; those of the whole host say more.
  std::optional<std::vector<int>> found =
      matching_devices(comparable(machine, host), computer_->graph);
  found = found ? chosen(*found) : matching_devices(wanted, computer_->graph);
  finding.devices = found.value_or(std::vector<int>());
}

/// Which GPUs of the machine would be: of ranks only, as relays are chosen among those left over.
void MachineCheck::find_gpus(const MachineGpus& asked, MachineFinding& finding) const {
  if (asked.relays > 0) return;
  const Topology& machine = asked.machine;
  const std::vector<NodeId> host = gpus_of_host(machine, machine.node(asked.gpus.front()).host);
  const GpuGraph graph = comparable(machine, host);
  const auto found = asked.are_named ? matching_gpus(graph, computer_->graph, asked.devices)
                                     : rightly_numbered(graph, computer_->graph, asked.gpus.size());
  if (!found) return;
  std::vector<NodeId> gpus;
  for (const int number : *found) gpus.push_back(host[static_cast<std::size_t>(number)]);
  finding.gpus = numbers_in(machine, gpus);
}

MachineFinding MachineCheck::find(const MachineGpus& asked) {
  MachineFinding finding;
  if (!can_be_checked(asked.machine, graph_of(asked.machine, asked.gpus))) return finding;
  // Ranks that share a GPU are on no GPUs of a machine.
  if (std::set<int>(asked.devices.begin(), asked.devices.end()).size() < asked.devices.size()) {
    return finding;
  }
  if (!computer_) computer_ = survey();
  if (!computer_->unknown_nvlinks.empty()) {
    finding.unchecked = fmt::format("whether the GPUs are joined as '{}' says was not checked: {}",
                                    asked.machine.name, computer_->unknown_nvlinks);
  }
  finding.wrong =
      contradictions(comparable(asked.machine, asked.gpus), computer_->graph, asked.devices);
  if (finding.wrong.empty()) return finding;
  find_devices(asked, finding);
  find_gpus(asked, finding);
  return finding;
}

std::vector<std::string> MachineCheck::compare(const MachineGpus& asked) {
  const MachineFinding finding = find(asked);
  std::vector<std::string> notes;
  if (!finding.unchecked.empty()) notes.push_back(finding.unchecked);
  if (finding.wrong.empty()) return notes;
  const std::string what = contradiction_text(asked.machine, finding.wrong);
  const std::string help = advice(finding, asked.are_named);
  if (!asked.are_named) throw Error(ErrorKind::usage, what, help);
  notes.push_back(what + "; " + help);
  return notes;
}

std::vector<std::string> MachineCheck::check(const MachineGpus& asked) {
  const auto [known, is_new] =
      notes_.try_emplace({asked.machine.name, {asked.gpus, asked.devices}});
  if (is_new) {
    try {
      known->second = compare(asked);
    } catch (...) {
      notes_.erase(known);
      throw;
    }
  }
  return known->second;
}

}  // namespace espalier::cuda
