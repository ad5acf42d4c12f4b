// SPDX-License-Identifier: Apache-2.0
// compare --against nccl on stand-ins for CUDA and NCCL: what is printed and written. Times are
// those of this computer's memory and differ from run to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/file.h"
#include "tests/cli/spoken.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/fake_nccl.h"
#include "tests/exec/stand_in.h"

namespace espalier {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

StandIn load_nccl(const FakeNccl& behaviour) {
  StandIn library(FAKE_NCCL);
  library.function<void(const FakeNccl&)>(kSetFakeNccl)(behaviour);
  return library;
}

class AgainstNccl : public WithFiles {
 protected:
  AgainstNccl() { fake_cuda::reset({.gpus = 8}); }

  /// On four GPUs of a DGX-1.
  static Spoken compare(const std::vector<std::string>& more) {
    std::vector<std::string> words{"compare", "--backend", "cuda",   "--topology", "dgx1-v100",
                                   "--gpus",  "0-3",       "--size", "4KiB,64KiB", "--iters",
                                   "3",       "--against", "nccl"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_F(AgainstNccl, PrintsTheSpeedUpMeasuredBesideTheOnePredicted) {
  const StandIn nccl = load_nccl({});
  const Spoken done = compare({"--algorithm", "ring", "flat_two_stage", "--json", file("c.json"),
                               "--csv", file("c.csv"), "--html", file("c.html")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out,
              HasSubstr("# ncclAllReduce of NCCL 2.28.9 on the same buffers, in a CUDA graph\n"));
  // What is said about the GPUs is said once.
  const std::size_t unchecked = done.out.find("whether the GPUs are joined as");
  EXPECT_NE(unchecked, std::string::npos);
  EXPECT_EQ(unchecked, done.out.rfind("whether the GPUs are joined as"));
  EXPECT_THAT(done.out, ContainsRegex("#wrong +vs nccl +nccl +measured\n"));
  EXPECT_THAT(done.out, ContainsRegex("\\(us\\) +speed-up\n"));
  EXPECT_THAT(done.out, ContainsRegex("\n +4096  ring .* 0 +x[0-9.]+ +[0-9.]+ +x[0-9.]+\n"));
  // What is predicted of NCCL is about the version that is there.
  EXPECT_THAT(done.out, HasSubstr("speed relative to NCCL 2.28, which chooses"));

  const Json json = Json::parse(read_file(file("c.json")));
  ASSERT_EQ(json["results"].size(), 4U);
  for (const Json& row : json["results"]) {
    const Json& library = row["library"];
    EXPECT_EQ(library["name"], "nccl");
    EXPECT_EQ(library["wrong"], 0);
    EXPECT_LE(library["min_time_s"], library["measured_s"]);
    EXPECT_NEAR(library["speedup"], double(library["measured_s"]) / double(row["measured_s"]),
                1e-6);
    EXPECT_NEAR(library["predicted_speedup"],
                double(row["nccl"]["time_s"]) / double(row["predicted_s"]), 1e-6);
  }
  EXPECT_THAT(read_file(file("c.csv")),
              HasSubstr(",skipped,library,library_s,library_wrong,measured_speedup,as_probed\r\n"));
  EXPECT_NE(read_file(file("c.html")).find("Measured beside NCCL&#39;s own collective: "),
            std::string::npos);
}

TEST_F(AgainstNccl, WritesWhatTheSchemaSays) {
  const StandIn nccl = load_nccl({});
  EXPECT_EQ(compare({"--json", file("c.json")}).code, 0);
  const Json schema =
      Json::parse(read_file(ESPALIER_SOURCE_DIR "/report/schemas/compare-2.schema.json"));
  const Json& wanted = schema["$defs"]["library"]["properties"];
  const Json row = Json::parse(read_file(file("c.json")))["results"][0];
  ASSERT_TRUE(row.contains("library"));
  EXPECT_EQ(row["library"].size(), wanted.size());
  for (const auto& [key, value] : row["library"].items()) EXPECT_TRUE(wanted.contains(key)) << key;
}

TEST_F(AgainstNccl, HasNoColumnsUnlessAskedFor) {
  const Spoken done = run({"compare", "--backend", "cuda", "--topology", "dgx1-v100", "--gpus",
                           "0-3", "--size", "4KiB", "--iters", "3", "--json", file("c.json")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, Not(HasSubstr("speed-up")));
  EXPECT_FALSE(Json::parse(read_file(file("c.json")))["results"][0].contains("library"));
}

TEST_F(AgainstNccl, FailsWhereItsResultsAreWrong) {
  const StandIn nccl = load_nccl({.is_wrong = true});
  const Spoken done = compare({"--json", file("c.json")});
  EXPECT_EQ(done.code, 1);
  EXPECT_THAT(done.out,
              ContainsRegex("\n# [1-9][0-9]* WRONG ELEMENTS IN RESULTS OF nccl AT 4096 B\n"));
  const Json json = Json::parse(read_file(file("c.json")));
  EXPECT_GT(json["results"][0]["library"]["wrong"], 0);
  EXPECT_EQ(json["results"][0]["wrong"], 0);
}

TEST_F(AgainstNccl, EndsWithWhatNcclSays) {
  const StandIn nccl = load_nccl({.fails = "ncclAllReduce"});
  const Spoken done = compare({});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("error: ncclAllReduce: internal error"));
}

TEST_F(AgainstNccl, EndsBeforeAnythingRunsWhereThereIsNone) {
  {
    const StandIn nccl = load_nccl({.version = 30000});
    const Spoken done = compare({});
    EXPECT_EQ(done.code, 3);
    EXPECT_THAT(done.err,
                HasSubstr("libnccl.so.2 is NCCL 3.0.0, which this espalier does not call"));
  }
  EXPECT_EQ(fake_cuda::kernels_launched(), 0);
}

TEST_F(AgainstNccl, SaysWhatItCanNotBeComparedWith) {
  const StandIn nccl = load_nccl({});
  Spoken done = compare({"--collective", "alltoall", "--in-place", "--algorithm", "direct"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("NCCL has no alltoall in place"));
  done = run({"compare", "--backend", "cuda", "--devices", "0,0", "--against", "nccl"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err,
              HasSubstr("--against: nccl has one rank on a device, and --devices names one twice"));
  done = run({"compare", "--against", "nccl"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("--against: back end host has no library to measure against"));
  done = compare({"--against", "rccl"});
  EXPECT_EQ(done.code, 2);
}

}  // namespace
}  // namespace espalier
