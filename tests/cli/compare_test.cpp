// SPDX-License-Identifier: Apache-2.0
// probe and compare, as far as times, which differ from run to run, do not matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/compare_table.h"
#include "cli/probing.h"
#include "cli/verb.h"
#include "core/file.h"
#include "exec/cuda/cuda_backend.h"
#include "probe/doubts.h"
#include "probe/probing_meter.h"
#include "report/outcomes.h"
#include "scenarios/tables.h"
#include "tests/cli/spoken.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using Json = nlohmann::json;

class Compare : public WithFiles {
 protected:
  /// Two ranks on a computer; the figures are made up.
  std::string machine() const {
    write_file(file("two.yaml"), R"(
schema: espalier.topology/1
name: two
memories: {ram: {gbps: 20, reduce_gbps: 8}}
nodes:
  - {name: "gpu[0-1]", kind: gpu, memory: ram, access_gbps: 20}
  - {name: cpu0, kind: cpu, memory: ram}
links:
  - {a: gpu0, b: gpu1, kind: link, gbps: 20}
  - {a: "gpu[0-1]", b: cpu0, kind: pcie4x16, gbps: 20}
)");
    return file("two.yaml");
  }
};

TEST_F(Compare, PrintsARowForEverySizeAndAlgorithmAndTheMedianErrors) {
  const Spoken done =
      run({"compare", "--topology", machine(), "--algorithm", "ring", "flat_two_stage", "--size",
           "4KiB,64KiB", "--iters", "3", "--json", file("c.json"), "--trace", file("t.json")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("# compared allreduce on " + machine() + ", out of place\n"));
  EXPECT_THAT(done.out, HasSubstr("measured: backend host, median of 3 runs\n"));
  EXPECT_THAT(done.out, ContainsRegex("\n +4096  ring .* [+-][0-9.e+]+ +0\n"));
  EXPECT_THAT(done.out, ContainsRegex("\n +65536  flat_two_stage .* [+-][0-9.e+]+ +0\n"));
  EXPECT_THAT(done.out, ContainsRegex("\n# median error: [0-9.]+ %; from 16 MiB on: -\n"));

  const Json json = Json::parse(read_file(file("c.json")));
  EXPECT_EQ(json["schema"], "espalier.compare/2");
  EXPECT_EQ(json["machine"], machine());
  EXPECT_EQ(json["backend"], "host");
  EXPECT_TRUE(json["median_error_from_16MiB"].is_null());
  ASSERT_EQ(json["results"].size(), 4U);
  for (const Json& row : json["results"]) {
    EXPECT_EQ(row["kind"], "comparison");
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_LE(row["min_time_s"], row["measured_s"]);
    EXPECT_LE(row["measured_s"], row["max_time_s"]);
    const double predicted_s = row["predicted_s"];
    EXPECT_NEAR(row["error"], predicted_s / double(row["measured_s"]) - 1, 1e-6);
  }
}

TEST_F(Compare, SaysInJsonWhatWasSkipped) {
  const Spoken done =
      run({"compare", "--topology", "full:n=3", "--collective", "broadcast", "--algorithm", "all",
           "--size", "4KiB", "--iters", "1", "--json", file("s.json")});
  EXPECT_EQ(done.code, 0) << done.err;
  const Json json = Json::parse(read_file(file("s.json")));
  std::map<std::string, int> kinds;
  for (const Json& one : json["results"]) {
    ++kinds[one["kind"]];
    if (one["kind"] == "comparison") continue;
    EXPECT_THAT(done.out, HasSubstr("# Not here: " + std::string(one["algorithm"])));
  }
  EXPECT_GT(kinds["comparison"], 2);
  EXPECT_GT(kinds["skipped"], 0);
}

TEST_F(Compare, DrawsBothTimelinesOfTheSameOps) {
  const Spoken done = run({"compare", "--topology", machine(), "--algorithm", "ring", "--size",
                           "64KiB", "--iters", "2", "--trace", file("t.json")});
  ASSERT_EQ(done.code, 0) << done.err;
  const Json trace = Json::parse(read_file(file("t.json")));
  std::multiset<std::string> ops[2];
  std::vector<std::string> processes;
  std::set<std::pair<int, int>> named;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["name"] == "thread_name") named.emplace(event["pid"], event["tid"]);
    if (event["ph"] != "X") continue;
    EXPECT_EQ(named.count({event["pid"], event["tid"]}), 1U);
    EXPECT_GE(event["dur"], 0);
    ops[event["pid"].get<int>()].insert(event["name"]);
  }
  EXPECT_EQ(processes, (std::vector<std::string>{"predicted", "measured"}));
  EXPECT_EQ(ops[0], ops[1]);
  EXPECT_FALSE(ops[0].empty());
}

