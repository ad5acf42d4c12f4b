// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace espalier {
namespace {

constexpr std::array kGpus = {NcclGpu{"gk210", 37, "", "0x10de:0x102d", "0x030200"},
                              NcclGpu{"p100-sxm2", 60, "", "0x10de:0x15f9", "0x030200"},
                              NcclGpu{"v100-sxm2", 70, "", "0x10de:0x1db1", "0x030200"},
                              NcclGpu{"v100-sxm2", 70, "", "0x10de:0x1db5", "0x030200"},
                              NcclGpu{"v100-sxm3", 70, "", "0x10de:0x1db8", "0x030200"},
                              NcclGpu{"v100-pcie", 70, "", "0x10de:0x1db4", "0x030200"},
                              NcclGpu{"v100-pcie", 70, "", "0x10de:0x1db6", "0x030200"},
                              NcclGpu{"a100-sxm4", 80, "", "0x10de:0x20b2", "0x030200"},
                              NcclGpu{"a100-sxm4", 80, "", "0x10de:0x20b0", "0x030200"},
                              NcclGpu{"h100-sxm5", 90, "", "0x10de:0x2330", "0x030200"},
                              NcclGpu{"h200-sxm5", 90, "", "0x10de:0x2335", "0x030200"},
                              NcclGpu{"b200", 100, "", "0x10de:0x2901", "0x030200"},
                              NcclGpu{"b200", 100, "", "0x10de:0x2941", "0x030200"},
                              NcclGpu{"mi250-gcd", 104, "gfx90a", "0x1002:0x740c", "0x038000"},
                              NcclGpu{"mi250-gcd", 104, "gfx90a", "0x1002:0x7408", "0x038000"},
                              NcclGpu{"mi300x", 304, "gfx942", "0x1002:0x74a1", "0x120000"},
                              NcclGpu{"mi300x", 304, "gfx942", "0x1002:0x74b5", "0x120000"}};

bool is_mi300(std::string_view gcn) { return gcn.starts_with("gfx94") || gcn.starts_with("94"); }
/// MI300 and MI350, whose links are one kind to RCCL (GFX94X_XGMI_WIDTH, GFX95X_XGMI_WIDTH).
bool has_xgmi3(std::string_view gcn) {
  return is_mi300(gcn) || gcn.starts_with("gfx95") || gcn.starts_with("95");
}
bool is_mi200(std::string_view gcn) { return gcn.starts_with("gfx90a") || gcn == "910"; }

}  // namespace

std::span<const NcclGpu> nccl_gpus() { return kGpus; }

std::string nccl_gpu_model(const NcclSystem::Gpu& gpu) {
  const auto card =
      std::ranges::find_if(kGpus, [&](const NcclGpu& known) { return gpu.device == known.device; });
  if (card != kGpus.end()) return card->model;
  if (!gpu.gcn.empty()) {
    if (is_mi300(gpu.gcn)) return "mi300x";
    if (is_mi200(gpu.gcn)) return "mi250-gcd";
    return gpu.gcn.starts_with("gfx") ? gpu.gcn : "gfx" + gpu.gcn;
  }
  const auto same = std::ranges::find_if(kGpus, [&](const NcclGpu& known) {
    return gpu.sm == known.sm && std::string_view(known.gcn).empty();
  });
  if (same != kGpus.end()) return same->model;
  return gpu.sm > 0 ? fmt::format("sm{}", gpu.sm) : "";
}

LinkRate nccl_pcie_rate(double lane_gtps, int width) {
  // NCCL counts 12 GB/s for sixteen lanes of the third generation, and half and a quarter of that
  // for the two before it.
  const double generation_3 = lane_gtps >= 8 ? lane_gtps / 8 : lane_gtps >= 5 ? 0.5 : 0.25;
  const double lane_gbps = 15.75 / 16 * generation_3;
  const char* lanes = width <= 8 ? "x8" : "x16";
  const std::string kind = lane_gtps >= 32   ? "pcie5x16"
                           : lane_gtps >= 16 ? fmt::format("pcie4{}", lanes)
                                             : fmt::format("pcie3{}", lanes);
  return {kind, lane_gbps * width};
}

LinkRate nccl_fabric_rate(const NcclSystem::Gpu& gpu) {
  // RCCL counts 48, 36 and 24 GB/s.
  if (!gpu.gcn.empty()) {
    return has_xgmi3(gpu.gcn)  ? LinkRate{"xgmi3", 64}
           : is_mi200(gpu.gcn) ? LinkRate{"xgmi2", 50}
                               : LinkRate{"xgmi2", 24 / 0.72};
  }
  if (gpu.sm >= 100) return {"nvlink5", 50};
  if (gpu.sm >= 90) return {"nvlink4", 25};
  if (gpu.sm == 86 || gpu.sm == 89) return {"nvlink3", 14.1};  // NCCL counts 12
  if (gpu.sm >= 80) return {"nvlink3", 25};
  return gpu.sm >= 70 || gpu.sm == 0 ? LinkRate{"nvlink2", 25} : LinkRate{"nvlink1", 20};
}

LinkRate nccl_socket_rate(const NcclSystem::Cpu& cpu) {
  // Nearly half duplex (CAST; topologies/mist.yaml), which NCCL does not count.
  if (cpu.arch == "ppc64") return {"xbus", 64, Duplex::half};
  if (cpu.arch == "arm64") return {"if_socket", 6 / 0.148};
  if (cpu.vendor == "AuthenticAMD") return {"if_socket", 108};
  if (cpu.vendor == "GenuineIntel") {
    if (cpu.model >= 0xCF) return {"upi_sapphire", 40 / 0.23};
    if (cpu.model >= 0x8F) return {"upi_sapphire", 96};
    if (cpu.model >= 0x55) return {"upi_skylake", 62.4};
  }
  return {"qpi", 38.4};
}

LinkRate nccl_network_rate(const NcclSystem::Net& net) {
  using Wire = NcclSystem::Net::Wire;
  if (net.wire == Wire::omnipath) return {"omnipath100", net.gbps};
  if (net.wire == Wire::ethernet) return {"ethernet", net.gbps};
  return {net.gbps > 30   ? "ib_ndr"
          : net.gbps > 15 ? "ib_hdr"
          : net.gbps > 8  ? "ib_edr"
                          : "ib_fdr",
          net.gbps};
}

}  // namespace espalier
