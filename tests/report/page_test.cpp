// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "cli/app.h"
#include "core/error.h"
#include "scenarios/asked_again.h"
#include "sim/simulator.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

std::string page_of(std::vector<std::string> words) {
  words.insert(words.end(), {"--html", "-"});
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(run_app(words, out, err), 0) << err.str();
  return out.str();
}

TEST(Page, NeedsNothingElseAndForbidsIt) {
  const std::string html = page_of({"sim", "--topology", "ring:n=3", "--algorithm", "ring"});
  EXPECT_NE(html.find("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"),
            std::string::npos);
  for (const char* word : {"<link rel=\"stylesheet", " src=", "@import", "url("}) {
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  }
}

TEST(Page, IsTheSameEveryTime) {
  const std::vector<std::string> words = {"sim",  "--topology", "dgx1-v100", "--algorithm",
                                          "ring", "--size",     "1MiB"};
  EXPECT_EQ(page_of(words), page_of(words));
}

TEST(Page, SaysTheVerdictBeforeTheData) {
  const std::string html = page_of({"sim", "--topology", "ring:n=3", "--algorithm", "ring"});
  EXPECT_LT(html.find("<p id=\"verdict\">ring moves 1 GiB in"), html.find("id=\"data\""));
}

TEST(Page, NamesAreNoMarkup) {
  Page page;
  page.title = "</title><script>alert(1)</script>";
  page.verb = "\"><img src=x>";
  const std::string html = page_html(page);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
}

/// What a page shows of a ring over four GPUs.
Json ring_of_four(const PageDetail& detail) {
  Query query;
  query.topology = "ring:n=4";
  query.algorithm = "ring";
  query.size_bytes = 1 << 20;
  query.run.timeline = true;
  Simulator simulator;
  Study study(simulator, &simulator);
  Page page;
  PagedRun run;
  run.outcome = study.ask(query);
  run.machine = &study.machine(query);
  page.runs.push_back(std::move(run));
  return Json::parse(page_json(page, detail));
}

TEST(Page, ShowsALibraryBesideWhatWasMeasured) {
  const auto executed = [](const char* algorithm, double time_s) {
    Outcome outcome;
    outcome.query.algorithm = algorithm;
    outcome.ranks = 4;
    outcome.report.message_bytes = 1 << 20;
    outcome.report.executed.emplace().median_time_s = time_s;
    return outcome;
  };
  Page page;
  page.measured.push_back({executed("ring", 2e-3), ""});
  page.measured.back().measured_speedup = 1.5;
  page.measured.push_back({executed("nccl", 3e-3), ""});
  const Json json = Json::parse(page_json(page));
  const Json& curves = json["charts"][0]["curves"];
  ASSERT_EQ(curves.size(), 2U);
  for (const Json& curve : curves) {
    const bool is_nccl = curve["name"] == "nccl, measured";
    const Json& point = curve["points"][0];
    EXPECT_EQ(curve["kind"], "measured");
    EXPECT_EQ(point["time_us"], is_nccl ? 3000 : 2000);
    EXPECT_EQ(point.contains("speedup"), !is_nccl);
  }
  const Json& fact = json["verdict"]["facts"].back();
  EXPECT_EQ(fact["label"], "measured speed-up");
  EXPECT_EQ(fact["value"], "1.5x");
  EXPECT_EQ(fact["detail"], "over NCCL, of ring with 1 MiB");
}

TEST(Page, HasAsMuchDetailAsAskedFor) {
  const Json all = ring_of_four({});
  EXPECT_EQ(all["runs"][0]["bins"], 1000);
  EXPECT_EQ(all["runs"][0]["channels"].size(), 4U);
  const std::size_t ops = all["runs"][0]["ops"]["id"].size();
  EXPECT_EQ(ops, all["runs"][0]["ops_in_all"]);
  EXPECT_EQ(all["runs"][0]["channels"][0]["load"].get<std::string>().size(), 2000U);

  const Json some = ring_of_four({.bins = 10, .ops = 5, .links = 3});
  EXPECT_EQ(some["runs"][0]["channels"].size(), 3U);
  EXPECT_EQ(some["runs"][0]["ops"]["id"].size(), 5U);
  EXPECT_EQ(some["runs"][0]["ops_in_all"], ops);
  EXPECT_EQ(some["runs"][0]["channels"][0]["load"].get<std::string>().size(), 20U);
}

