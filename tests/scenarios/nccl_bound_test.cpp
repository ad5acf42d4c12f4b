// SPDX-License-Identifier: Apache-2.0
// What NCCL is said to take is never less than what no schedule beats: neither the bound's
// bandwidth nor its latency.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithms/algorithm.h"
#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

class NcclAndTheBound : public StudyFixture, public testing::WithParamInterface<const char*> {};

TEST_P(NcclAndTheBound, HoldOnTheMachine) {
  // Every version meets every size, over all collectives.
  constexpr const char* kVersions[] = {"2.4",    "2.6",  "2.10", "2.18",
                                       "2.18.3", "2.21", "2.27", "2.30"};
  std::size_t next = 0;
  int asked = 0;
  for (const Collective collective : find_algorithm("nccl")->collectives) {
    for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{16} << 10, std::int64_t{1} << 20,
                                     std::int64_t{32} << 20, std::int64_t{1} << 30}) {
      for (int i = 0; i < 2; ++i) {
        // RCCL has but one version.
        const char* const version = kVersions[next++ % std::size(kVersions)];
        const bool is_rccl = std::string_view(GetParam()) == "mi300x";
        const std::string spec = fmt::format("nccl:version={}", is_rccl ? "2.21" : version);
        const Outcome outcome =
            study_.ask(with(question(GetParam(), collective, "nccl"), spec, bytes));
        if (!outcome.ran()) continue;  // sends and receives came with 2.7
        ++asked;
        EXPECT_LE(outcome.least_s(), outcome.report.time_s * (1 + 1e-9))
            << spec << " " << to_string(collective) << " of " << bytes;
        EXPECT_LE(outcome.fraction, 1 + 1e-9);
      }
    }
  }
  EXPECT_GT(asked, 60);
}

INSTANTIATE_TEST_SUITE_P(Machines, NcclAndTheBound,
                         testing::Values("dgx1-p100", "dgx1-v100", "dgx-a100", "dgx-h100",
                                         "v100-pcie", "mi300x", "p3dn.24xlarge:nodes=2",
                                         "dgx-a100:nodes=2", "dgx-h100:nodes=2"),
                         [](const auto& one) {
                           std::string name = one.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace espalier
