// SPDX-License-Identifier: Apache-2.0
// Every program that is built without a machine is right: all rank counts, roots, parameters, in
// and out of place, whole and cut. Algorithms that need a machine refuse more than one rank; the
// conformance test and tests of their own give them one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "ir/chunk.h"
#include "ir/verify.h"
#include "tests/algorithms/machines.h"
#include "tests/algorithms/programs.h"
#include "tests/ir/built_again.h"

namespace espalier {
namespace {

using programs::request;
using programs::use_hosts;

/// The defaults; each parameter at its ends and near its default; all of them at their most.
std::vector<std::string> variants(const Algorithm& algorithm) {
  std::vector<std::string> specs = {algorithm.name};
  std::string all;
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    if (!parameter.words.empty()) {
      for (const AlgorithmParameter::Word& word : parameter.words) {
        specs.push_back(fmt::format("{}:{}={}", algorithm.name, parameter.name, word.name));
      }
      continue;
    }
    for (const std::int64_t value :
         {parameter.minimum, parameter.minimum + 1, std::int64_t{4}, parameter.maximum}) {
      if (value > parameter.maximum || value < parameter.minimum) continue;
      specs.push_back(fmt::format("{}:{}={}", algorithm.name, parameter.name, value));
    }
    all += fmt::format("{}{}={}", all.empty() ? ":" : ",", parameter.name, parameter.maximum);
  }
  if (algorithm.parameters.size() > 1) specs.push_back(algorithm.name + all);
  return specs;
}

std::vector<int> host_counts(const Algorithm& algorithm, int ranks) {
  if (!algorithm.uses_hosts) return {1};
  return {1, (ranks + 1) / 2, ranks};
}

std::vector<int> roots(Collective collective, int ranks) {
  if (!info(collective).rooted) return {0};
  return {0, ranks / 3, ranks - 1};
}

void expect_right(const Program& program, const std::string& what) {
  const Verification verification = verify(program);
  ASSERT_TRUE(verification.ok()) << what << "\n" << render(verification.problems.front());
  EXPECT_TRUE(verification.order_consistent) << what;
}

/// Whether there are no other dependencies than those of its data.
bool is_of_data(const Program& program) { return same_program(program, built_again(program)); }

class EveryProgram : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryProgram, IsRight) {
  const Algorithm& algorithm = *GetParam();
  for (const Collective collective : algorithm.collectives) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17}) {
      int served = 0;
      for (const std::string& spec : variants(algorithm)) {
        for (const int hosts : host_counts(algorithm, ranks)) {
          for (const int root : roots(collective, ranks)) {
            for (const bool in_place : {false, true}) {
              const AlgorithmChoice choice = parse_algorithm(spec);
              BuildRequest asked = request(collective, ranks, root, in_place);
              use_hosts(asked, hosts);
              if (unsupported(choice, asked)) continue;
              ++served;
              const std::string what =
                  fmt::format("{} {} of {} ranks, {} hosts, root {}{}", spec, to_string(collective),
                              ranks, hosts, root, in_place ? ", in place" : "");
              const Program program = build(choice, asked);
              expect_right(program, what);
              const Program cut = chunk(program, {2, 1});
              expect_right(cut, what + ", cut");
              EXPECT_TRUE(!is_of_data(program) || same_program(cut, built_again(cut))) << what;
              EXPECT_EQ(program.name, algorithm.name);
              EXPECT_EQ(program.contract.in_place, in_place);
            }
          }
        }
      }
      const bool power_of_two = (ranks & (ranks - 1)) == 0;
      const bool constrained =
          algorithm.name == "halving_doubling" && collective != Collective::allreduce;
      const bool machine_blind = !algorithm.needs_machine || ranks == 1;
      EXPECT_EQ(served > 0, machine_blind && (power_of_two || !constrained))
          << algorithm.name << " " << to_string(collective) << " " << ranks;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryProgram, testing::ValuesIn(all_algorithms()),
                         [](const auto& tested) { return tested.param->name; });

TEST(EveryProgram, OneRankOnlyKeepsItsOwn) {
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const Collective collective : algorithm->collectives) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}", algorithm->name, to_string(collective)));
        const Program program =
            programs::make(algorithm->name, request(collective, 1, 0, in_place));
        EXPECT_TRUE(programs::traffic(program).empty());
        EXPECT_EQ(program.ops.size(), in_place ? 0U : 1U);
      }
    }
  }
}