TEST(Page, TheProofOfALibrarysBoundIsDrawnToo) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = "dgx-a100:nodes=2";
  query.algorithm = "nccl";  // under a profile and a protocol of its own, with other rates
  query.size_bytes = 1 << 20;
  const Outcome outcome = study.ask(query);
  ASSERT_EQ(outcome.profile, "nccl");
  const auto proof = proof_of_answer(study, outcome);
  ASSERT_TRUE(proof);
  EXPECT_FALSE(proof->parts.empty());
}

/// The answer to a question, and the proof of its bound as a page has it.
Json proof_on_page(const Query& query) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query asked = query;
  asked.run.timeline = true;
  Page page;
  PagedRun run;
  run.outcome = study.ask(asked);
  run.machine = &study.machine(asked);
  run.proof = proof_of_answer(study, run.outcome);
  page.runs.push_back(std::move(run));
  return Json::parse(page_json(page));
}

TEST(Page, LinksThatAProofCountsAddUpToItsCertificate) {
  struct Question {
    const char* topology;
    Collective collective;
    std::vector<int> gpus;
  };
  const std::vector<Question> questions = {{"dgx-h100:nodes=2", Collective::allreduce, {}},
                                           {"dgx-h100:nodes=8", Collective::allreduce, {}},
                                           {"gb200-nvl72", Collective::broadcast, {}},
                                           {"dgx1-v100", Collective::broadcast, {0, 1, 2, 3}}};
  for (const auto& [topology, collective, gpus] : questions) {
    Query query;
    query.topology = topology;
    query.collective = collective;
    query.gpus = gpus;
    query.algorithm = "ring";
    query.size_bytes = 1 << 20;
    query.against_nccl = false;
    const Json json = proof_on_page(query);
    const Json& proof = json["runs"][0]["proof"];
    ASSERT_NE(proof["kind"], "lp") << topology;
    double sum = 0;
    std::set<int> nodes_of_ranks;
    for (const Json& rank : json["runs"][0]["ranks"]) nodes_of_ranks.insert(rank.get<int>());
    for (const Json& one : proof["counted"]) {
      sum += one["gbps"].get<double>();
      for (const Json& number : one["on"]) {
        const Json& link = json["machines"][0]["links"][number.get<std::size_t>()];
        for (const char* end : {"a", "b"}) {
          const int node = link[end].get<int>();
          const Json& drawn_node = json["machines"][0]["nodes"][static_cast<std::size_t>(node)];
          // Idle GPUs are on neither side.
          if (drawn_node["kind"] != "gpu") continue;
          EXPECT_TRUE(nodes_of_ranks.contains(node)) << topology;
        }
      }
    }
    const std::string certificate = proof["certificate"].get<std::string>();
    std::smatch stated;
    ASSERT_TRUE(std::regex_search(certificate, stated, std::regex("carry ([0-9.e+]+) GB/s")));
    const double stated_gbps = std::stod(stated[1]);
    EXPECT_NEAR(sum, stated_gbps, 1e-4 * stated_gbps) << topology << ": " << certificate;
    EXPECT_FALSE(proof["counted"].front()["on"].empty()) << topology;
  }
}

TEST(Page, RowsOfManyPlacesAreTheCriticalAndTheBusiest) {
  Query query;
  query.topology = "full:n=300";
  query.algorithm = "direct";
  query.collective = Collective::alltoall;
  query.size_bytes = 1 << 20;
  query.chunk_bytes = 0;
  query.judge = query.against_nccl = query.may_fold = false;
  const Json run = proof_on_page(query)["runs"][0];
  EXPECT_EQ(run["rows"].size(), 256U);
  EXPECT_GT(run["rows_in_all"], 256);
  // What is drawn of the rows is as much of their ops as there is room for.
  EXPECT_EQ(run["ops"]["id"].size(),
            std::min<std::size_t>(5000, run["ops_in_rows"].get<std::size_t>()));
  EXPECT_LE(run["ops_in_rows"], run["ops_in_all"]);
  std::set<int> drawn_ops;
  for (const Json& id : run["ops"]["id"]) drawn_ops.insert(id.get<int>());
  for (const Json& id : run["critical"]["op"]) EXPECT_TRUE(drawn_ops.contains(id.get<int>()));
}

TEST(Page, LanesShowHowBusyTheyAreWhereOpsAreLeftOut) {
  const Json all = ring_of_four({});
  EXPECT_FALSE(all["runs"][0]["rows"][0].contains("busy"));
  const Json some = ring_of_four({.bins = 40, .ops = 5, .links = 3});
  for (const Json& row : some["runs"][0]["rows"]) {
    EXPECT_EQ(row["busy"].get<std::string>().size(), 20U);  // ten characters of two bytes
  }
}

