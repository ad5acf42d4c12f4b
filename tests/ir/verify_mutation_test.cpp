// SPDX-License-Identifier: Apache-2.0
// The verifier against the interpreter. Single faults are put into right programs; what the
// verifier says of each is compared with what happens when the program really runs, in many of the
// orders that its dependencies and lanes allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/ir/mutants.h"
#include "tests/ir/random_program.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

/// A random order that dependencies and lanes allow. \pre there is one.
std::vector<OpId> random_order(const Program& program, std::mt19937_64& random) {
  const std::size_t count = program.ops.size();
  std::vector<std::vector<OpId>> successors(count);
  std::vector<int> waiting(count, 0);
  std::map<std::pair<PlaceId, int>, OpId> last;
  for (OpId id = 0; id < count; ++id) {
    const auto wait_for = [&](OpId earlier) {
      successors[earlier].push_back(id);
      ++waiting[id];
    };
    const Op& op = program.ops[id];
    for (const OpId earlier : program.dependencies_of(op)) wait_for(earlier);
    const auto [entry, first] = last.try_emplace({op.at, op.lane}, id);
    if (!first) wait_for(std::exchange(entry->second, id));
  }
  // Each op gets a random urgency, so that some race far ahead; drawing evenly among the ready ones
  // would hardly ever leave an op behind for long.
  std::vector<std::uint64_t> urgency(count);
  for (std::uint64_t& value : urgency) value = random();
  std::set<std::pair<std::uint64_t, OpId>> ready;
  for (OpId id = 0; id < count; ++id) {
    if (waiting[id] == 0) ready.emplace(urgency[id], id);
  }
  std::vector<OpId> order;
  while (!ready.empty()) {
    const OpId id = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(id);
    for (const OpId next : successors[id]) {
      if (--waiting[next] == 0) ready.emplace(urgency[next], next);
    }
  }
  EXPECT_EQ(order.size(), count);
  return order;
}

/// The program with dependencies that leave this order only.
Program in_order(Program program, const std::vector<OpId>& order) {
  program.dependencies.assign(order.begin(), order.end());
  for (Op& op : program.ops) op.dep_begin = op.dep_count = 0;
  for (std::uint32_t i = 1; i < order.size(); ++i) {
    program.ops[order[i]].dep_begin = i - 1;
    program.ops[order[i]].dep_count = 1;
  }
  return program;
}

struct Outcome {
  bool wrong = false;  ///< some order gave a wrong result
  bool right = false;  ///< some order gave the right one
  bool inputs_changed = false;
};

/// Runs the program in `orders` random orders, on enough elements of a wide type that two different
/// multisets of inputs do not look alike by chance.
Outcome run_in_random_orders(const Program& program, int orders, std::mt19937_64& random) {
  const std::int64_t elements = 9 * program.contract.units;
  const Memory start = initial_memory(program, DataType::int32, ReduceOp::sum, elements);
  Outcome outcome;
  for (int i = 0; i < orders; ++i) {
    const Program ordered = in_order(program, random_order(program, random));
    Memory memory = start;
    interpret(ordered, DataType::int32, ReduceOp::sum, elements, memory);
    const bool wrong = count_wrong(program, DataType::int32, ReduceOp::sum, elements, memory) > 0;
    (wrong ? outcome.wrong : outcome.right) = true;
    for (int r = 0; r < program.ranks(); ++r) {
      const auto rank = static_cast<std::size_t>(r);
      if (memory.places[rank][0] != start.places[rank][0]) outcome.inputs_changed = true;
    }
  }
  return outcome;
}

std::set<std::string> broken_rules(const Verification& verification) {
  std::set<std::string> rules;
  for (const Diagnostic& problem : verification.problems) rules.insert(problem.rule);
  return rules;
}

bool has_race(const Program& program) {
  // happens_before needs dependencies that point back: take the ops in an order that can run.
  std::mt19937_64 random(0);
  const std::vector<OpId> order = random_order(program, random);
  std::vector<OpId> number(order.size());
  for (OpId i = 0; i < order.size(); ++i) number[order[i]] = i;
  Program sorted = program;
  for (OpId i = 0; i < order.size(); ++i) sorted.ops[i] = program.ops[order[i]];
  for (OpId& dependency : sorted.dependencies) dependency = number[dependency];
  const auto before = happens_before(sorted);
  for (OpId b = 0; b < order.size(); ++b) {
    for (OpId a = 0; a < b; ++a) {
      if (!before[b][a] && touch_same_units(sorted, sorted.ops[a], sorted.ops[b])) return true;
    }
  }
  return false;
}

/// Both directions: nothing wrong passes, and no rule is reported that is not broken. Returns
/// whether the verifier complained.
bool verdict_agrees(const Program& program, int orders, std::mt19937_64& random) {
  const Verification verification = verify(program);
  const std::set<std::string> rules = broken_rules(verification);
  const std::uint64_t seed = random();
  EXPECT_EQ(rules,
            broken_rules(verify(program, {.comparison = ResultComparison::random, .seed = seed})))
      << "seed " << seed << "\n"
      << print_program(program);
  if (rules.contains("R1") || rules.contains("R2") || rules.contains("R3") ||
      rules.contains("R4")) {
    return true;  // not a program that could be run
  }
  const Outcome outcome = run_in_random_orders(program, orders, random);
  if (rules.empty()) {
    EXPECT_FALSE(outcome.wrong) << print_program(program);
    EXPECT_FALSE(outcome.inputs_changed) << print_program(program);
  }
  EXPECT_EQ(rules.contains("R6"), has_race(program)) << print_program(program);
  // Without races and undefined data all orders give the same, and R7 is what decides.
  if (!rules.contains("R5") && !rules.contains("R6") && !rules.contains("R8")) {
    EXPECT_EQ(rules.contains("R7"), outcome.wrong) << print_program(program);
    EXPECT_EQ(rules.contains("R7"), !outcome.right) << print_program(program);
  }
  return !rules.empty();
}

