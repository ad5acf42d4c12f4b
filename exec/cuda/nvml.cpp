// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace espalier::cuda {
namespace {

// What of nvml.h is used: its calls are versioned by name and stay what they are.
using Device = struct NvmlDevice*;
constexpr int kSuccess = 0;
constexpr int kEnabled = 1;
constexpr int kRemoteSwitch = 2;
constexpr unsigned kMaxLinks = 36;
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

/// NVML's number of an NVLink version: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0.
int generation_of(unsigned version) {
  static constexpr std::array kGenerations{0, 1, 2, 2, 3, 3, 4, 5};
  return version < kGenerations.size() ? kGenerations[version] : 0;
}

/// "00000000:3D:00.0" as Linux writes it: "0000:3d:00.0".
std::string linux_bus_id(std::string text) {
  constexpr std::size_t kLength = 12;
  if (text.size() > kLength) text.erase(0, text.size() - kLength);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

struct Nvml::Library {
  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_bus_id)(const char*, Device*) = nullptr;
  int (*link_state)(Device, unsigned, int*) = nullptr;
  int (*link_version)(Device, unsigned, unsigned*) = nullptr;
  int (*link_remote)(Device, unsigned, PciInfo*) = nullptr;
  int (*link_remote_type)(Device, unsigned, int*) = nullptr;
  int (*pcie_generation)(Device, unsigned*) = nullptr;
  int (*pcie_width)(Device, unsigned*) = nullptr;

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle.get(), name));
  }

  Device device(const std::string& bus_id) const {
    Device found = nullptr;
    return device_by_bus_id(bus_id.c_str(), &found) == kSuccess ? found : nullptr;
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Nvml::~Nvml() { library_->shutdown(); }

std::unique_ptr<Nvml> Nvml::load() {
  auto library = std::make_unique<Library>();
  library->handle.reset(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!library->handle) return nullptr;
  library->find(library->init, "nvmlInit_v2");
  library->find(library->shutdown, "nvmlShutdown");
  library->find(library->device_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  library->find(library->link_state, "nvmlDeviceGetNvLinkState");
  library->find(library->link_version, "nvmlDeviceGetNvLinkVersion");
  library->find(library->link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  library->find(library->link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  library->find(library->pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  library->find(library->pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  const bool complete = library->init != nullptr && library->shutdown != nullptr &&
                        library->device_by_bus_id != nullptr;
  if (!complete || library->init() != kSuccess) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

std::vector<NvlinkEnd> Nvml::nvlinks(const std::string& bus_id) const {
  const Library& nvml = *library_;
  const Device device = nvml.device(bus_id);
  std::vector<NvlinkEnd> ends;
  if (device == nullptr || nvml.link_state == nullptr || nvml.link_remote == nullptr) return ends;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    int state = 0;
    if (nvml.link_state(device, link, &state) != kSuccess || state != kEnabled) continue;
    NvlinkEnd& end = ends.emplace_back();
    unsigned version = 0;
    if (nvml.link_version != nullptr && nvml.link_version(device, link, &version) == kSuccess) {
      end.generation = generation_of(version);
    }
    int type = 0;
    if (nvml.link_remote_type != nullptr &&
        nvml.link_remote_type(device, link, &type) == kSuccess) {
      end.to_switch = type == kRemoteSwitch;
    }
    PciInfo remote{};
    if (nvml.link_remote(device, link, &remote) == kSuccess) {
      end.peer_bus_id = linux_bus_id(remote.bus_id);
    }
  }
  return ends;
}

PcieLink Nvml::pcie(const std::string& bus_id) const {
  const Library& nvml = *library_;
  const Device device = nvml.device(bus_id);
  unsigned generation = 0;
  unsigned lanes = 0;
  const bool known = device != nullptr && nvml.pcie_generation != nullptr &&
                     nvml.pcie_width != nullptr &&
                     nvml.pcie_generation(device, &generation) == kSuccess &&
                     nvml.pcie_width(device, &lanes) == kSuccess;
  return known ? pcie_link(static_cast<int>(generation), static_cast<int>(lanes)) : PcieLink{};
}

}  // namespace espalier::cuda
