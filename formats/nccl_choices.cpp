// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_choices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/units.h"
#include "formats/nccl_rates.h"

namespace espalier {
namespace {

/// GT/s of a lane by generation, and the numbers of lanes that PCIe has, usual ones first.
constexpr std::array kGtps = {2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
constexpr std::array kWidths = {16, 8, 4, 2, 1, 12, 32};

struct CpuType {
  const char* arch;
  const char* vendor;
  int family;
  int model;
};
constexpr std::array kCpuTypes = {CpuType{"x86_64", "GenuineIntel", 6, 79},    // Broadwell
                                  CpuType{"x86_64", "GenuineIntel", 6, 85},    // Skylake
                                  CpuType{"x86_64", "GenuineIntel", 6, 143},   // Sapphire Rapids
                                  CpuType{"x86_64", "GenuineIntel", 6, 207},   // Emerald Rapids
                                  CpuType{"x86_64", "AuthenticAMD", 143, 49},  // Rome
                                  CpuType{"ppc64", "", 0, 0},
                                  CpuType{"arm64", "", 0, 0}};

/// Of a card: 3D controllers, and display controllers of other kinds.
constexpr const char* kNvidiaClass = "0x030200";
constexpr const char* kAmdClass = "0x038000";

double distance(double a, double b) { return std::abs(std::log(a / b)); }

}  // namespace

PcieLanes nccl_lanes(const std::string& kind, double gbps) {
  PcieLanes chosen;
  const std::size_t generation =
      kind.starts_with("pcie") && kind.size() > 4 ? static_cast<std::size_t>(kind[4] - '0') : 0;
  if (generation >= 1 && generation <= kGtps.size()) chosen.gtps = kGtps[generation - 1];
  const auto distance_of = [&](double gtps, int width) {
    return distance(kernel_gbps(nccl_pcie_rate(gtps, width)), gbps);
  };
  double best = distance_of(chosen.gtps, chosen.width);
  const auto consider = [&](double gtps, int width) {
    constexpr double kNoBetter = 0.01;
    if (distance_of(gtps, width) >= best - kNoBetter) return;
    best = distance_of(gtps, width);
    chosen = {gtps, width};
  };
  const double own = chosen.gtps;
  for (const int width : kWidths) consider(own, width);
  for (const double gtps : kGtps) {
    for (const int width : kWidths) consider(gtps, width);
  }
  return chosen;
}

NcclSystem::Cpu nccl_cpu(const std::vector<std::string>& kinds, const std::vector<double>& gbps) {
  std::string_view arch = "x86_64", vendor = "GenuineIntel";
  for (const std::string& kind : kinds) {
    if (kind == "nvlink_c2c") arch = "arm64";
    if (kind == "xbus") arch = "ppc64";
    if (kind.starts_with("if_")) vendor = "AuthenticAMD";
  }
  std::optional<NcclSystem::Cpu> best;
  double best_distance = 0;
  for (const CpuType& type : kCpuTypes) {
    if (type.arch != arch || (arch == "x86_64" && type.vendor != vendor)) continue;
    NcclSystem::Cpu cpu;
    cpu.arch = type.arch;
    cpu.vendor = type.vendor;
    cpu.family = type.family;
    cpu.model = type.model;
    double sum = 0;
    for (const double one : gbps) sum += distance(kernel_gbps(nccl_socket_rate(cpu)), one);
    if (best && sum >= best_distance) continue;
    best = cpu;
    best_distance = sum;
  }
  return best.value();
}

NcclCard nccl_card_of(const std::string& model) {
  NcclCard card;
  for (const NcclGpu& known : nccl_gpus()) {
    if (model != known.model) continue;
    card.gpu.sm = known.sm;
    card.gpu.gcn = known.gcn;
    card.gpu.device = known.device;
    return {card.gpu, known.pci_class, true};
  }
  const auto number = model.starts_with("sm") ? parse_number(model.substr(2)) : std::nullopt;
  if (number && *number >= 1 && *number <= 9999) {
    card.gpu.sm = static_cast<int>(*number);
    return {card.gpu, kNvidiaClass, true};
  }
  constexpr std::string_view kGfx = "gfx";
  constexpr std::size_t kMaxGcn = 16;
  if (model.starts_with(kGfx) && model.size() > kGfx.size() && model.size() < kMaxGcn) {
    card.gpu.gcn = model;
    return {card.gpu, kAmdClass, true};
  }
  return {card.gpu, kNvidiaClass, false};
}

NcclCard nccl_card_with(const std::string& link_kind, double gbps) {
  // Older ones of AMD, whose links are slower, are no model of the catalogue.
  std::vector<NcclCard> all = {nccl_card_of("gfx906")};
  for (const NcclGpu& known : nccl_gpus()) all.push_back(nccl_card_of(known.model));
  const NcclCard* best = nullptr;
  const auto distance_of = [&](const NcclCard& card) {
    return distance(kernel_gbps(nccl_fabric_rate(card.gpu)), gbps);
  };
  for (const NcclCard& card : all) {
    if (nccl_fabric_rate(card.gpu).kind != link_kind) continue;
    if (best == nullptr || distance_of(card) < distance_of(*best)) best = &card;
  }
  if (best == nullptr) return {{}, kNvidiaClass, false};
  NcclCard chosen = *best;
  chosen.gpu.device.clear();  // it is another one
  chosen.is_known = false;
  return chosen;
}

}  // namespace espalier
