// SPDX-License-Identifier: Apache-2.0
// Measured times of nccl-tests and rccl-tests, as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "formats/format.h"
#include "formats/measured_tables.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MeasuredTables read(const std::string& text) {
  const Format* format = recognise(text);
  if (format == nullptr || format->name != "nccl-tests") {
    throw Error(ErrorKind::input, "not known as output of nccl-tests");
  }
  return format->read_tables({text, "log.txt"});
}

MeasuredTable only(const std::string& text) {
  MeasuredTables read_ones = read(text);
  EXPECT_EQ(read_ones.tables.size(), 1U);
  return std::move(read_ones.tables.at(0));
}

std::vector<Collective> collectives(const MeasuredTable& table) {
  std::vector<Collective> fitting;
  for (const CollectiveFit& one : table.fits) fitting.push_back(one.collective);
  return fitting;
}

std::string errors(const std::string& text) {
  return error_of([&] { read(text); }, ErrorKind::input);
}

// 16 MiB in 100 us are 167.77 GB/s; two ranks of an allreduce have factor 1, four 1.5.
const char* const kToday =
    "# nccl-tests version 2.18.3 nccl-headers=22907 nccl-library=22907\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 4 minBytes 16777216 maxBytes 33554432 step: 2(factor) warmup iters: 1 "
    "iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid     11 on      alpha device  0 [0000:14:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid     11 on      alpha device  1 [0000:15:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  2 Group  0 Pid     12 on       beta device  0 [0000:14:00] NVIDIA H100 80GB HBM3\n"
    "#  Rank  3 Group  0 Pid     12 on       beta device  1 [0000:15:00] NVIDIA H100 80GB HBM3\n"
    "NCCL version 2.29.7+cuda13.0\n"
    "#                                         out-of-place                       in-place\n"
    "#   size    count  type redop root   time  algbw  busbw #wrong   time  algbw  busbw #wrong\n"
    "#    (B) (elements)                  (us) (GB/s) (GB/s)          (us) (GB/s) (GB/s)\n";
const char* const kRows =
    "  16777216  4194304 float  sum   -1  100.0 167.77 251.66      0  200.0  83.89 125.83      3\n"
    "  33554432  8388608 float  sum   -1  200.0 167.77 251.66    N/A  400.0  83.89 125.83    N/A\n";
const char* const kFooter = "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 188.745\n";

TEST(NcclTests, ReadsATableOfToday) {
  const MeasuredTable table = only(std::string(kToday) + kRows + kFooter);
  EXPECT_EQ(table.test, "all_reduce_perf");
  EXPECT_EQ(table.collective, Collective::allreduce);
  EXPECT_EQ(table.ranks, 4);
  EXPECT_EQ(table.hosts(), 2);
  EXPECT_EQ(table.listed[3].process, 12);
  EXPECT_EQ(table.ranks_per_process(), 2);
  EXPECT_EQ(table.listed[3].bus, "0000:15:00");
  EXPECT_EQ(table.listed[3].model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(table.library, "NCCL 2.29.7+cuda13.0");
  EXPECT_EQ(table.tests, "nccl-tests 2.18.3");
  EXPECT_EQ(table.gpus_per_thread, 4);
  EXPECT_EQ(table.warmup, 1);
  EXPECT_EQ(table.iterations, 20);
  EXPECT_EQ(table.out_of_bounds, 3);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].root, -1);
  EXPECT_DOUBLE_EQ(table.rows[0].out_of_place->time_s, 100e-6);
  EXPECT_EQ(table.rows[0].in_place->wrong, 3);
  EXPECT_FALSE(table.rows[1].in_place->wrong.has_value());
  EXPECT_EQ(table.rows[1].line, 15);
  EXPECT_EQ(table.wrong(), 3);
  EXPECT_THAT(table.notes, IsEmpty());
}