TEST_F(Compare, TakesWhatProbeWrites) {
  const Spoken probed = run({"probe", "--virtual", "2", "--output", file("host.yaml")});
  ASSERT_EQ(probed.code, 0) << probed.err;
  EXPECT_THAT(probed.out, HasSubstr("# probed 2 ranks on threads of a computer\n"));
  EXPECT_THAT(probed.out, ContainsRegex("\n#   gpu0  gpu1 +[0-9.]+ +[0-9.]+ +[0-9.]+\n"));
  EXPECT_THAT(probed.out,
              ContainsRegex("\n#   all together +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+\n"));
  EXPECT_THAT(probed.out, HasSubstr("# wrote " + file("host.yaml") + "\n"));
  const Topology machine = load_topology(file("host.yaml"));
  EXPECT_EQ(machine.gpus().size(), 2U);
  const Spoken compared = run({"compare", "--topology", file("host.yaml"), "--algorithm", "optimal",
                               "--size", "1MiB", "--iters", "1", "--in-place"});
  EXPECT_EQ(compared.code, 0) << compared.err;
}

TEST_F(Compare, ProbesWhatIsNotNamed) {
  setenv("TMPDIR", "/nowhere", 1);  // makes no files but those asked for: Ctrl-C would leave them
  const Spoken done = run({"compare", "--ranks", "1", "--algorithm", "ring", "--size", "64KiB",
                           "--iters", "1", "--output", file("one.yaml")});
  unsetenv("TMPDIR");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("on 1 x threads of a computer, probed just now, out of place\n"));
  EXPECT_EQ(load_topology(file("one.yaml")).gpus().size(), 1U);
}

/// Which GPU a rank is on decides what is measured: a list says it once for all.
TEST_F(Compare, ProbesGpusThatAreSharedByAllOrByNone) {
  const auto asked = [](const std::vector<std::string>& words) {
    Arguments arguments(*find_verb("probe"), words);
    const ProbeRequest request = read_probe_request(arguments);
    arguments.finish();
    return std::pair{request.sharing, request.choice.devices};
  };
  const std::vector<int> one{3};
  EXPECT_EQ(asked({"--backend", "cuda", "--devices", "3,3,3"}), std::pair(3, one));
  EXPECT_EQ(asked({"--backend", "cuda", "--devices", "3"}), std::pair(0, one));
  EXPECT_EQ(asked({"--backend", "cuda", "--devices", "3,1"}), std::pair(0, std::vector{3, 1}));
  const ProbeRequest compared = probe_request_for(find_backend("cuda"), {{3, 3, 3}}, 3, 60);
  EXPECT_EQ(compared.sharing, 3);
  EXPECT_EQ(compared.choice.devices, one);
  for (const char* verb : {"probe", "compare"}) {
    const Spoken some = run({verb, "--backend", "cuda", "--devices", "0,0,1,1"});
    EXPECT_EQ(some.code, 2);
    EXPECT_THAT(some.err, HasSubstr("4 ranks on 2 GPUs: some of them share a GPU"));
  }
}

TEST_F(Compare, SaysThatAnotherMachineIsMeasured) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  Topology shared = load_topology(machine());
  EXPECT_THAT(doubts_about(shared, "threads", {}),
              ElementsAre("'two' was not measured by espalier probe"));
  shared.sources = {"measured by espalier probe, today"};
  EXPECT_THAT(doubts_about(shared, "threads", {}), IsEmpty());
  EXPECT_THAT(doubts_about(shared, "", {1, 1}), IsEmpty());
  const auto apart = ElementsAre(
      "the ranks of 'two' share a GPU, but the measured ones do not: use --devices "
      "0,0,... to put them on one GPU");
  EXPECT_THAT(doubts_about(shared, "", {0, 1}), apart);
  EXPECT_THAT(doubts_about(shared, "", {}), apart);
  Topology own = shared;
  for (Node& node : own.nodes) node.memory.clear();
  own.nodes[0].model = "TEST GPU";
  EXPECT_THAT(doubts_about(own, "", {}), IsEmpty());
  EXPECT_THAT(doubts_about(own, "", {0, 0}),
              ElementsAre("the measured ranks share a GPU, but those of 'two' do not"));
  EXPECT_THAT(doubts_about(own, "processes", {}),
              ElementsAre("'two' describes TEST GPU, but processes are measured"));
  const Spoken done = run({"compare", "--topology", machine(), "--size", "4KiB", "--iters", "1"});
  EXPECT_THAT(done.err, HasSubstr("note: 'two' was not measured by espalier probe"));
}