TEST(VerifyMutation, SingleFaultsAreFoundOrHarmless) {
  constexpr std::uint64_t kSeed = 20;
  constexpr int kOrders = 25;
  std::mt19937_64 random(kSeed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::map<std::string, std::pair<int, int>> killed;  // by kind: complaints, all
  for (const Program& program : sample_programs()) {
    for (const Mutant& mutant : Mutator(program).all()) {
      SCOPED_TRACE(program.name + ": " + mutant.kind);
      auto& [complaints, all] = killed[mutant.kind];
      complaints += verdict_agrees(mutant.program, kOrders, random) ? 1 : 0;
      ++all;
      ASSERT_FALSE(HasFailure());
    }
  }
  int complaints = 0;
  int all = 0;
  for (const auto& [kind, counts] : killed) {
    std::printf("%-30s %5d of %5d\n", kind.c_str(), counts.first, counts.second);
    complaints += counts.first;
    all += counts.second;
  }
  std::printf("%-30s %5d of %5d\n", "all", complaints, all);
  // Survivors are dependencies that others imply, lane changes and swaps without effect: each has
  // just been run in 25 orders. That most mutants do not survive shows that they are faults at all.
  EXPECT_GT(complaints, all * 3 / 4);
}

TEST(VerifyMutation, RandomOrdersOfRightProgramsAreRight) {
  std::mt19937_64 random(21);
  for (const Program& program : sample_programs()) {
    const Outcome outcome = run_in_random_orders(program, 50, random);
    EXPECT_FALSE(outcome.wrong) << program.name;
    EXPECT_FALSE(outcome.inputs_changed) << program.name;
  }
}

/// One unit that is written, read by many and written again, with order between a few of them: the
/// verifier is to find exactly those programs that have a race.
TEST(VerifyMutation, ManyReadersOfAUnit) {
  int racing = 0;
  constexpr int kPrograms = 600;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    Program program;
    program.contract = {Collective::broadcast, 2, 0, 4, false};
    const auto add = [&](OpKind kind, const Operand& dst, const Operand& src, std::uint32_t length,
                         std::uint32_t lanes) {
      Op op{.dst = dst, .at = kind == OpKind::combine ? src.place : 0, .kind = kind};
      op.lane = static_cast<std::uint16_t>(pick(lanes));
      op.length = kind == OpKind::combine ? length : 0;
      op.src_begin = static_cast<std::uint32_t>(program.sources.size());
      op.src_count = kind == OpKind::combine ? 1 : 0;
      if (kind == OpKind::combine) program.sources.push_back(src);
      op.dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
      const auto id = static_cast<OpId>(program.ops.size());
      const std::uint32_t all = pick(3);  // the last few, all, or some
      for (OpId earlier = 0; earlier < id; ++earlier) {
        const bool waits = all == 0 ? earlier + 2 > id : all == 1 || pick(4) == 0;
        if (waits) program.dependencies.push_back(earlier);
      }
      op.dep_count = static_cast<std::uint32_t>(program.dependencies.size()) - op.dep_begin;
      program.ops.push_back(op);
    };
    program.durations_s = {0};
    const std::uint32_t lanes = 1 + pick(80);
    add(OpKind::combine, {0, 0, Buffer::tmp}, {0, 0, Buffer::in}, 4, 1);
    for (std::uint32_t i = 5 + pick(80); i > 0; --i) {
      const std::uint32_t begin = pick(4);
      add(OpKind::combine, {1, 4 * i + begin, Buffer::tmp}, {0, begin, Buffer::tmp}, 4 - begin,
          lanes);
    }
    for (std::uint32_t i = pick(6); i > 0; --i) {
      if (pick(2) == 0) {
        add(OpKind::compute, {0, 0, Buffer::tmp}, {}, 0, lanes);
      } else {
        const std::uint32_t unit = pick(4);
        add(OpKind::combine, {0, unit, Buffer::tmp}, {0, unit, Buffer::in}, 1, lanes);
      }
    }
    const bool race = has_race(program);
    EXPECT_EQ(broken_rules(verify(program)).contains("R6"), race) << print_program(program);
    racing += race ? 1 : 0;
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%d of %d programs race\n", racing, kPrograms);
  EXPECT_GT(racing, kPrograms / 10);
  EXPECT_LT(racing, kPrograms * 9 / 10);
}

/// Programs that compute nothing meaningful still have a verdict; small ones are right at times.
TEST(VerifyMutation, RandomPrograms) {
  int right = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Program program = random_program(random, {.max_units = 2, .max_ops = 12});
    right += verdict_agrees(program, 5, random) ? 0 : 1;
    ASSERT_FALSE(HasFailure());
  }
  std::printf("%d of 4000 random programs are right\n", right);
  EXPECT_GT(right, 20);
}

}  // namespace
}  // namespace espalier
