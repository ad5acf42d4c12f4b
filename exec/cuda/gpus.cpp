// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "core/error.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/kernels.h"
#include "exec/cuda/peers.h"

namespace espalier::cuda {
namespace {

std::string version_name(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int attribute(cudaDeviceAttr which, int gpu) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, gpu), "cudaDeviceGetAttribute", gpu);
  return value;
}

void require_kernels(const Gpu& gpu) {
  use_gpu(gpu.number);
  const cudaError_t found = find_kernels();
  if (found == cudaSuccess) return;
  cudaGetLastError();
  if (found == cudaErrorUnsupportedPtxVersion) {
    throw Error(ErrorKind::unsupported,
                fmt::format("the NVIDIA driver of this computer is too old to compile kernels for "
                            "GPU {} ({})",
                            gpu.number, gpu.name),
                fmt::format("install a driver for CUDA {}, or build espalier with an older toolkit",
                            version_name(CUDART_VERSION)));
  }
  const int major = attribute(cudaDevAttrComputeCapabilityMajor, gpu.number);
  const int minor = attribute(cudaDevAttrComputeCapabilityMinor, gpu.number);
  throw Error(ErrorKind::unsupported,
              fmt::format("this espalier was built without kernels for GPU {} ({}, compute "
                          "capability {}.{}): {}",
                          gpu.number, gpu.name, major, minor, cudaGetErrorString(found)),
              "build it with a CUDA toolkit that knows this GPU; CUDA 12 is the last for V100 and "
              "P100");
}

cudaDeviceProp properties_of(int gpu) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties", gpu);
  return properties;
}

Gpu open_gpu(int number) {
  const cudaDeviceProp properties = properties_of(number);
  Gpu gpu{number, properties.name, properties.multiProcessorCount};
  require_kernels(gpu);
  return gpu;
}

}  // namespace

std::optional<std::string> cuda_problem() {
  // Otherwise eight queues of a GPU are shared by all its streams, and some wait for strangers. Has
  // to be said before CUDA is used; who has said something else means it.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    cudaGetLastError();
    return "there is no NVIDIA driver on this computer";
  }
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver of this computer is too old: it is for CUDA {}, this espalier was built "
        "with CUDA {}",
        version_name(driver), version_name(CUDART_VERSION));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    return "there is no NVIDIA GPU on this computer, or CUDA_VISIBLE_DEVICES hides it";
  }
  if (status != cudaSuccess) {
    return fmt::format("CUDA cannot be used: {} ({})", cudaGetErrorString(status),
                       cudaGetErrorName(status));
  }
  return std::nullopt;
}

int gpu_count() {
  int count = 0;
  require(cudaGetDeviceCount(&count), "cudaGetDeviceCount", 0);
  return count;
}

std::string gpu_model(int gpu) { return properties_of(gpu).name; }

std::string bus_id_of(int gpu) {
  std::array<char, 32> text{};
  require(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), gpu),
          "cudaDeviceGetPCIBusId", gpu);
  std::string bus_id = text.data();
  std::ranges::transform(bus_id, bus_id.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return bus_id;
}

Gpus open_gpus(const std::vector<int>& numbers) {
  Gpus gpus;
  gpus.set.max_peers = most_peers();
  for (const int number : numbers) {
    if (number == DeviceSet::kHost) {
      gpus.set.device_of_place.push_back(DeviceSet::kHost);
      continue;
    }
    const auto known = std::ranges::find(gpus.all, number, &Gpu::number);
    gpus.set.device_of_place.push_back(static_cast<int>(known - gpus.all.begin()));
    if (known == gpus.all.end()) gpus.all.push_back(open_gpu(number));
  }
  for (const Gpu& gpu : gpus.all) {
    std::vector<bool>& row = gpus.set.can_access.emplace_back();
    for (const Gpu& other : gpus.all) {
      int can = 1;
      if (other.number != gpu.number) {
        require(cudaDeviceCanAccessPeer(&can, gpu.number, other.number), "cudaDeviceCanAccessPeer",
                gpu.number);
      }
      row.push_back(can != 0 && !is_refused({gpu.number, other.number}));
    }
  }
  return gpus;
}

}  // namespace espalier::cuda
