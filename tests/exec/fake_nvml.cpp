// SPDX-License-Identifier: Apache-2.0
// A library with the name and the calls of NVML, as far as exec/cuda/nvml.cpp uses them.
#include "tests/exec/fake_nvml.h"

#include <cstdio>
#include <cstring>
#include <optional>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalid = 2;
constexpr int kNotFound = 6;
constexpr int kDriverNotLoaded = 9;
constexpr unsigned kNvlink2 = 2;

/// Nothing where there is no driver.
std::optional<espalier::FakeNvlinks>& known_links() {
  static std::optional<espalier::FakeNvlinks> only;
  return only;
}

/// \pre NVML has started.
const espalier::FakeNvlinks& links() { return *known_links(); }

/// A GPU, by its address: bus 0 is at &gpus[0].
struct Gpu {};
Gpu gpus[256];

std::size_t bus_of(const Gpu* gpu) { return static_cast<std::size_t>(gpu - gpus); }

std::size_t to_switches(std::size_t bus) {
  const auto& counts = links().to_switches;
  return bus < counts.size() ? static_cast<std::size_t>(counts[bus]) : 0;
}

/// The bus at the other end of a link, -1 for a switch, -2 where there is no such link.
int peer_of(std::size_t bus, std::size_t link) {
  if (link < to_switches(bus)) return -1;
  std::size_t left = link - to_switches(bus);
  const auto& row = links().between[bus];
  for (std::size_t other = 0; other < row.size(); ++other) {
    if (left < static_cast<std::size_t>(row[other])) return static_cast<int>(other);
    left -= static_cast<std::size_t>(row[other]);
  }
  return -2;
}

struct PciInfo {
  char legacy_bus_id[16];
  unsigned numbers[5];
  char bus_id[32];
};

}  // namespace

extern "C" {

void espalier_set_fake_nvlinks(const std::optional<espalier::FakeNvlinks>& wanted) {
  known_links() = wanted;
}

int nvmlInit_v2() { return known_links() ? kSuccess : kDriverNotLoaded; }
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Gpu** gpu) {
  unsigned bus = 0;
  if (std::sscanf(bus_id, "ffff:%x:00.0", &bus) != 1 || bus >= links().between.size()) {
    return kNotFound;
  }
  *gpu = &gpus[bus];
  return kSuccess;
}
int nvmlDeviceGetNvLinkState(Gpu* gpu, unsigned link, int* state) {
  if (peer_of(bus_of(gpu), link) == -2) return kInvalid;
  *state = 1;
  return kSuccess;
}
int nvmlDeviceGetNvLinkVersion(Gpu*, unsigned, unsigned* version) {
  *version = kNvlink2;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Gpu* gpu, unsigned link, int* type) {
  *type = peer_of(bus_of(gpu), link) == -1 ? 2 : 0;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Gpu* gpu, unsigned link, PciInfo* info) {
  if (links().are_veiled) return kInvalid;
  std::snprintf(info->bus_id, sizeof info->bus_id, "0000FFFF:%02X:00.0",
                static_cast<unsigned>(peer_of(bus_of(gpu), link)) & 0xFF);
  return kSuccess;
}

}  // extern "C"