TEST(ProbeFootprint, IsHalfOfTheMemoryThatIsFreeAtMost) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  EXPECT_EQ(probe_footprint_bytes(host_inventory(4)), kGiB / 8);
  EXPECT_EQ(probe_footprint_bytes(host_inventory(64)), kGiB / 32);
  // Twice what caches hold, as a power of two of each rank, where that is more.
  Inventory cached = host_inventory(2);
  cached.cache_bytes = kGiB / 16;
  EXPECT_EQ(probe_footprint_bytes(cached), kGiB / 8);
  cached.cache_bytes = 300 << 20;
  EXPECT_EQ(probe_footprint_bytes(cached), kGiB / 2);
  cached.cache_bytes = 8 * kGiB;
  EXPECT_EQ(probe_footprint_bytes(cached), kGiB);
  cached.devices[0].free_bytes = kGiB;
  EXPECT_EQ(probe_footprint_bytes(cached), kGiB / 4);
  Inventory gpus;
  gpus.devices.resize(2);
  EXPECT_EQ(probe_footprint_bytes(gpus), 2 * kGiB);  // not known
  gpus.devices[0].free_bytes = 70 * kGiB;
  gpus.devices[1].free_bytes = 3 * kGiB;
  EXPECT_EQ(probe_footprint_bytes(gpus), 3 * kGiB / 2);
  Inventory shared;
  shared.devices.resize(1);
  shared.devices[0].free_bytes = 70 * kGiB;
  shared.sharing = 8;
  EXPECT_EQ(probe_footprint_bytes(shared), kGiB / 2);
  shared.devices[0].free_bytes = 4 * kGiB;
  EXPECT_EQ(probe_footprint_bytes(shared), kGiB / 4);  // 2 GiB for eight
}

TEST_F(Compare, LimitsRanksThatAreProbed) {
  const Spoken many = run({"compare", "--ranks", "65"});
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.err, HasSubstr("65 ranks on one device: at most 64 can be probed"));
}

TEST_F(Compare, SaysWhatIsNotPossible) {
  EXPECT_THAT(run({"probe", "--devices", "0"}).err, HasSubstr("--devices needs --backend cuda"));
  EXPECT_EQ(run({"probe", "--devices", "0"}).code, 2);
  EXPECT_THAT(run({"exec", "--memory", "cuda"}).err,
              HasSubstr("--memory cuda needs --backend mpi"));
  EXPECT_THAT(run({"exec", "--backend", "mpi", "--transport", "staged"}).err,
              HasSubstr("--transport needs --memory cuda"));
  const Spoken several = run({"probe", "--backend", "cuda", "--devices", "0,1", "--virtual", "2"});
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.err, HasSubstr("--virtual: the ranks share one GPU, but --devices names"));
  const Spoken kept = run({"compare", "--topology", machine(), "--output", file("x.yaml")});
  EXPECT_EQ(kept.code, 2);
  EXPECT_THAT(kept.err, HasSubstr("--output: nothing is probed if --topology names a machine"));
  if (const auto reason = cuda_unavailable()) {
    for (const char* verb : {"probe", "compare"}) {
      const Spoken refused = run({verb, "--backend", "cuda"});
      EXPECT_EQ(refused.code, 3);
      EXPECT_THAT(refused.err, HasSubstr("error: " + *reason));
    }
  }
}

/// Rows of a comparison on a machine whose sums, of few bytes and of many, are checked with these
/// results, in turn. All are predicted to take a second.
Comparisons compared(const std::vector<std::int64_t>& sizes,
                     const std::vector<std::pair<double, double>>& now_gbps,
                     const std::vector<double>& measured_s) {
  std::vector<Query> queries;
  for (const std::int64_t bytes : sizes) {
    Query& query = queries.emplace_back();
    query.size_bytes = bytes;
    query.algorithm = "ring";
  }
  const auto answer = [](const Query& query) {
    Outcome outcome;
    outcome.query = query;
    outcome.ranks = 2;
    outcome.verified = true;
    outcome.report.message_bytes = query.size_bytes;
    outcome.report.time_s = 1;
    return outcome;
  };
  std::size_t row = 0;
  std::size_t checks = 0;
  return compare_table(
      queries, answer,
      [&](const Query& query) {
        Outcome outcome = answer(query);
        outcome.report.executed.emplace().median_time_s = measured_s[row++];
        return outcome;
      },
      [](const Outcome&, const Comparison*) {}, {},
      [&] {
        const auto [few, many] = now_gbps.at(checks++);
        return std::vector<CheckedFigure>{{"sums", 2 << 20, 20, few}, {"sums", 32 << 20, 10, many}};
      });
}

