// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "core/error.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_inventory.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/nvml.h"

namespace espalier {
namespace {

/// What Linux says about a device; what it does not say stays unknown.
void describe_place(const std::string& bus_id, ProbedDevice& device) {
  const std::filesystem::path link = "/sys/bus/pci/devices/" + bus_id;
  std::error_code unreadable;
  const std::filesystem::path path = std::filesystem::canonical(link, unreadable);
  if (unreadable) return;
  device.switches = pcie_switches(path.string());
  std::ifstream numa(path / "numa_node");
  if (int number = -1; numa >> number) device.numa = number;
}

}  // namespace

int cuda_gpus() {
  const CudaBackend backend;  // says where CUDA can't be used
  return cuda::gpu_count();
}

DescribedGpu describe_gpu(int number) {
  DescribedGpu described;
  ProbedDevice& device = described.device;
  const cuda::Gpu gpu = cuda::open_gpus({number}).all.front();
  device.name = gpu.name;
  int engines = 0;
  cuda::require(cudaDeviceGetAttribute(&engines, cudaDevAttrAsyncEngineCount, number),
                "cudaDeviceGetAttribute", number);
  device.copy_engines = engines;
  std::size_t free = 0;
  std::size_t total = 0;
  cuda::use_gpu(number);
  cuda::require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", number);
  device.free_bytes = static_cast<std::int64_t>(free);
  described.bus_id = cuda::bus_id_of(number);
  describe_place(described.bus_id, device);
  device.place = fmt::format("GPU {}, PCI {}", number, described.bus_id);
  if (const std::unique_ptr<cuda::Nvml> nvml = cuda::Nvml::load()) {
    const PcieLink pcie = nvml->pcie(described.bus_id);
    device.pcie_kind = pcie.kind;
    device.pcie_gbps = pcie.gbps;
    described.nvlinks = nvml->nvlinks(described.bus_id);
  }
  return described;
}

Inventory cuda_inventory(const std::vector<int>& devices) {
  const CudaBackend backend(devices);  // refuses what there is not
  std::vector<int> numbers = devices;
  for (int gpu = 0; devices.empty() && gpu < cuda_gpus(); ++gpu) numbers.push_back(gpu);
  Inventory inventory;
  inventory.name = "probed";
  inventory.can_access = cuda::open_gpus(numbers).set.can_access;
  std::vector<std::string> bus_ids;
  std::vector<std::vector<NvlinkEnd>> nvlinks;
  for (const int number : numbers) {
    DescribedGpu gpu = describe_gpu(number);
    inventory.devices.push_back(std::move(gpu.device));
    bus_ids.push_back(std::move(gpu.bus_id));
    nvlinks.push_back(std::move(gpu.nvlinks));
  }
  inventory.nvlinks = bundle_nvlinks(bus_ids, nvlinks);
  return inventory;
}

}  // namespace espalier
