// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace espalier {

/// What the stand-in for NVIDIA's management library says of GPUs, by PCI bus as fake_cuda.h has
/// them.
struct FakeNvlinks {
  std::vector<std::vector<int>> between;  ///< parallel links
  std::vector<int> to_switches = {};      ///< empty: none
  bool are_veiled = false;  ///< where links lead is not said, as in some virtual machines
};

/// The name of the function of the stand-in that sets it: void (const FakeNvlinks&).
inline constexpr const char* kSetFakeNvlinks = "espalier_set_fake_nvlinks";

}  // namespace espalier
