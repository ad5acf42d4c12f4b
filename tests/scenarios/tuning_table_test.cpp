// SPDX-License-Identifier: Apache-2.0
// What is wrong with a table: tests/bad/tuning. Here: what a right one means, and its use.
#include "scenarios/tuning_table.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/file.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/nccl_rows.h"
#include "scenarios/scenario.h"
#include "scenarios/tuner.h"
#include "sim/simulator.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

TuningTable sample() {
  TuningTable table;
  table.machine = "a \"name\" \\ with\ttab: [x]";
  table.gpus = {0, 3, 1};
  table.relays = {2, 7};
  table.ranks = 3;
  table.collective = Collective::broadcast;
  table.root = 2;
  table.profile = "ideal";
  table.links = LinkScope::fabric;
  table.in_place = true;
  table.rows = {{1000, "knomial:k=4", 0, 12.5e-6},
                {1 << 20, "chain", 0, 1e-3},
                {std::int64_t{3} << 29, "pipelined_chain", 1198373, 0.25}};
  return table;
}

TEST(TuningTable, IsReadAsItWasWritten) {
  const TuningTable table = sample();
  const std::string text = print_tuning(table);
  const TuningTable read = parse_tuning(text, "table.yaml");
  EXPECT_EQ(read.machine, table.machine);
  EXPECT_EQ(read.gpus, table.gpus);
  EXPECT_EQ(read.relays, table.relays);
  EXPECT_EQ(read.ranks, table.ranks);
  EXPECT_EQ(read.collective, table.collective);
  EXPECT_EQ(read.root, table.root);
  EXPECT_EQ(read.profile, table.profile);
  EXPECT_EQ(read.links, table.links);
  EXPECT_EQ(read.in_place, table.in_place);
  ASSERT_EQ(read.rows.size(), table.rows.size());
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    EXPECT_EQ(read.rows[i].up_to_bytes, table.rows[i].up_to_bytes);
    EXPECT_EQ(read.rows[i].algorithm, table.rows[i].algorithm);
    EXPECT_EQ(read.rows[i].chunk_bytes, table.rows[i].chunk_bytes);
    EXPECT_NEAR(read.rows[i].time_s / table.rows[i].time_s, 1, 1e-5);
  }
  EXPECT_EQ(print_tuning(read), text);
}