TEST(ChangedMachine, MarksTheRowsBetweenChecksThatFindAnotherOne) {
  // Before the first row and after each. 1 MiB is about 2 MiB at work, and 16 MiB is about 32.
  const std::int64_t few = 1 << 20;
  const std::int64_t many = 16 << 20;
  const Comparisons all =
      compared({few, few, few, many, many}, {{20, 10}, {19, 4}, {8, 4}, {20, 4}, {20, 10}, {20, 9}},
               {1, 2, 4, 4, 1.25});
  std::vector<std::size_t> changed;
  for (const Comparison& row : all.rows) changed.push_back(row.changed->size());
  EXPECT_EQ(changed, (std::vector<std::size_t>{0, 1, 1, 1, 0}));
  EXPECT_EQ(all.rows[2].changed->front().now_gbps, 8);
  EXPECT_TRUE(all.are_checked());
  EXPECT_DOUBLE_EQ(*all.median_error(), 0.5);            // of 0, 0.5, 0.75, 0.75, 0.2
  EXPECT_DOUBLE_EQ(*all.median_error_as_probed(), 0.1);  // of 0, 0.2
  EXPECT_DOUBLE_EQ(*all.median_error_as_probed(many), 0.2);

  const Json json = Json::parse(comparisons_json(all, "here"));
  EXPECT_EQ(json["median_error"], 0.5);
  EXPECT_EQ(json["median_error_as_probed"], 0.1);
  EXPECT_EQ(json["median_error_as_probed_from_16MiB"], 0.2);
  EXPECT_EQ(json["results"][0]["changed"], Json::array());
  EXPECT_EQ(json["results"][1]["changed"], Json::parse(R"([{
      "figure": "sums", "working_set_bytes": 2097152, "probed_gbps": 20.0, "now_gbps": 8.0}])"));
  const std::string csv = comparisons_csv(all, "here");
  EXPECT_THAT(csv, ContainsRegex("^machine,.*,as_probed\r\n.*,true\r\n.*,false\r\n"));
}

TEST(ChangedMachine, SaysWhatHasChangedAndFromWhichRowsOn) {
  const std::int64_t few = 1 << 20;
  const std::int64_t many = 16 << 20;
  const auto printed = [](const Comparisons& all) {
    std::ostringstream out;
    std::ostringstream err;
    const Console console{out, err};
    const std::vector<Query> none;
    CompareTable table(console, "here", TableHead{none});
    for (const Comparison& row : all.rows) table.add(row);
    table.finish(all);
    return out.str();
  };
  const std::string changed = printed(compared(
      {few, few, few, many}, {{20, 10}, {20, 10}, {8, 10}, {9, 10}, {9, 10}}, {1, 2, 4, 1.25}));
  EXPECT_THAT(changed,
              ContainsRegex("\n +1048576  ring [^\n]*N/A\n +1048576  ring [^\n]*N/A  \\*\n"));
  EXPECT_THAT(changed, HasSubstr("\n# median error: 35.0 %; from 16 MiB on: 20.0 %\n"
                                 "# of the 2 of 4 rows with the machine as probed: 10.0 %; from "
                                 "16 MiB on: 20.0 %\n# *: the machine was not as probed"));
  EXPECT_THAT(changed,
              ContainsRegex("\n#   1048576 B ring to 1048576 B ring \\(2 rows\\): sums 8 GB/s, "
                            "probed 20 \\(2MiB of"));
  EXPECT_THAT(printed(compared({few}, {{20, 10}, {20, 10}}, {1})),
              HasSubstr("\n# before and after each row, the machine was as probed\n"));
}

TEST(MedianError, IsThatOfTheSizesAskedFor) {
  const auto one = [](std::int64_t bytes, double predicted_s, double measured_s) {
    Comparison made;
    made.predicted.report.time_s = predicted_s;
    made.measured.report.executed.emplace().median_time_s = measured_s;
    made.measured.report.message_bytes = bytes;
    return made;
  };
  const Comparisons all{{one(10, 2, 1), one(20, 0.9, 1), one(30, 1.3, 1), one(40, 1, 1)}, {}};
  EXPECT_DOUBLE_EQ(*all.median_error(0), 0.2);    // of 1, 0.1, 0.3, 0
  EXPECT_DOUBLE_EQ(*all.median_error(20), 0.1);   // of 0.1, 0.3, 0
  EXPECT_DOUBLE_EQ(*all.median_error(30), 0.15);  // of 0.3, 0
  EXPECT_FALSE(all.median_error(50));
}

}  // namespace
}  // namespace espalier