TEST(NcclTests, ReadsTheLibraryThatTestsAreLinkedTo) {
  std::string log = std::string(kToday) + kRows;
  const std::string said = "NCCL version 2.29.7+cuda13.0\n";
  log.erase(log.find(said), said.size());
  EXPECT_EQ(only(log).library, "NCCL 2.29.7");
  log.replace(log.find("nccl-library=22907"), 18, "nccl-library=2708");
  EXPECT_EQ(only(log).library, "NCCL 2.7.8");
  log.replace(log.find("nccl-library=2708"), 17, "nccl-library=x");
  EXPECT_EQ(only(log).library, "");
}

TEST(NcclTests, ComparesFailedChecksWithWrongValues) {
  const auto notes = [](const std::string& bounds) {
    return only(std::string(kToday) + kRows + "# Out of bounds values : " + bounds + "\n").notes;
  };
  EXPECT_THAT(notes("2 FAILED"), IsEmpty());  // two checks found three wrong values
  EXPECT_THAT(notes("12 FAILED"),
              ElementsAre("12 checks failed as the text says ('Out of bounds values'), but its "
                          "rows have 3 wrong values"));
  EXPECT_THAT(notes("0 OK"), ElementsAre(HasSubstr("no check failed as the text says")));
  const std::string uncounted =
      "  33554432  8388608 float  sum   -1  200.0 167.77 251.66    N/A  400.0  83.89 125.83    "
      "N/A\n";
  EXPECT_THAT(only(kToday + uncounted + "# Out of bounds values : 1 FAILED\n").notes,
              ElementsAre("1 check failed as the text says ('Out of bounds values'), but its rows "
                          "have no number of wrong values"));
}

TEST(NcclTests, SeesFiguresThatDisagree) {
  const std::string log = std::string(kToday) +
                          "  16777216  4194304 float  sum   -1  100.0 167.77 251.66 0\n"
                          "  16777216  4194304 float  sum   -1  100.0 160.00 251.66 0\n"
                          "  16777216  4194304 float  sum   -1  100.0 167.77 167.77 0\n"
                          "# Avg bus bandwidth    : 300\n";
  EXPECT_THAT(
      only(log).notes,
      ElementsAre("line 15, out of place: algbw is 160 GB/s, but 16MiB in 100 us are 167.77",
                  "line 16, out of place: busbw is 167.77 GB/s, but allreduce of 4 ranks has 1.5 "
                  "times bytes / time, 251.66",
                  "the average bus bandwidth is 300 GB/s in the text, but 223.70 of these rows: "
                  "some may be missing"));
}

/// A table that says allreduce, and has the factor of allgather.
TEST(NcclTests, SeesANameThatTheFiguresContradict) {
  const std::string log =
      std::string(kToday) + "  16777216  1048576 float none   -1  100.0 167.77 125.83 0\n";
  EXPECT_THAT(only(log).notes, Contains("the test is all_reduce_perf, but the figures are those of "
                                        "allgather or alltoall"));
}

TEST(NcclTests, TellsWhatIsNotSaidByTheFigures) {
  const MeasuredTable table = only(
      "[1,0]<stdout>:  16777216  4194304 float  sum   -1  100.0 167.77 293.60 0 100.0 167.77 "
      "293.60 0\n");
  EXPECT_EQ(table.collective, Collective::allreduce);
  EXPECT_EQ(table.ranks, 8);  // 1.75 = 2 * 7/8
  EXPECT_THAT(table.notes, Contains(HasSubstr("8 ranks by the figures")));
  EXPECT_THAT(table.notes, Contains("the test is not named: its figures are those of allreduce"));
  // Factor 1 is that of an allreduce of two, and of sendrecv with any number of ranks.
  const MeasuredTable pair = only("16777216 4194304 float sum -1 100.0 167.77 167.77 0\n");
  EXPECT_THAT(collectives(pair), ElementsAre(Collective::allreduce, Collective::sendrecv));
  EXPECT_EQ(pair.fits.at(0).ranks, 2);
  EXPECT_EQ(pair.ranks, 0);
  // 16777216 bytes are 8 times 524288 floats: one part per rank, and 7/8 fits.
  const MeasuredTable parts =
      only("node7: 16777216 524288 float none -1 100.0 167.77 146.80 0 100.0 167.77 146.80 N/A\n");
  EXPECT_FALSE(parts.collective.has_value());
  EXPECT_THAT(collectives(parts), ElementsAre(Collective::allgather, Collective::alltoall));
  EXPECT_EQ(parts.ranks, 8);
}

