// SPDX-License-Identifier: Apache-2.0
// Whatever --jobs says, verbs print the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/file.h"
#include "scenarios/records.h"
#include "tests/cli/spoken.h"

namespace espalier {
namespace {

/// Reports without the time that they took.
void drop_wall_times(Json& json) {
  if (json.is_object()) json.erase("wall_s");
  for (Json& part : json) {
    if (part.is_structured()) drop_wall_times(part);
  }
}

class Jobs : public WithFiles {
 protected:
  /// What is said with that many jobs, and the JSON that `--json` writes, where there is any.
  struct Said {
    int code = 0;
    std::string out;
    std::string err;
    std::string json;
    bool operator==(const Said&) const = default;
  };
  Said say(std::vector<std::string> words, int jobs) const {
    words.insert(words.end(), {"--jobs", std::to_string(jobs), "--json", file("out.json")});
    std::filesystem::remove(file("out.json"));
    const Spoken spoken = run(words);
    Said said{spoken.code, spoken.out, spoken.err, {}};
    if (std::filesystem::exists(file("out.json"))) {
      Json json = Json::parse(read_file(file("out.json")));
      drop_wall_times(json);
      said.json = json.dump(1);
    }
    return said;
  }

  void expect_same(const std::vector<std::string>& words, int code = 0) const {
    const Said alone = say(words, 1);
    EXPECT_EQ(alone.code, code) << alone.err;
    for (const int jobs : {2, 3}) {
      const Said said = say(words, jobs);
      EXPECT_EQ(said.code, alone.code);
      EXPECT_EQ(said.out, alone.out) << jobs << " jobs";
      EXPECT_EQ(said.err, alone.err) << jobs << " jobs";
      EXPECT_EQ(said.json, alone.json) << jobs << " jobs";
    }
  }
};

TEST_F(Jobs, SimSaysTheSame) {
  expect_same({"sim", "--topology", "dgx1-v100", "--gpus", "0-5", "--size", "4KiB..4MiB"});
  expect_same({"sim", "--topology", "dgx1-v100", "--size", "1MiB", "--show-links", "3",
               "--critical-path", "--explain"});
  expect_same({"sim", "--topology", "dgx1-v100", "--algorithm", "auto", "optimal", "ring", "--size",
               "64KiB..1MiB", "--collective", "broadcast", "--root", "3"});
}

/// What is the fastest is chosen by whoever asks, and its answer is that of the algorithm itself.
TEST_F(Jobs, AChoiceIsTheAlgorithmThatIsChosen) {
  const std::vector<std::string> words = {"sim", "--topology", "dgx1-v100", "--size", "1MiB"};
  const Json all = Json::parse(say(words, 2).json)["results"];
  const auto time_of = [&](const std::string& algorithm) {
    for (const Json& one : all) {
      if (one.value("algorithm", "") == algorithm) return one.at("time_s").get<double>();
    }
    ADD_FAILURE() << "no " << algorithm;
    return 0.0;
  };
  double least_s = HUGE_VAL;
  for (const Json& one : all) least_s = std::min(least_s, one.value("time_s", HUGE_VAL));
  EXPECT_EQ(time_of("optimal"), least_s);
}

TEST_F(Jobs, SimWritesTheSame) {
  for (const char* output : {"--trace", "--export"}) {
    std::vector<std::string> texts;
    for (const int jobs : {1, 2}) {
      const std::string path = file(output == std::string("--export") ? "p.esp" : "o.json");
      EXPECT_EQ(say({"sim", "--topology", "dgx1-v100", "--gpus", "0-3", "--algorithm", "auto",
                     "--size", "1MiB", output, path},
                    jobs)
                    .code,
                0);
      texts.push_back(read_file(path));
    }
    EXPECT_EQ(texts[0], texts[1]) << output;
  }
}

TEST_F(Jobs, ProblemsAreTheSame) {
  // One of several that does not apply; none that applies; one whose program is refused.
  expect_same({"sim", "--topology", "ring:n=5", "--algorithm", "ring", "all_pairs", "chain",
               "--size", "1KiB..4KiB"},
              3);
  expect_same({"sim", "--topology", "ring:n=5", "--algorithm", "all_pairs", "flat_two_stage",
               "--size", "1KiB,1MiB"},
              3);
  write_file(file("wrong.esp"),
             "program p\ncollective broadcast root 0\nranks 8\nunits 1\n"
             "0: r0.out[0] <- r0.in[0]\n1: r1.out[0] <- r0.in[0]\n");
  expect_same({"sim", "--topology", "dgx1-v100", "--collective", "broadcast", "--algorithm",
               file("wrong.esp"), "chain", "--size", "1KiB"},
              1);
  expect_same({"sim", "--topology", "dgx1-v100:without=gpu0-gpu3", "--gpus", "0,3", "--links",
               "fabric", "--algorithm", "ring", "chain"},
              3);
}

TEST_F(Jobs, NamesMayBeBeyondAscii) {
  const std::string path = file("p\xc3\xa9.esp");
  write_file(path,
             "program p\ncollective broadcast root 0\nranks 2\nunits 1\n"
             "0: r0.out[0] <- r0.in[0]\n1: r1.out[0] <- r0.in[0]\n");
  const Spoken spoken = run({"sim", "--topology", "dgx1-v100", "--gpus", "0,1", "--algorithm", path,
                             "chain", "--size", "1KiB", "--jobs", "2"});
  EXPECT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_THAT(spoken.out, testing::HasSubstr(path));
}

TEST_F(Jobs, TuneSaysTheSame) {
  expect_same({"tune", "--topology", "dgx1-v100", "--gpus", "0-3", "--size", "1KiB..64MiB",
               "--output", file("table.yaml")});
  expect_same({"tune", "--topology", "kesch", "--gpus", "0-7", "--collective", "broadcast",
               "--size", "4KiB,1MiB,1GiB"});
  expect_same({"tune", "--topology", "ring:n=5", "--algorithm", "all_pairs", "--size", "1KiB"}, 3);
}

TEST_F(Jobs, TrainSaysTheSame) {
  expect_same({"train", "--model", "lenet", "--topology", "dgx1-v100", "--compute-ms", "3",
               "--batch", "64", "--gpu-counts", "1,2,4", "--algorithm", "ring", "nccl_rings",
               "--fusion", "0,1MiB", "--show-buckets"});
  expect_same({"train", "--model", "lenet", "--topology", "dgx1-v100", "--compute-ms", "3",
               "--batch", "64", "--gpu-counts", "2,4", "--algorithm", "auto", "optimal", "ring"});
}

TEST_F(Jobs, ThereMayBeMoreThanQuestions) {
  expect_same({"sim", "--topology", "ring:n=4", "--algorithm", "ring", "--size", "1KiB"});
  EXPECT_EQ(run({"sim", "--topology", "ring:n=4", "--jobs", "1025"}).code, 2);
  EXPECT_EQ(run({"sim", "--topology", "ring:n=4", "--jobs", "-1"}).code, 2);
}

}  // namespace
}  // namespace espalier
