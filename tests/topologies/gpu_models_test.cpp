// SPDX-License-Identifier: Apache-2.0
#include "topologies/gpu_models.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(GpuModels, NamesOfDevicesBeginAsTheCataloguesModels) {
  EXPECT_EQ(model_of_device("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(model_of_device("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(model_of_device("NVIDIA H100 PCIe"), "h100-pcie");
  EXPECT_EQ(model_of_device("Tesla K80"), "gk210");
  EXPECT_EQ(model_of_device("AMD Instinct MI300X"), "mi300x");
  EXPECT_EQ(model_of_device("NVIDIA TITAN RTX"), "titan-rtx");
  EXPECT_EQ(model_of_device("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), "h100-80gb-hbm3-mig-1g.10gb");
  EXPECT_EQ(model_of_device(""), "");
}

}  // namespace
}  // namespace espalier