TEST(NcclTests, KnowsThatAListIsShortened) {
  const MeasuredTable table = only(
      "# Using devices\n"
      "#   Rank  0 Pid 1 on a device  0 [0x10] Tesla V100\n"
      "#   Rank  1 Pid 2 on a device  1 [0x11] Tesla V100\n...\n"
      "#  size count type redop time algbw busbw error time algbw busbw error\n"
      "  16777216  4194304 float  sum  100.0 167.77 293.60 5e-07 100.0 167.77 293.60 4e-07\n");
  EXPECT_EQ(table.listed.size(), 2U);
  EXPECT_EQ(table.ranks, 8);
  EXPECT_FALSE(table.rows[0].root.has_value());
  EXPECT_FALSE(table.rows[0].in_place->wrong.has_value());
  EXPECT_DOUBLE_EQ(*table.rows[0].in_place->difference, 4e-7);
  EXPECT_THAT(table.notes, Contains("the list of ranks is shortened"));
}

TEST(NcclTests, CountsRanksOfAProcessByNumberOrByWhatTheTestSays) {
  MeasuredTable table;
  EXPECT_EQ(table.ranks_per_process(), 0);  // nothing is said
  table.threads = 2;
  table.gpus_per_thread = 4;
  EXPECT_EQ(table.ranks_per_process(), 8);
  // Containers on two hosts, each with a process of the same number.
  table.listed = {{.rank = 0, .process = 33, .host = "a"}, {.rank = 1, .process = 33, .host = "b"}};
  EXPECT_EQ(table.ranks_per_process(), 1);
}

/// The first versions: milliseconds without a word, "res", no root.
TEST(NcclTests, ReadsTheOldestTables) {
  const MeasuredTable table = only(
      "#                                       out-of-place                 in-place\n"
      "#      bytes        N    type     op    time  algbw  busbw    res   time  algbw busbw  res\n"
      "    16777216  4194304   float    sum   1.000  16.78  16.78  0e+00  2.000   8.39  8.39 "
      "0e+00\n");
  EXPECT_DOUBLE_EQ(table.rows.at(0).out_of_place->time_s, 1e-3);
  EXPECT_THAT(table.notes, Contains("times are read as milliseconds: algbw is bytes / time then"));
  // Allgather, before June 2020: 16.78 GB/s times 3/4 in both columns.
  const MeasuredTable gathered = only(
      "#   size    count  type   time  algbw  busbw  error   time  algbw  busbw  error\n"
      "  16777216  1048576 float 1000.0 12.58 12.58 0e+00 1000.0 12.58 12.58 0e+00\n");
  EXPECT_THAT(gathered.notes, Contains(HasSubstr("algbw has (n-1)/n in it")));
  EXPECT_EQ(gathered.ranks, 4);
}

TEST(NcclTests, ReadsWhatALogHasAround) {
  const std::string log =
      std::string(kToday) +
      "alpha:11:11 [0] NCCL INFO 2 coll channels\n\n"
      "alpha:11:11 [0] NCCL WARN slow\n"
      "\x1b[32m  16777216  4194304 float  sum   -1  100.0 167.77 251.66      0  200.0  83.89 "
      "125.83  0\x1b[0m  2026-02-01 10:00:00\n"
      "  33554432  8388608 float  sum   -1alpha:11:12 [0] NCCL INFO AllReduce: opCount 2\n"
      "200.0 167.77 251.66    N/A\n" +
      kFooter + "### the same again\n" + kRows + kFooter;
  const MeasuredTables two = read(log);
  ASSERT_EQ(two.tables.size(), 2U);
  EXPECT_EQ(two.tables[0].rows.size(), 1U);
  EXPECT_THAT(two.tables[0].notes, Contains(HasSubstr("line 18: the row is torn")));
  EXPECT_EQ(two.tables[1].rows.size(), 2U);
  EXPECT_THAT(two.tables[1].listed, IsEmpty());
  EXPECT_THAT(two.tables[1].notes, Contains(HasSubstr("there is no heading")));
}