TEST(TuningTable, SizesReadWellWhereTheyCan) {
  const std::string text = print_tuning(sample());
  EXPECT_NE(text.find("{up_to: 1000, algorithm: \"knomial:k=4\", chunk: 0, time_us: 12.5}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("up_to: 1MiB"), std::string::npos);
  EXPECT_NE(text.find("up_to: 1536MiB, algorithm: \"pipelined_chain\", chunk: 1198373"),
            std::string::npos);
}

TEST(TuningTable, AMessageTakesTheFirstRowThatReachesIt) {
  const TuningTable table = sample();
  EXPECT_EQ(table.row_for(0).algorithm, "knomial:k=4");
  EXPECT_EQ(table.row_for(1000).algorithm, "knomial:k=4");
  EXPECT_EQ(table.row_for(1001).algorithm, "chain");
  EXPECT_EQ(table.row_for(1 << 20).algorithm, "chain");
  EXPECT_EQ(table.row_for((1 << 20) + 1).algorithm, "pipelined_chain");
  EXPECT_EQ(table.row_for(std::int64_t{1} << 40).algorithm, "pipelined_chain");
}

TEST(SplitAlgorithms, CommasSeparateAlgorithmsAndParameters) {
  const auto words = [](std::initializer_list<std::string> all) {
    return std::vector<std::string>(all);
  };
  EXPECT_EQ(split_algorithms("ring"), words({"ring"}));
  EXPECT_EQ(split_algorithms("ring,optimal"), words({"ring", "optimal"}));
  EXPECT_EQ(split_algorithms("ring, optimal"), words({"ring", "optimal"}));
  EXPECT_EQ(split_algorithms("knomial:k=4,x=1"), words({"knomial:k=4,x=1"}));
  EXPECT_EQ(split_algorithms("ring,knomial:k=4,x=1,auto"),
            words({"ring", "knomial:k=4,x=1", "auto"}));
  EXPECT_EQ(split_algorithms("knomial:k=4,optimal:fabric=1,all"),
            words({"knomial:k=4", "optimal:fabric=1", "all"}));
  // What is mistyped is told apart, too, as far as it can't be a parameter.
  EXPECT_EQ(split_algorithms("ring,optimall"), words({"ring", "optimall"}));
  EXPECT_EQ(split_algorithms("knomial:k=4,optimall"), words({"knomial:k=4,optimall"}));
  EXPECT_EQ(split_algorithms(""), words({""}));
}

TEST(SplitAlgorithms, ChoosersAndExchangesKeepTheirWords) {
  const auto words = [](std::initializer_list<std::string> all) {
    return std::vector<std::string>(all);
  };
  EXPECT_EQ(split_algorithms("auto:knomial:k=4,x=1|ring,chain"),
            words({"auto:knomial:k=4,x=1|ring", "chain"}));
  EXPECT_EQ(split_algorithms("tuned:a,ring.yaml"), words({"tuned:a,ring.yaml"}));
  EXPECT_EQ(split_algorithms("tuned:a,ring"), words({"tuned:a,ring"}));
  EXPECT_EQ(split_algorithms("ring,tuned:a,b"), words({"ring", "tuned:a,b"}));
  EXPECT_EQ(split_algorithms("knomial:k=2+chain,owners:direct+chain,ring"),
            words({"knomial:k=2+chain", "owners:direct+chain", "ring"}));
}

TEST(Chooser, Words) {
  EXPECT_TRUE(is_chooser("auto"));
  EXPECT_TRUE(is_chooser("tuned:x.yaml"));
  EXPECT_TRUE(is_chooser("auto:ring"));
  EXPECT_FALSE(is_auto("tuned:x.yaml"));
  EXPECT_FALSE(is_chooser("ring"));
  EXPECT_FALSE(is_chooser("automatic"));
  EXPECT_EQ(tuning_file("tuned:a:b.yaml"), "a:b.yaml");
  EXPECT_FALSE(tuning_file("auto").has_value());
  EXPECT_EQ(in_folder("tuned:../x.yaml", "studies/a"), "tuned:studies/x.yaml");
  EXPECT_EQ(in_folder("tuned:/x.yaml", "studies"), "tuned:/x.yaml");
  EXPECT_EQ(in_folder("ring", "studies"), "ring");
  EXPECT_EQ(in_folder("tuned:a+b.yaml", "studies"), "tuned:studies/a+b.yaml");
  EXPECT_EQ(in_folder("knomial+tuned:x.yaml", "studies"), "knomial+tuned:studies/x.yaml");
  EXPECT_EQ(in_folder("owners:tuned:x.yaml+tuned:/y", "studies"),
            "owners:tuned:studies/x.yaml+tuned:/y");
  EXPECT_EQ(in_folder("owners:direct+chain", "studies"), "owners:direct+chain");
  EXPECT_EQ(in_folder("./a.esp", "studies"), "studies/a.esp");
  EXPECT_EQ(in_folder("../a.esp", "studies"), "a.esp");
  EXPECT_EQ(in_folder("../a+b.esp", "studies"), "./a+b.esp");
  EXPECT_EQ(in_folder("../a", "studies"), "./a");
  EXPECT_EQ(in_folder("/a.esp", "studies"), "/a.esp");
  EXPECT_EQ(in_folder("auto:./a.esp|ring|tree/b", "studies"),
            "auto:studies/a.esp|ring|studies/tree/b");
  EXPECT_EQ(in_folder("owners:direct+./a+b.esp", "studies"), "owners:direct+studies/a+b.esp");
  EXPECT_EQ(as_seen_from("tables", "a.esp"), "../a.esp");
  EXPECT_EQ(as_seen_from("", "./a.esp"), "a.esp");
  EXPECT_EQ(as_seen_from("tables", "/a.esp"), "/a.esp");
  EXPECT_EQ(as_seen_from("tables", "ring"), "ring");
  EXPECT_THROW(check_algorithm("tuned:", Collective::allreduce), Error);
  EXPECT_THROW(check_algorithm("tuned:-", Collective::allreduce), Error);
  EXPECT_NO_THROW(check_algorithm("auto", Collective::allreduce));
  EXPECT_THROW(check_concrete_algorithm("auto", Collective::allreduce), Error);
}

TEST(Chooser, FilesInExchangesMayHaveAPlus) {
  const auto words = [](const std::string& spec) { return exchange_words(spec).algorithms; };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("./a.esp"), Words{"./a.esp"});
  EXPECT_EQ(words("./a+b.esp"), Words{"./a+b.esp"});
  EXPECT_EQ(words("./a+b.esp+chain"), (Words{"./a+b.esp", "chain"}));
  EXPECT_EQ(words("knomial+x/a+b+c.esp"), (Words{"knomial", "x/a+b+c.esp"}));
  EXPECT_EQ(words("a.esp+b.esp"), (Words{"a.esp", "b.esp"}));
  EXPECT_EQ(words("./a"), Words{"./a"});
  EXPECT_EQ(words("auto:./a.esp|ring+chain"), (Words{"auto:./a.esp|ring", "chain"}));
  EXPECT_EQ(to_string(exchange_words("owners:./a+b.esp+chain")), "owners:./a+b.esp+chain");
}

TEST(TuningTable, NamesProgramFilesBesideIt) {
  const std::string program = temp_file("beside.esp");
  write_file(program,
             "program mine\ncollective sendrecv\nranks 2\nunits 1\n"
             "0: r1.out[0] <- r0.in[0]\n1: r0.out[0] <- r1.in[0]\n");
  TuningTable table;
  table.machine = "full:n=2";
  table.ranks = 2;
  table.collective = Collective::sendrecv;
  table.rows = {{1000, "./beside.esp", 0, 1e-6}};
  EXPECT_EQ(parse_tuning(print_tuning(table), temp_file("table.yaml")).rows.front().algorithm,
            program);
  EXPECT_NE(
      error_of([&] { parse_tuning(print_tuning(table), "elsewhere/t.yaml"); }, ErrorKind::input)
          .find("there is no program file 'elsewhere/beside.esp'"),
      std::string::npos);
}

TEST(Chooser, ChoosesFromWhatIsNamed) {
  EXPECT_EQ(auto_candidates("auto:knomial:k=4|chain", Collective::broadcast),
            (std::vector<std::string>{"knomial:k=4", "chain"}));
  EXPECT_EQ(auto_candidates("auto", Collective::broadcast),
            tuning_candidates(Collective::broadcast));
  EXPECT_NO_THROW(check_algorithm("auto:knomial:k=4|chain", Collective::broadcast));
  const std::string said = error_of(
      [] { check_algorithm("auto:chian|auto|ring", Collective::broadcast); }, ErrorKind::usage);
  EXPECT_TRUE(
      said.starts_with("error: there is no algorithm 'chian'\n"
                       "  help: did you mean 'chain'?\n"
                       "error: auto is not an algorithm, but chooses one\n"))
      << said;
  EXPECT_THROW(check_algorithm("auto:", Collective::broadcast), Error);
}

/// A folder with the table of a line of four.
class TunedTest : public ::testing::Test {
 protected:
  TunedTest() : folder_(temp_file("tuned_test/")) {
    std::filesystem::create_directories(folder_);
    TuningTable table;
    table.machine = "line:n=4,gbps=10";
    table.ranks = 4;
    table.collective = Collective::broadcast;
    table.rows = {{1 << 10, "chain", 0, 1e-6}, {1 << 22, "pipelined_chain", 1 << 20, 1e-6}};
    write_file(folder_ + "table.yaml", print_tuning(table));
  }
  ~TunedTest() override { std::filesystem::remove_all(folder_); }

  Query query(const std::string& topology, std::int64_t size_bytes) {
    Query asked;
    asked.topology = topology;
    asked.collective = Collective::broadcast;
    asked.profile = "ideal";
    asked.algorithm = "tuned:" + folder_ + "table.yaml";
    asked.size_bytes = size_bytes;
    return asked;
  }

  std::string folder_;
  Simulator simulator_;
  Study study_{simulator_, &simulator_};
};

TEST_F(TunedTest, UsesTheRowAndItsChunk) {
  const Outcome small = study_.ask(query("line:n=4,gbps=10", 1000));
  EXPECT_EQ(small.chosen, "chain");
  // Three hops of 1000 bytes at 10e9 bytes/s.
  EXPECT_NEAR(small.report.time_s, 3 * 1e-7, 1e-15);
  const Outcome large = study_.ask(query("line:n=4,gbps=10", 1 << 22));
  EXPECT_EQ(large.chosen, "pipelined_chain");
  EXPECT_EQ(large.chunk_bytes, 1 << 20);
  // Four pieces over three hops.
  EXPECT_NEAR(large.report.time_s, (4 + 2) * (1 << 20) / 10e9, 1e-12);
  Query whole = query("line:n=4,gbps=10", 1 << 22);
  whole.chunk_bytes = 0;
  EXPECT_EQ(study_.ask(whole).chunk_bytes, 0) << "what is asked for goes before the table";
}

TEST_F(TunedTest, OtherRanksAreRefused) {
  try {
    study_.ask(query("line:n=5,gbps=10", 1000));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.diagnostics()[0].message,
              "the tuning table " + quote(folder_ + "table.yaml") + " is for 4 ranks, not for 5");
  }
}

