// SPDX-License-Identifier: Apache-2.0
// A message takes no longer than one twice as large: what the larger one is sent by is open to it.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

using LargerMessages = StudyFixture;

void expect_rising(Study& study, const Query& question, const std::string& algorithm) {
  double before_s = 0;
  for (std::int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 2) {
    const double time_s = study.predict(with(question, algorithm, bytes)).best.time_s;
    EXPECT_GE(time_s, before_s * (1 - 1e-9)) << fmt::format(
        "{} on {} under {}, {} bytes", algorithm, question.topology, question.profile, bytes);
    before_s = time_s;
  }
}

TEST_F(LargerMessages, TakeLonger) {
  for (const char* machine : {"p2.8xlarge", "mist", "dgx1-v100", "v100-pcie"}) {
    for (const char* profile : {"ideal", "kernel"}) {
      for (const Collective collective : {Collective::broadcast, Collective::allreduce}) {
        const Query asked = question(machine, collective, profile);
        for (const char* algorithm : {"optimal:plan=1", "optimal"}) {
          expect_rising(study_, asked, algorithm);
        }
      }
    }
  }
}

}  // namespace
}  // namespace espalier