TEST(NcclTests, ReadsColumnsOfSingleIterations) {
  const MeasuredTable table = only(
      std::string(kToday).substr(0, std::string(kToday).find("#   size")) +
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
      "busbw #wrong i_min i_max i_p99 i_cv%\n"
      "16777216 4194304 float sum -1 100.0 167.77 251.66 0 90.0 120.0 119.0 3.0 "
      "200.0 83.89 125.83 0 190.0 220.0 219.0 2.0\n");
  EXPECT_DOUBLE_EQ(table.rows.at(0).in_place->time_s, 200e-6);
  EXPECT_THAT(table.notes, IsEmpty());
}

/// What NCCL splits into groups: the times are those of the first.
TEST(NcclTests, CountsTheRanksOfAGroup) {
  const MeasuredTable table = only(
      "# Collective test starting: all_reduce_perf\n# Using devices\n"
      "#  Rank  0 Group  0 Pid 1 on a device  0 [0x1] B200\n"
      "#  Rank  1 Group  1 Pid 1 on a device  1 [0x2] B200\n"
      "#  Rank  2 Group  0 Pid 1 on a device  2 [0x3] B200\n"
      "#  Rank  3 Group  1 Pid 1 on a device  3 [0x4] B200\n"
      "  16777216  4194304 float  sum   -1  100.0 167.77 167.77 0\n");
  EXPECT_EQ(table.ranks, 2);
  EXPECT_THAT(table.notes, Contains(HasSubstr("2 ranks are in other groups")));
}

TEST(NcclTests, RefusesWhatHasNoWholeRow) {
  EXPECT_EQ(errors(std::string(kToday)),
            "log.txt: error: the output of nccl-tests has no rows of results\n  help: expected "
            "rows such as '1048576  262144  float  sum  -1  41.2  25.4  44.5  0 ...'");
  EXPECT_THAT(errors(std::string(kToday) + "16777216 4194304 float sum[lib.cc:1] hello\n" +
                     "16777216 4194304 float sum -1 100.0 nan 251.66 0\n"),
              testing::AllOf(HasSubstr("log.txt:14: error: the row is torn"),
                             HasSubstr("log.txt:15: error: the row is torn: 'nan' stands"),
                             HasSubstr("NCCL_DEBUG_FILE")));
}

TEST(NcclTests, ReadsWhatOptionJWrites) {
  const MeasuredTable table = only(R"({"version": 2, "args": ["./build/all_reduce_perf", "-g", "4"],
    "env": [], "nccl_version": 22907, "config": {"nthreads": 1, "ngpus": 4, "minimum_bytes": 8,
    "maximum_bytes": 16, "step_factor": 2, "warmup_iters": 1, "iterations": 20, "graph": 0,
    "devices": [{"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0,
                 "device_hex": "0000:14:00", "device_info": "NVIDIA H100"}]},
    "results": [{"size": 16777216, "count": 4194304, "type": "float", "redop": "sum",
      "root": "    -1",
      "out_of_place": {"time": 100.0, "alg_bw": 167.772160, "bus_bw": 251.658240, "nwrong": 0.0},
      "in_place": {"cpu_time": 200.0, "alg_bw": 83.886080, "bus_bw": 125.829120, "nwrong": null}}],
    "out_of_bounds": {"count": 0, "okay": "true"},
    "average_bus_bandwidth": {"bandwidth": 188.743680, "okay": "unchecked"}})");
  EXPECT_EQ(table.collective, Collective::allreduce);
  EXPECT_EQ(table.ranks, 4);  // one process lists its first GPU only
  EXPECT_EQ(table.library, "NCCL 2.29.7");
  EXPECT_EQ(table.rows.at(0).root, -1);
  EXPECT_DOUBLE_EQ(table.rows[0].in_place->time_s, 200e-6);
  EXPECT_EQ(table.wrong(), 0);
  EXPECT_THAT(table.notes, IsEmpty());
}

