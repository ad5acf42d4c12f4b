// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/wiring.h"

namespace espalier::cuda {

/// NVIDIA's management library, which comes with the driver. It
/// is loaded on demand, so that nothing depends on its presence.
class Nvml {
 public:
  /// Nothing when this computer has no NVML, or one that does not start.
  static std::unique_ptr<Nvml> load();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The active NVLinks of a GPU; none when NVML does not know.
  std::vector<NvlinkEnd> nvlinks(const std::string& bus_id) const;
  /// The best that GPU and slot can do, which an idle link may be below.
  PcieLink pcie(const std::string& bus_id) const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace espalier::cuda
