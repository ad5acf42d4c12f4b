// SPDX-License-Identifier: Apache-2.0
// A program of tests that has this in it never asks the NVML of the computer it runs on, which says
// nothing of GPUs that are not there: it has loaded one of that name already, without a driver.
#include <gtest/gtest.h>

#include <optional>

#include "tests/exec/stand_in.h"

namespace espalier {
namespace {

class NoNvml : public testing::Environment {
 public:
  void SetUp() override { library_.emplace(FAKE_NVML); }
  void TearDown() override { library_.reset(); }

 private:
  std::optional<StandIn> library_;
};

const testing::Environment* const no_nvml = testing::AddGlobalTestEnvironment(new NoNvml);

}  // namespace
}  // namespace espalier