/// 16 MiB in 100 us are 167.77216 GB/s. Eight ranks of an allreduce have factor 7/4.
MeasuredTable table_to_write() {
  MeasuredTable table;
  table.collective = Collective::allreduce;
  table.threads = table.gpus_per_thread = table.aggregated = 1;
  table.warmup = 5;
  table.iterations = 20;
  table.graph = 0;
  table.min_bytes = 16 << 20;
  table.max_bytes = 32 << 20;
  table.step = "2(factor)";
  table.average_busbw_gbps = 220.20096;  // (293.60128 + 146.80064) / 2
  table.out_of_bounds = 3;
  for (int i = 0; i < 8; ++i) {
    table.listed.push_back(
        {.rank = i, .host = i < 4 ? "alpha" : "beta", .device = i % 4, .bus = "", .model = "h100"});
  }
  for (const std::int64_t bytes : {16 << 20, 32 << 20}) {
    MeasuredRow& row = table.rows.emplace_back();
    row.bytes = bytes;
    row.count = bytes / 4;
    row.type = "float";
    row.redop = "sum";
    row.root = -1;
    const double time_s = static_cast<double>(bytes) / 167.77216e9;
    row.out_of_place = {time_s, 167.77216, 293.60128, 0};
    row.in_place = {2 * time_s, 83.88608, 146.80064, bytes > 16 << 20 ? 3 : 0};
  }
  return table;
}

std::string written(const MeasuredTable& table) {
  return nccl_tests_json(
      table, {{"espalier sim"}, "ring", "2026-01-31 12:00:00", "2026-01-31 12:00:01", 4711, true});
}

TEST(NcclTests, WritesJsonThatItReads) {
  const MeasuredTable table = table_to_write();
  const MeasuredTable back = only(written(table));
  EXPECT_EQ(back.test, "all_reduce_perf");
  EXPECT_EQ(back.collective, Collective::allreduce);
  EXPECT_EQ(back.ranks, 8);
  EXPECT_EQ(back.hosts(), 2);
  EXPECT_EQ(back.listed[5].device, 1);
  EXPECT_EQ(back.step, "2(factor)");
  EXPECT_EQ(back.warmup, 5);
  EXPECT_EQ(back.iterations, 20);
  EXPECT_EQ(back.average_busbw_gbps, 220.20096);
  EXPECT_EQ(back.out_of_bounds, 3);
  EXPECT_THAT(back.notes, IsEmpty());
  ASSERT_EQ(back.rows.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.rows[i].bytes, table.rows[i].bytes);
    EXPECT_EQ(back.rows[i].count, table.rows[i].count);
    EXPECT_EQ(back.rows[i].root, -1);
    // Half of the sixth decimal of a microsecond.
    EXPECT_NEAR(back.rows[i].out_of_place->time_s, table.rows[i].out_of_place->time_s, 0.5e-12);
    EXPECT_EQ(back.rows[i].out_of_place->busbw_gbps, 293.60128);
  }
  EXPECT_EQ(back.rows[1].in_place->algbw_gbps, 83.88608);
  EXPECT_EQ(back.rows[1].in_place->wrong, 3);
}

/// The keys of its src/util.cu, in that order.
TEST(NcclTests, WritesTheKeysOfNcclTests) {
  const auto json = nlohmann::ordered_json::parse(written(table_to_write()));
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::string all;
    for (const auto& item : object.items()) all += item.key() + " ";
    return all;
  };
  EXPECT_EQ(keys(json),
            "version start_time args env nccl_version config results out_of_bounds "
            "average_bus_bandwidth errors end_time ");
  EXPECT_EQ(keys(json["config"]),
            "nthreads ngpus minimum_bytes maximum_bytes step_factor warmup_iters iterations "
            "aggregated_iterations validation graph blocking_collectives per_iter_timing "
            "parallel_init devices ");
  EXPECT_EQ(keys(json["config"]["devices"][0]),
            "rank group pid hostname device device_hex device_info ");
  const auto& result = json["results"][1];
  EXPECT_EQ(keys(result),
            "size count type redop root out_of_place in_place actual_iterations "
            "experiment_name ");
  EXPECT_EQ(keys(result["in_place"]), "time alg_bw bus_bw nwrong ");
  EXPECT_EQ(result["root"], "    -1");
  EXPECT_EQ(json["config"]["parallel_init"], "false");
  EXPECT_EQ(json["out_of_bounds"]["okay"], "false");
}

