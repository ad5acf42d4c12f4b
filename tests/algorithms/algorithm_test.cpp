// SPDX-License-Identifier: Apache-2.0
#include "algorithms/algorithm.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

/// The diagnostics of the Error that parsing `spec` throws, rendered, one after the other.
std::vector<std::string> problems_of(const std::string& spec) {
  std::vector<std::string> problems;
  try {
    parse_algorithm(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    for (const Diagnostic& diagnostic : error.diagnostics()) problems.push_back(render(diagnostic));
  }
  return problems;
}

TEST(Registry, EveryAlgorithmIsDescribedAndFoundByName) {
  std::set<std::string> names;
  for (const Algorithm* algorithm : all_algorithms()) {
    SCOPED_TRACE(algorithm->name);
    EXPECT_TRUE(names.insert(algorithm->name).second);
    EXPECT_EQ(find_algorithm(algorithm->name), algorithm);
    EXPECT_FALSE(algorithm->summary.empty());
    EXPECT_FALSE(algorithm->constraints.empty());
    EXPECT_FALSE(algorithm->paper.empty());
    EXPECT_FALSE(algorithm->collectives.empty());
    EXPECT_NE(algorithm->build == nullptr, algorithm->plan == nullptr);
    EXPECT_EQ(algorithm->plan == nullptr, algorithm->write == nullptr);
    for (const AlgorithmParameter& parameter : algorithm->parameters) {
      EXPECT_LE(parameter.minimum, parameter.default_value);
      EXPECT_LE(parameter.default_value, parameter.maximum);
    }
  }
  EXPECT_EQ(find_algorithm("rings"), nullptr);
}

TEST(Registry, EveryCollectiveIsServed) {
  for (const CollectiveInfo& collective : all_collectives()) {
    int serving = 0;
    for (const Algorithm* algorithm : all_algorithms()) {
      serving +=
          std::count(algorithm->collectives.begin(), algorithm->collectives.end(), collective.id);
    }
    EXPECT_GE(serving, 1) << collective.name;
  }
}

TEST(ParseAlgorithm, ReadsNameAndParameters) {
  const AlgorithmChoice plain = parse_algorithm("ring");
  EXPECT_EQ(plain.algorithm->name, "ring");
  EXPECT_TRUE(plain.parameters.empty());
  EXPECT_EQ(plain.label, "ring");

  const AlgorithmChoice tuned = parse_algorithm("parameter_server:host=1,sharded=1");
  EXPECT_EQ(tuned.algorithm->name, "parameter_server");
  EXPECT_EQ(tuned.parameters, (std::map<std::string, std::int64_t>{{"host", 1}, {"sharded", 1}}));
  EXPECT_EQ(tuned.label, "parameter_server:host=1,sharded=1");
}

TEST(ParseAlgorithm, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(problems_of("knomail"),
            std::vector<std::string>{
                "error: there is no algorithm 'knomail'\n  help: did you mean 'knomial'?"});
}

/// NCCL spells values of NCCL_ALGO, NCCL_PROTO and NCCL_SYM_KERNEL so.
TEST(ParseAlgorithm, TakesTheSpellingOfALibrary) {
  const auto parameters = [](const char* spec) { return parse_algorithm(spec).parameters; };
  EXPECT_EQ(parameters("nccl:algo=NVLSTree"), parameters("nccl:algo=nvls_tree"));
  EXPECT_EQ(parameters("nccl:algo=CollnetDirect"), parameters("nccl:algo=collnet_direct"));
  EXPECT_EQ(parameters("nccl:algo=CollnetChain"), parameters("nccl:algo=collnet_chain"));
  EXPECT_EQ(parameters("nccl:proto=LL128,kernel=AGxLLMC_R"),
            parameters("nccl:proto=ll128,kernel=agxllmc_r"));
  EXPECT_EQ(spec_of(parse_algorithm("nccl:algo=NVLSTree")), "nccl:algo=nvls_tree");
}

TEST(ParseAlgorithm, EveryWrongParameterIsReported) {
  const std::string range =
      "\n  help: k=2: a whole number from 2 to 1024 (degree of the tree: each round reaches k "
      "times as many ranks)";
  EXPECT_EQ(problems_of("knomial:k=1,kk=3,k=4,k=5,k=x,k"),
            (std::vector<std::string>{
                "error: knomial: k cannot be '1'" + range,
                "error: knomial has no parameter 'kk'\n  help: did you mean 'k'?",
                "error: knomial: k is given twice\n  help: give it once",
                "error: knomial: k cannot be 'x'" + range,
                "error: knomial: k cannot be ''" + range,
            }));
  // What has no default shows none.
  EXPECT_EQ(problems_of("nccl:proto=foo,threads=-1"),
            (std::vector<std::string>{
                "error: nccl: proto cannot be 'foo'\n  help: proto: one of ll, ll128, simple (as "
                "NCCL_PROTO: ll, ll128 or simple; left out: NCCL's choice)",
                "error: nccl: threads cannot be '-1'\n  help: threads=0: a whole number from 0 to "
                "640 (as NCCL_NTHREADS; 0: NCCL's choice)"}));
  for (const char* wrong : {"nccl:version=3", "nccl:version=-1", "nccl:version=202100"}) {
    ASSERT_EQ(problems_of(wrong).size(), 1U) << wrong;
    EXPECT_NE(problems_of(wrong).at(0).find("help: version: one of"), std::string::npos);
  }
  EXPECT_EQ(problems_of("pipelined_chain:k=2"),
            std::vector<std::string>{
                "error: pipelined_chain has no parameter 'k'\n  help: it takes none"});
  EXPECT_EQ(problems_of("knomial:").size(), 1U);
  EXPECT_EQ(problems_of("knomial:k=99999999999999999999").size(), 1U);
}

TEST(Unsupported, SaysWhy) {
  using programs::request;
  EXPECT_EQ(unsupported(parse_algorithm("ring"), request(Collective::alltoall, 4)),
            "does not support alltoall");
  EXPECT_EQ(unsupported(parse_algorithm("halving_doubling"), request(Collective::allgather, 6)),
            "allgather needs a power of two as the number of ranks, not 6");
  EXPECT_EQ(unsupported(parse_algorithm("halving_doubling"), request(Collective::allgather, 8)),
            std::nullopt);
  EXPECT_EQ(unsupported(parse_algorithm("ring"), request(Collective::allreduce, 100'000)),
            "supports at most 2048 ranks; for more, its program would be too large");
  BuildRequest folded = request(Collective::allreduce, 400'000);
  folded.fold.groups = 100'000;
  folded.fold.each = 4;
  EXPECT_EQ(unsupported(parse_algorithm("ring"), folded),
            "supports at most 262144 ranks; for more, its program would be too large");
  BuildRequest no_host = request(Collective::broadcast, 3);
  no_host.hosts = 1;
  no_host.host_of_rank = {0, -1, 0};
  EXPECT_EQ(unsupported(parse_algorithm("host_staged_knomial"), no_host),
            "rank 1 cannot reach a host memory");
  no_host.collective = Collective::allreduce;
  EXPECT_EQ(unsupported(parse_algorithm("parameter_server:host=1"), no_host),
            "rank 1 cannot reach a host memory");
  EXPECT_EQ(unsupported(parse_algorithm("parameter_server"), no_host), std::nullopt);
}

}  // namespace
}  // namespace espalier