/// Algorithm::of_ranks_alone is said of those alone that do without the machine.
TEST(EveryProgram, OfRanksAloneIsTheSameOnEveryMachine) {
  int of_ranks = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (!algorithm->of_ranks_alone) continue;
    ++of_ranks;
    EXPECT_FALSE(algorithm->needs_machine || algorithm->uses_hosts || algorithm->uses_relays);
    for (const char* spec : {"dgx1-v100", "mist:nodes=2", "kesch:nodes=1", "dgx-a100"}) {
      const programs::Machine machine(spec, {}, LinkScope::all);
      for (const Collective collective : algorithm->collectives) {
        for (const std::string& variant : variants(*algorithm)) {
          const AlgorithmChoice choice = parse_algorithm(variant);
          const BuildRequest on_machine = machine.request(collective);
          if (unsupported(choice, on_machine)) continue;
          const Program alone = build(choice, request(collective, machine.ranks()));
          EXPECT_TRUE(same_program(build(choice, on_machine), alone))
              << variant << " " << to_string(collective) << " on " << spec;
          EXPECT_TRUE(on_machine.notes->empty()) << variant;
        }
      }
    }
  }
  EXPECT_GE(of_ranks, 10);
}

/// Algorithm::recipe: equal ones have the same program, on whatever machines, and nothing to tell.
TEST(EveryProgram, OfOneRecipeIsTheSame) {
  std::map<std::string, Program> known;
  int again = 0, without = 0;
  for (const char* spec :
       {"dgx1-v100", "dgx1-v100:nvlink2.gbps=20", "dgx1-v100:nvlink2.gbps=7", "dgx1-p100",
        "mist:nodes=2", "mist:nodes=2,ib_edr.gbps=6", "dgx-a100", "kesch:nodes=1"}) {
    const programs::Machine machine(spec, {}, LinkScope::all);
    for (const char* words : {"nccl", "nccl:algo=ring", "nccl:algo=ring,proto=ll", "nccl:algo=tree",
                              "nccl:algo=ring,version=2.12"}) {
      const AlgorithmChoice choice = parse_algorithm(words);
      for (const Collective collective : choice.algorithm->collectives) {
        for (const std::int64_t size :
             {std::int64_t{1000}, std::int64_t{1} << 20, std::int64_t{1} << 26}) {
          BuildRequest request = machine.request(collective);
          request.size_bytes = size;
          if (unsupported(choice, request)) continue;
          const auto text = recipe(choice, request);
          Program program = build(choice, request);
          if (!text) {
            ++without;
            continue;
          }
          EXPECT_TRUE(request.notes->empty());
          const auto [same, is_new] =
              known.emplace(fmt::format("{} {}: {}", to_string(collective), machine.ranks(), *text),
                            std::move(program));
          again += is_new ? 0 : 1;
          EXPECT_TRUE(is_new || same_program(same->second, build(choice, request)))
              << words << " " << to_string(collective) << " " << size << " on " << spec;
        }
      }
    }
  }
  EXPECT_GT(again, 50);
  EXPECT_GT(known.size(), 50U);
  EXPECT_GT(without, 50);
}

TEST(EveryProgram, HostsScatteredOverTheRanks) {
  // Ranks of one host apart from each other, and a host memory that no rank is near to.
  for (const char* spec : {"parameter_server:host=1", "parameter_server:host=1,sharded=1",
                           "host_staged_knomial", "host_staged_knomial:k=3"}) {
    const AlgorithmChoice choice = parse_algorithm(spec);
    const Collective collective = choice.algorithm->collectives[0];
    for (const int root : {0, 4}) {
      BuildRequest asked = request(collective, 7, info(collective).rooted ? root : 0);
      asked.hosts = 5;
      asked.host_of_rank = {2, 0, 2, 4, 1, 0, 2};
      expect_right(build(choice, asked), spec);
    }
  }
}

TEST(EveryProgram, LargeRankCounts) {
  for (const char* spec : {"ring", "double_binary_tree", "halving_doubling", "flat_two_stage"}) {
    expect_right(programs::make(spec, request(Collective::allreduce, 150, 0, true)), spec);
  }
  // More ranks than a place has lanes (65536): nothing may count one lane per rank.
  for (const Algorithm* algorithm : all_algorithms()) {
    if (algorithm->max_ranks < 70'000 || algorithm->needs_machine) continue;
    for (const Collective collective : algorithm->collectives) {
      expect_right(programs::make(algorithm->name, request(collective, 70'000, 0)),
                   algorithm->name + " " + std::string(to_string(collective)));
    }
  }
}

}  // namespace
}  // namespace espalier