TEST(NcclTests, ReadsRecordsOfRcclTestsAndOurOwnReports) {
  const MeasuredTable rccl = only(R"([
{"numCycle":0, "name":"AllReduce", "nodes":1, "ranks":4, "ranksPerNode":4, "gpusPerRank":1,
 "size":16777216, "type":"float", "redop":"sum", "inPlace":0,
 "time":100.0, "algBw":167.772160, "busBw":251.658240, "wrong":"0"},
{"numCycle":0, "name":"AllReduce", "nodes":1, "ranks":4, "ranksPerNode":4, "gpusPerRank":1,
 "size":16777216, "type":"float", "redop":"sum", "inPlace":1,
 "time":200.0, "algBw":83.886080, "busBw":125.829120, "wrong":"N/A"}
])");
  EXPECT_EQ(rccl.collective, Collective::allreduce);
  ASSERT_EQ(rccl.rows.size(), 1U);
  EXPECT_EQ(rccl.rows[0].out_of_place->wrong, 0);
  EXPECT_FALSE(rccl.rows[0].in_place->wrong.has_value());
  EXPECT_THAT(rccl.notes, IsEmpty());
  const MeasuredTable own = only(R"({"schema": "espalier.report/1", "topology": "dgx1-v100",
    "collective": "allreduce", "algorithm": "ring", "ranks": 4, "in_place": true,
    "size_bytes": 16777216, "backend": "sim", "time_s": 0.0001, "algbw_gbps": 167.77216,
    "busbw_gbps": 251.65824, "wrong": null})");
  EXPECT_EQ(own.test, "ring on dgx1-v100 (sim)");
  EXPECT_DOUBLE_EQ(own.rows.at(0).in_place->time_s, 1e-4);
  EXPECT_THAT(own.notes, IsEmpty());
}

TEST(NcclTests, ReadsOurOwnResultsAndNotWhatWasSkipped) {
  const MeasuredTable reports = only(R"({"schema": "espalier.report/2", "results": [
    {"kind": "report", "topology": "dgx1-v100", "collective": "allreduce", "algorithm": "ring",
     "ranks": 4, "in_place": false, "size_bytes": 16777216, "backend": "sim", "time_s": 0.0001,
     "algbw_gbps": 167.77216, "busbw_gbps": 251.65824, "wrong": null},
    {"kind": "skipped", "algorithm": "chain"}]})");
  ASSERT_EQ(reports.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(reports.rows[0].out_of_place->time_s, 1e-4);
  const MeasuredTable compared = only(R"({"schema": "espalier.compare/2", "results": [
    {"kind": "comparison", "collective": "allreduce", "algorithm": "ring", "ranks": 4,
     "size_bytes": 1024, "measured_s": 2e-5, "predicted_s": 1e-5, "wrong": 0}]})");
  ASSERT_EQ(compared.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(compared.rows[0].out_of_place->time_s, 2e-5);
  EXPECT_EQ(errors(R"({"schema": "espalier.report/2", "results": [7]})"),
            "log.txt: error: row 0 is no object");
}

TEST(NcclTests, SaysWhatIsWrongInJson) {
  EXPECT_EQ(errors(R"({"results": [{"size": -1, "count": 2.5,
      "out_of_place": {"time": "nan", "bus_bw": 1}}, 7]})"),
            "log.txt: error: result 0: 'size' is -1, but must be within 0 and 1125899906842624\n"
            "log.txt: error: result 0: 'count' must be a whole number\n"
            "log.txt: error: result 0, 'out_of_place': 'time' must be a number\n"
            "log.txt: error: result 0, 'out_of_place': 'alg_bw' is missing\n"
            "log.txt: error: result 1 is no object");
  EXPECT_THAT(errors("{\"results\": [\n{\"out_of_place\": 1,\n]}"),
              HasSubstr("log.txt:3:1: error: this is no JSON"));
  EXPECT_THAT(errors("{\"out_of_place\": 1, \"results\": [], \"results\": []}"),
              HasSubstr("the key 'results' is given twice"));
}