TEST(Page, RoundsThatRepeatThemselvesAreShownByHowBusyLanesAre) {
  Query query;
  query.topology = "dgx2";
  query.algorithm = "nccl";
  query.collective = Collective::broadcast;
  query.size_bytes = std::int64_t{64} << 30;
  query.judge = false;
  const Json run = proof_on_page(query)["runs"][0];
  EXPECT_THAT(run["counted_in"].get<std::string>(), testing::MatchesRegex("[0-9]+ rounds like .*"));
  EXPECT_EQ(run["ops_in_rows"], run["ops_in_all"]);
  EXPECT_GT(run["ops_in_rows"].get<std::size_t>(), 20 * run["ops"]["id"].size());
  for (const Json& row : run["rows"]) EXPECT_TRUE(row.contains("busy"));
  // What is drawn is numbered as the critical path is, whose end is drawn.
  std::set<OpId> drawn;
  for (const Json& id : run["ops"]["id"]) drawn.insert(id.get<OpId>());
  EXPECT_TRUE(drawn.contains(run["critical"]["op"].back().get<OpId>()));
}

TEST(Page, TreesOfPlansAreFewerWhereThereIsNoRoom) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Planned plan;
  plan.query.topology = "dgx1-v100";
  plan.machine = &study.machine(plan.query);
  plan.forest.exact_algbw = "1";
  plan.forest.units = (std::int64_t{1} << 62) - 57;
  std::mt19937_64 random;  // digits that do not compress
  for (int tree = 0; tree < 20'000; ++tree) {
    plan.forest.trees.emplace_back().weight = static_cast<std::int64_t>(random() >> 2);
  }
  Page page;
  const std::size_t without = page_html(page).size();
  page.plans.assign(1, &plan);
  const std::size_t with_one = page_html(page).size() - without;
  page.plans.assign(8, &plan);
  ASSERT_GT(8 * with_one, kMostPageBytes);
  EXPECT_LE(page_html(page).size(), kMostPageBytes);
  const Json shown = Json::parse(page_json(page, {.trees = 100}))["plans"][0];
  EXPECT_EQ(shown["report"]["trees"].size(), 100U);
  EXPECT_EQ(shown["trees_in_all"], 20'000);
}

TEST(Page, IsRefusedWhereTheLeastIsTooMuch) {
  std::minstd_rand random;
  std::string noise;
  for (int i = 0; i < 2'400'000; ++i) noise += static_cast<char>('!' + random() % 90);
  Page page;
  page.skipped.emplace_back().reason = noise;
  try {
    page_html(page);
    FAIL() << "a page of more bytes than there may be";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pages have at most 2000000"), std::string::npos);
  }
}

TEST(Page, SaysWhatIsBusierThanLinks) {
  Page page;
  page.verb = "sim";
  Outcome outcome;
  outcome.verified = true;
  outcome.query.algorithm = "ring";
  outcome.report.simulated.emplace();
  outcome.report.simulated->links = {{"gpu0 block 0", 1, 1, 0.8, false, 1},
                                     {"gpu0->gpu1", 1, 1, 0.5, true, 1}};
  page.points.push_back({outcome, {}});
  const Json facts = Json::parse(page_json(page))["verdict"]["facts"];
  const auto value_of = [&](const std::string& label) {
    for (const Json& one : facts) {
      if (one["label"] == label) return one["value"].get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(value_of("binding links"), "gpu0->gpu1");
  EXPECT_EQ(value_of("busier than links"), "gpu0 block 0");
}

TEST(Page, SaysOnceHowBusyAMediumIs) {
  Page page;
  page.verb = "compare";
  Outcome outcome;
  outcome.query.algorithm = "ring";
  outcome.report.simulated.emplace();
  outcome.report.simulated->links = {{"shared memory", 1, 1, 0.975, false, 1},
                                     {"shared memory", 1, 1, 0.39, true, 1}};
  page.points.push_back({outcome, {}});
  std::vector<std::string> busy;
  const Json json = Json::parse(page_json(page));
  for (const Json& one : json["verdict"]["facts"]) {
    if (one["value"] == "shared memory") busy.push_back(one["detail"].get<std::string>());
  }
  EXPECT_THAT(busy, testing::ElementsAre("busy 97.5 % of the time"));
}

TEST(Page, LargeQuestionsStayBelowTheLimit) {
  // 32 640 links, more than are drawn, and 130 000 ops.
  const std::string html = page_of({"sim", "--topology", "full:n=256", "--algorithm", "all_pairs",
                                    "--size", "64MiB", "--chunk", "0", "--no-nccl"});
  EXPECT_LE(html.size(), kMostPageBytes);
  EXPECT_GT(html.size(), 200'000U);
}

}  // namespace
}  // namespace espalier