TEST_F(TunedTest, OtherCollectivesAreRefused) {
  Query asked = query("line:n=4,gbps=10", 1000);
  asked.collective = Collective::allreduce;
  EXPECT_THROW(study_.ask(asked), Error);
}

TEST_F(TunedTest, ScenariosFindTablesBesideThem) {
  const Scenario scenario = parse_scenario(
      "schema: espalier.scenario/1\nname: n\ntitle: t\nblocks:\n  - title: b\n"
      "    topology: line:n=4,gbps=10\n    collective: broadcast\n    sizes: 1000\n"
      "    profile: ideal\n    algorithms: [tuned:table.yaml, auto]\n",
      folder_ + "scenario.yaml");
  const std::vector<Query>& table = std::get<CollectiveStudy>(scenario.blocks[0].study).tables[0];
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(study_.ask(table[0]).chosen, "chain");
  EXPECT_TRUE(study_.ask(table[1]).ran());
}

/// Rings under LL128 have a channel for every 5 KiB, 9 of 48 KiB; from 2.22 on a channel has 16 KiB
/// of traffic, which an allreduce has twice: 6.
TEST(TunerRows, HaveChannelsOfTheirVersion) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = "dgx-a100";
  query.profile = "nccl:ll128";
  query.algorithm = "nccl_rings";
  query.size_bytes = 48 << 10;
  const std::vector<Outcome> choices = {study.ask(query)};
  const auto has_row = [&](const char* version, const char* row) {
    return choices_csv(choices, study.machine(query), {true, version}).find(row) !=
           std::string::npos;
  };
  EXPECT_TRUE(has_row("2.21", "ring,ll128,9,1,8"));
  EXPECT_TRUE(has_row("2.27", "ring,ll128,6,1,8"));
}

}  // namespace
}  // namespace espalier