TEST(NcclTests, Describes) {
  EXPECT_EQ(describe(read(std::string(kToday) + kRows + kFooter)),
            "all_reduce_perf (allreduce): 4 ranks on 2 hosts, NVIDIA H100 80GB HBM3; nccl-tests "
            "2.18.3; NCCL 2.29.7+cuda13.0; 20 iterations\n"
            "2 rows of 16MiB to 32MiB\n"
            "                            out of place                       in place\n"
            "      size        time     busbw     wrong         time     busbw     wrong\n"
            "     16MiB      100 us    251.66         0       200 us    125.83         3\n"
            "     32MiB      200 us    251.66         -       400 us    125.83         -\n"
            "3 values are wrong\n");
}

using Json = nlohmann::json;

/// [time, algbw, busbw, wrong] of the expectation, or null.
void expect_half(const std::optional<MeasuredTime>& half, const Json& expected) {
  ASSERT_EQ(half.has_value(), !expected.is_null());
  if (!half) return;
  EXPECT_NEAR(half->time_s * 1e6, expected[0].get<double>(), 1e-9 * expected[0].get<double>());
  EXPECT_EQ(half->algbw_gbps, expected[1].get<double>());
  EXPECT_EQ(half->busbw_gbps, expected[2].get<double>());
  const std::optional<double> last = half->wrong ? half->wrong : half->difference;
  ASSERT_EQ(last.has_value(), !expected[3].is_null());
  if (last) {
    EXPECT_EQ(*last, expected[3].get<double>());
  }
}

void expect_row(const MeasuredRow& row, const Json& expected) {
  EXPECT_EQ(row.bytes, expected["size"].get<std::int64_t>());
  EXPECT_EQ(row.count, expected["count"].get<std::int64_t>());
  EXPECT_EQ(row.type, expected["type"].get<std::string>());
  EXPECT_EQ(row.redop, expected["op"].is_null() ? "" : expected["op"].get<std::string>());
  ASSERT_EQ(row.root.has_value(), !expected["root"].is_null());
  if (row.root) {
    EXPECT_EQ(*row.root, expected["root"].get<int>());
  }
  expect_half(row.out_of_place, expected["out"]);
  expect_half(row.in_place, expected["inplace"]);
}

void expect_launch(const MeasuredTable& table, const Json& expected) {
  EXPECT_EQ(table.test, expected["test"].is_null() ? "" : expected["test"].get<std::string>());
  EXPECT_EQ(table.hosts(), expected["hosts"].get<int>());
  for (std::size_t i = 0; i < expected["ranks"].size(); ++i) {
    const Json& rank = expected["ranks"][i];
    ASSERT_LT(i, table.listed.size());
    EXPECT_EQ(table.listed[i].rank, rank["rank"].get<int>());
    EXPECT_EQ(table.listed[i].device, rank["device"].get<int>());
    EXPECT_EQ(table.listed[i].host, rank["host"].get<std::string>());
    EXPECT_EQ(table.listed[i].bus, rank["bus"].get<std::string>());
    EXPECT_EQ(table.listed[i].model, rank["name"].get<std::string>());
  }
  const Json& header = expected["header"];
  if (header.is_null()) return;
  EXPECT_EQ(table.threads, header["threads"].get<int>());
  EXPECT_EQ(table.gpus_per_thread, header["gpus"].get<int>());
  EXPECT_EQ(table.min_bytes, header["min_bytes"].get<std::int64_t>());
  EXPECT_EQ(table.max_bytes, header["max_bytes"].get<std::int64_t>());
  EXPECT_EQ(table.step, header["step"].get<std::string>());
}

