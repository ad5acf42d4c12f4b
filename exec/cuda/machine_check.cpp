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
std::string MachineCheck::advice(const Topology& machine, const std::vector<NodeId>& gpus) const {
  const GpuGraph wanted = comparable(machine, gpus);
  const std::vector<NodeId> host = gpus_of_host(machine, machine.node(gpus.front()).host);
  /// Of the GPUs asked for, where those of the whole host are these.
  const auto chosen = [&](const std::vector<int>& of_host) {
    std::vector<int> devices;
    for (const NodeId gpu : gpus) {
      devices.push_back(of_host[static_cast<std::size_t>(number_in_host(machine, gpu))]);
    }
    return devices;
  };
  if (host.size() <= computer_->by_bus.size()) {
    const std::vector<int> by_bus = chosen(computer_->by_bus);
    if (contradictions(wanted, computer_->graph, by_bus).empty()) {
      return fmt::format(
          "--devices {} are these GPUs, as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them",
          list_of(by_bus));
    }
  }
  // Few GPUs may be joined like many others; those of the whole host say more.
  std::optional<std::vector<int>> found =
      matching_devices(comparable(machine, host), computer_->graph);
  found = found ? chosen(*found) : matching_devices(wanted, computer_->graph);
  if (found) return fmt::format("--devices {} are these GPUs", list_of(*found));
  return "no GPUs of this computer are joined like that; --devices runs the program on any";
}

std::vector<std::string> MachineCheck::compare(const Topology& machine,
                                               const std::vector<NodeId>& gpus,
                                               const std::vector<int>& devices, bool are_named) {
  if (!can_be_checked(machine, graph_of(machine, gpus))) return {};
  if (!computer_) computer_ = survey();
  std::vector<std::string> notes;
  if (!computer_->unknown_nvlinks.empty()) {
    notes.push_back(fmt::format("whether the GPUs are joined as '{}' says was not checked: {}",
                                machine.name, computer_->unknown_nvlinks));
  }
  const std::vector<std::string> wrong =
      contradictions(comparable(machine, gpus), computer_->graph, devices);
  if (wrong.empty()) return notes;
  const std::string what = fmt::format("the GPUs are not those of '{}' with these numbers: {}",
                                       machine.name, shown(wrong));
  if (!are_named) throw Error(ErrorKind::usage, what, advice(machine, gpus));
  notes.push_back(what + "; " + advice(machine, gpus));
  return notes;
}

std::vector<std::string> MachineCheck::check(const Topology& machine,
                                             const std::vector<NodeId>& gpus,
                                             const std::vector<int>& devices, bool are_named) {
  // Ranks that share a GPU are on no GPUs of a machine.
  if (std::set<int>(devices.begin(), devices.end()).size() < devices.size()) return {};
  const auto [known, is_new] = notes_.try_emplace({machine.name, {gpus, devices}});
  if (is_new) {
    try {
      known->second = compare(machine, gpus, devices, are_named);
    } catch (...) {
      notes_.erase(known);
      throw;
    }
  }
  return known->second;
}

}  // namespace espalier::cuda
