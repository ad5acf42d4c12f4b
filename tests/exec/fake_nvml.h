// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tests/exec/stand_in.h"

namespace espalier {

/// What the stand-in for NVIDIA's management library says of GPUs, by PCI bus as fake_cuda.h has
/// them.
struct FakeNvlinks {
  std::vector<std::vector<int>> between;  ///< parallel links
  std::vector<int> to_switches = {};      ///< empty: none
  bool are_veiled = false;  ///< where links lead is not said, as in some virtual machines
};

/// A library called libnvidia-ml.so.1, which has started as long as this is there. Before and
/// after, it is one without a driver: no_nvml.cpp.
class FakeNvml {
 public:
  FakeNvml(const char* file, const FakeNvlinks& nvlinks) : library_(file) { set(nvlinks); }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;
  ~FakeNvml() { set(std::nullopt); }

 private:
  void set(const std::optional<FakeNvlinks>& nvlinks) const {
    using Set = void(const std::optional<FakeNvlinks>&);
    library_.function<Set>("espalier_set_fake_nvlinks")(nvlinks);
  }

  const StandIn library_;
};

}  // namespace espalier
