// SPDX-License-Identifier: Apache-2.0
#include "topologies/expected_error.h"

#include <gtest/gtest.h>

#include "tests/error_of.h"
#include "topologies/load.h"

namespace espalier {
namespace {

const std::vector<ComparedError> kRows = {
    {.models = {"a100"}, .up_to_bytes = 32 * 1024, .relative = 0.07, .compared = "small"},
    {.models = {"a100", "a800"}, .above_bytes = 32 * 1024, .relative = 0.03, .compared = "large"},
    {.models = {"h100"}, .in_switch = true, .relative = 0.01, .compared = "NVLS"},
    {.models = {"other"}, .in_fabric = false, .relative = 0.2, .compared = "anything"}};

TEST(ExpectedErrors, AreThoseOfTheFirstRowThatFits) {
  // Up to 32 KiB is with 32 KiB.
  EXPECT_EQ(expected_error(kRows, {.model = "a100-sxm4", .bytes = 32 * 1024}).from, "small");
  const ExpectedError large = expected_error(kRows, {.model = "a800", .bytes = 32 * 1024 + 1});
  EXPECT_EQ(large.from, "large");
  EXPECT_EQ(large.relative, 0.03);
  EXPECT_FALSE(large.is_estimate);
  EXPECT_EQ(expected_error(kRows, {.model = "h100-sxm5", .in_switch = true}).from, "NVLS");
  // Neither over host links nor of another GPU was anything compared in the fabric.
  EXPECT_EQ(expected_error(kRows, {.model = "a100", .in_fabric = false, .bytes = 8}).from,
            "anything");
  EXPECT_EQ(expected_error(kRows, {.model = "h100", .bytes = 8}).from, "anything");
}

TEST(ExpectedErrors, AreOfTheCallsThatWereCompared) {
  const std::vector<ComparedError> rows = {{.models = {"a100"},
                                            .collectives = {"allreduce", "allgather"},
                                            .algorithms = {"nccl:algo=ring"},
                                            .forced = {"algo"},
                                            .launches = {LaunchMode::per_gpu},
                                            .relative = 0.05,
                                            .compared = "logs"}};
  const Compared compared{.model = "a100-sxm4",
                          .collective = "allgather",
                          .algorithm = "nccl:algo=ring",
                          .forced = {"algo"},
                          .ranks = 3};
  EXPECT_EQ(expected_error(rows, compared).from, "logs");
  std::vector<Compared> others(6, compared);
  others[5].launch = LaunchMode::graph;
  others[0].collective = "alltoall";
  others[1].algorithm = "nccl:algo=tree";
  others[2].algorithm = "ring";  // one of ours is none of the library's
  others[3].forced = {"algo", "channels"};
  others[4].ranks = 2;
  for (const Compared& other : others) {
    const ExpectedError error = expected_error(rows, other);
    EXPECT_TRUE(error.is_estimate);
    EXPECT_NE(error.from.find("but of other collectives, algorithms"), std::string::npos)
        << error.from;
  }
  // A row that names neither is about all of them, but only of three ranks or more.
  EXPECT_EQ(expected_error(kRows, {.model = "a800", .collective = "alltoall", .bytes = 1e6}).from,
            "large");
  EXPECT_TRUE(expected_error(kRows, {.model = "a800", .ranks = 2, .bytes = 1e6}).is_estimate);
  // Nor of more than a box of eight, unless it says so.
  EXPECT_EQ(expected_error(kRows, {.model = "a800", .ranks = 8, .bytes = 1e6}).from, "large");
  EXPECT_TRUE(expected_error(kRows, {.model = "a800", .ranks = 9, .bytes = 1e6}).is_estimate);
}

TEST(ExpectedErrors, AreEstimatesWhereNothingWasCompared) {
  const ExpectedError error = expected_error({}, {.model = "a100", .bytes = 8});
  EXPECT_TRUE(error.is_estimate);
  EXPECT_EQ(error.relative, kUncomparedError);
  EXPECT_EQ(error.from.substr(0, 10), "estimate: ");
}

std::string machine_with(const std::string& profiles) {
  return "schema: espalier.topology/1\nname: two\nnodes:\n"
         "  - {name: \"gpu[0-1]\", kind: gpu, model: a100-sxm4}\n"
         "links:\n  - {a: gpu0, b: gpu1, kind: nvlink3, gbps: 25}\nprofiles:\n" +
         profiles;
}

TEST(ExpectedErrors, OfChangedFiguresAreNotThoseOfTheBase) {
  EXPECT_FALSE(built_in_profiles().profiles.at("nccl").errors.empty());
  const Topology machine = parse_topology(
      machine_with("  nccl: {call_overhead_us: 5}\n  mine: {like: nccl}\n"
                   "  fitted: {like: nccl, errors: [{gpus: a100, above_kib: 1, percent: 4, "
                   "compared: \"our own log\"}]}\n"),
      "f");
  EXPECT_TRUE(machine.profiles.at("nccl").errors.empty());
  EXPECT_TRUE(machine.profiles.at("mine").errors.empty());
  ASSERT_EQ(machine.profiles.at("fitted").errors.size(), 1u);
  EXPECT_EQ(machine.profiles.at("fitted").errors[0].above_bytes, 1024);
  EXPECT_EQ(machine.profiles.at("fitted").errors[0].relative, 0.04);
  EXPECT_EQ(machine.profiles.at("kernel").errors, built_in_profiles().profiles.at("kernel").errors);
}

TEST(ExpectedErrors, MayBeStatedByBandsOfSizes) {
  const Topology machine = parse_topology(
      machine_with("  mine: {like: nccl, errors: [{gpus: a100, above_kib: 4, compared: x, percent: "
                   "{up to 32 KiB: 5, up to 16 MiB: 7, above: 3}}]}\n"),
      "f");
  const auto percent = [&](double kib) {
    const Compared what{.model = "a100-sxm4", .bytes = kib * 1024};
    const ExpectedError error = expected_error(machine.profiles.at("mine").errors, what);
    return error.is_estimate ? -1 : 100 * error.relative;
  };
  EXPECT_DOUBLE_EQ(percent(4), -1);  // nothing was compared up to here
  EXPECT_DOUBLE_EQ(percent(5), 5);
  EXPECT_DOUBLE_EQ(percent(32), 5);
  EXPECT_DOUBLE_EQ(percent(33), -1);  // of this band nothing is stated
  EXPECT_DOUBLE_EQ(percent(1024), -1);
  EXPECT_DOUBLE_EQ(percent(1025), 7);
  EXPECT_DOUBLE_EQ(percent(16384), 7);
  EXPECT_DOUBLE_EQ(percent(16385), 3);
  EXPECT_DOUBLE_EQ(percent(1e9), 3);
}

TEST(ExpectedErrors, OfABandAreMedians) {
  // 16 KiB: 1, 2 and 9 %, of either sign; 64 MiB: 3 and 5 %.
  const std::vector<BandDeviations> bands =
      by_band({{16384, -0.02}, {16384, 0.01}, {64 << 20, 0.03}, {16384, 0.09}, {64 << 20, -0.05}});
  ASSERT_EQ(bands.size(), 2u);
  EXPECT_EQ(bands[0].band->title, "up to 32 KiB");
  EXPECT_EQ(bands[0].times, 3u);
  EXPECT_DOUBLE_EQ(bands[0].median, 0.02);
  EXPECT_DOUBLE_EQ(bands[0].largest, 0.09);
  EXPECT_EQ(bands[1].band->title, "above");
  EXPECT_DOUBLE_EQ(bands[1].median, 0.04);
}

TEST(ExpectedErrors, AreWrittenWithTheMachine) {
  Topology machine = parse_topology(
      machine_with(
          "  kernel: {call_overhead_us: 5, errors: [{gpus: [a100, a800], in_switch: true, "
          "collectives: [reduce, scatter], algorithms: \"nccl:algo=tree\", forced: "
          "[algo, proto], min_ranks: 2, max_ranks: 64, links: all, up_to_kib: 64, percent: 4.5, "
          "compared: \"our: own\"}], "
          "launch: {single: [{since: \"2.8\", call_us: 2, block_us: 0.5}]}}\n"),
      "f");
  const Topology again = parse_topology(print_topology(machine), "printed");
  EXPECT_EQ(again.profiles.at("kernel").errors, machine.profiles.at("kernel").errors);
  const ComparedError& row = again.profiles.at("kernel").errors.at(0);
  EXPECT_EQ(row.collectives, (std::vector<std::string>{"reduce", "scatter"}));
  EXPECT_EQ(row.algorithms, std::vector<std::string>{"nccl:algo=tree"});
  EXPECT_EQ(row.forced, (std::vector<std::string>{"algo", "proto"}));
  EXPECT_EQ(row.min_ranks, 2);
  EXPECT_EQ(row.max_ranks, 64);
  EXPECT_EQ(again.profiles.at("kernel").launch, machine.profiles.at("kernel").launch);
}

TEST(ExpectedErrors, AllThatIsWrongWithThemIsSaid) {
  const std::string text = error_of(
      [&] {
        parse_topology(machine_with("  mine:\n    errors:\n      - {gpus: a100, percent: -3}\n"
                                    "      - {gpus: a100, percent: 3, compared: x, above_kib: 64, "
                                    "up_to_kib: 32, links: some}\n"
                                    "      - {gpus: a100, compared: x, up_to_kib: 32, "
                                    "percent: {above: 3, up to 1 TiB: 4}}\n"),
                       "f");
      },
      ErrorKind::input);
  EXPECT_NE(text.find("'percent'"), std::string::npos) << text;
  EXPECT_NE(text.find("compared"), std::string::npos) << text;
  EXPECT_NE(text.find("'above_kib' must be less than 'up_to_kib'"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown links 'some'"), std::string::npos) << text;
  EXPECT_NE(text.find("no messages 'above' between"), std::string::npos) << text;
  EXPECT_NE(text.find("'up to 1 TiB'"), std::string::npos) << text;
}

}  // namespace
}  // namespace espalier