/// `factor_fits` has groups of collectives: "broadcast, reduce or sendrecv".
void expect_collectives(const MeasuredTable& table, const Json& expected) {
  if (!expected["nranks"].is_null()) {
    EXPECT_EQ(table.listed.size(), expected["nranks"].get<std::size_t>());
  }
  const Json& groups = expected["factor_fits"];
  if (groups.is_null()) return;
  if (groups.empty()) {  // the figures are not those of the ranks that are listed
    EXPECT_NE(static_cast<std::size_t>(table.ranks), table.listed.size());
    EXPECT_FALSE(table.notes.empty());
    return;
  }
  EXPECT_EQ(table.ranks, expected["nranks"].get<int>());
  EXPECT_FALSE(table.fits.empty());
  std::string all;
  for (const Json& group : groups) all += group.get<std::string>() + " ";
  for (const Collective one : collectives(table)) EXPECT_THAT(all, HasSubstr(to_string(one)));
  if (table.collective) {
    EXPECT_THAT(collectives(table), Contains(*table.collective));
  }
}

std::size_t torn_rows(const MeasuredTable& table) {
  return static_cast<std::size_t>(std::ranges::count_if(table.notes, [](const std::string& note) {
    return note.find("the row is torn") != std::string::npos;
  }));
}

/// One run of the expectation is one table or more: rows behind the average are another run, which
/// the expectation does not see where nothing else introduces it.
void expect_run(const std::vector<MeasuredTable>& tables, std::size_t& next, const Json& expected) {
  const Json& rows = expected["rows"];
  std::size_t row = 0, torn = 0;
  double wrong = 0;
  const std::size_t first = next;
  do {
    ASSERT_LT(next, tables.size());
    const MeasuredTable& table = tables[next++];
    torn += torn_rows(table);
    wrong += table.wrong().value_or(0);
    for (const MeasuredRow& one : table.rows) {
      ASSERT_LT(row, rows.size());
      SCOPED_TRACE(one.line);
      expect_row(one, rows[row++]);
    }
  } while (row < rows.size());
  const MeasuredTable& last = tables[next - 1];
  EXPECT_EQ(torn, expected["bad_lines"].get<std::size_t>());
  EXPECT_EQ(wrong, expected["wrong"].get<double>());
  EXPECT_EQ(last.average_busbw_gbps, expected["avg_busbw"].get<double>());
  if (!expected["out_of_bounds"].is_null()) {
    EXPECT_EQ(last.out_of_bounds, expected["out_of_bounds"]["count"].get<std::int64_t>());
  }
  if (next - first > 1) return;
  expect_launch(last, expected);
  expect_collectives(last, expected);
}

TEST(NcclTests, PublicLogsAreReadAsExpected) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::filesystem::path folder(corpus);
  int read_ones = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "nccl_tests_logs")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const Json expected =
        Json::parse(read_file((folder / "expected/nccl_tests_logs" / (name + ".json")).string()));
    const std::string text = read_file(entry.path().string());
    if (expected.contains("error")) {  // no result rows: each says why it is none
      std::size_t bad = 0;
      for (const Json& run : expected["run"]) bad += run["bad_lines"].get<std::size_t>();
      const std::string said = errors(text);
      std::size_t found = 0;
      for (std::size_t at = 0; (at = said.find("the row is torn", at)) != std::string::npos; ++at)
        ++found;
      EXPECT_EQ(found, bad);
      continue;
    }
    const MeasuredTables measured = read(text);
    std::size_t next = 0;
    for (const Json& run : expected["run"]) expect_run(measured.tables, next, run);
    EXPECT_EQ(next, measured.tables.size());
    for (const Json& version : expected["nccl_versions"]) {
      EXPECT_THAT(measured.tables[0].library, HasSubstr(version.get<std::string>()));
    }
    for (const Json& version : expected["nccl_tests_versions"]) {
      EXPECT_EQ(measured.tables[0].tests, "nccl-tests " + version.get<std::string>());
    }
    ++read_ones;
  }
  EXPECT_GT(read_ones, 3);
}

}  // namespace
}  // namespace espalier
