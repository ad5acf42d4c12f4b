// SPDX-License-Identifier: Apache-2.0
// A thousand mutants of small programs, drawn at random, against the interpreter run in every order
// that dependencies and lanes allow.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <optional>
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

constexpr int kMutants = 1000;

struct Outcome {
  bool wrong = false;  ///< some order gave a wrong result
  bool right = false;  ///< some order gave the right one
  bool inputs_changed = false;
  bool stuck = false;
};

/// Runs a program in all orders. Orders that have done the same ops and left the same bytes go on
/// alike, so that each such state is entered once.
class EveryOrder {
 public:
  explicit EveryOrder(const Program& program)
      : program_(program),
        elements_(9 * program.contract.units),
        start_(initial_memory(program, DataType::int32, ReduceOp::sum, elements_)),
        before_(program.ops.size(), 0) {
    std::map<std::pair<PlaceId, int>, OpId> last;
    for (OpId id = 0; id < program.ops.size(); ++id) {
      const Op& op = program.ops[id];
      for (const OpId earlier : program.dependencies_of(op)) before_[id] |= bit(earlier);
      const auto [entry, is_first] = last.try_emplace({op.at, op.lane}, id);
      if (!is_first) before_[id] |= bit(std::exchange(entry->second, id));
      Program alone = program;
      alone.ops = {op};
      alone.ops[0].dep_count = 0;
      steps_.push_back(std::move(alone));
    }
  }

  /// Nothing when there are more states than that.
  std::optional<Outcome> run(std::size_t max_states) {
    enter(0, start_);
    while (!open_.empty()) {
      if (entered_.size() > max_states) return std::nullopt;
      const auto [done, memory] = std::move(open_.back());
      open_.pop_back();
      go_on(done, memory);
    }
    return outcome_;
  }

 private:
  using Set = std::uint64_t;  ///< of ops, a bit each
  static Set bit(OpId id) { return Set{1} << id; }

  void enter(Set done, Memory memory) {
    std::string state(reinterpret_cast<const char*>(&done), sizeof done);
    for (const auto& place : memory.places) {
      for (const auto& buffer : place) {
        state.append(reinterpret_cast<const char*>(buffer.data()), buffer.size());
      }
    }
    if (entered_.insert(std::move(state)).second) open_.emplace_back(done, std::move(memory));
  }

  void go_on(Set done, const Memory& memory) {
    bool is_end = true;
    for (OpId id = 0; id < steps_.size(); ++id) {
      if ((done & bit(id)) != 0 || (before_[id] & ~done) != 0) continue;
      is_end = false;
      Memory after = memory;
      interpret(steps_[id], DataType::int32, ReduceOp::sum, elements_, after);
      enter(done | bit(id), std::move(after));
    }
    if (is_end) judge(done, memory);
  }

  void judge(Set done, const Memory& memory) {
    if (done + 1 != Set{1} << steps_.size()) outcome_.stuck = true;
    const bool wrong = count_wrong(program_, DataType::int32, ReduceOp::sum, elements_, memory) > 0;
    (wrong ? outcome_.wrong : outcome_.right) = true;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(program_.ranks()); ++rank) {
      if (memory.places[rank][0] != start_.places[rank][0]) outcome_.inputs_changed = true;
    }
  }

  const Program& program_;
  std::int64_t elements_;
  Memory start_;
  std::vector<Set> before_;     ///< by op: what it waits for directly
  std::vector<Program> steps_;  ///< by op: it alone
  std::set<std::string> entered_;
  std::vector<std::pair<Set, Memory>> open_;
  Outcome outcome_;
};

/// Right programs of at most 16 ops, of all shapes.
std::vector<Program> small_programs(std::mt19937_64& random) {
  std::vector<Program> all;
  all.push_back(ring_allreduce(2, false));
  all.push_back(ring_allreduce(3, true));
  all.push_back(halving_doubling_allreduce(2));
  all.push_back(tree_broadcast(4, 1, 2));
  all.push_back(direct_alltoall(3));
  all.push_back(parameter_server(2));
  all.push_back(ring_reducescatter(3, false));
  all.push_back(ring_allgather(3, true));
  all.push_back(star_reduce(4, 1));
  all.push_back(shift(3));
  all.push_back(gather_and_scatter_sample(Collective::gather, 4, 2, false));
  // Programs without a shape that happen to be right.
  while (all.size() < 24) {
    Program program = random_program(random, {.max_units = 2, .max_ops = 10});
    if (program.ops.size() > 2 && verify(program).ok()) all.push_back(std::move(program));
  }
  return all;
}

std::set<std::string> broken_rules(const Program& program) {
  std::set<std::string> rules;
  for (const Diagnostic& problem : verify(program).problems) rules.insert(problem.rule);
  return rules;
}

TEST(VerifyEveryOrder, AThousandMutants) {
  constexpr std::uint64_t kSeed = 22;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  const std::vector<Program> programs = small_programs(random);
  std::vector<std::vector<Mutant>> mutants;
  for (const Program& program : programs) mutants.push_back(Mutator(program).all());
  int accepted = 0, refused = 0;
  for (int tried = 0; accepted + refused < kMutants; ++tried) {
    ASSERT_LT(tried, 4 * kMutants) << "most mutants have too many orders, or cannot be run";
    const std::vector<Mutant>& some = mutants[random() % mutants.size()];
    // One fault, or another one on top of it.
    Program mutant = some[random() % some.size()].program;
    if (random() % 2 == 0) {
      std::vector<Mutant> again = Mutator(mutant).all();
      mutant = std::move(again[random() % again.size()].program);
    }
    const std::set<std::string> rules = broken_rules(mutant);
    if (rules.contains("R1") || rules.contains("R2") || rules.contains("R4")) {
      continue;  // nothing that could be run
    }
    const std::optional<Outcome> outcome = EveryOrder(mutant).run(4000);
    if (!outcome) continue;
    SCOPED_TRACE(print_program(mutant));
    EXPECT_EQ(rules.contains("R3"), outcome->stuck);
    if (rules.empty()) {
      EXPECT_FALSE(outcome->wrong);
      EXPECT_FALSE(outcome->inputs_changed);
    }
    // Where data are defined, inputs stay and nothing races, every order ends alike.
    const bool decided = !rules.contains("R3") && !rules.contains("R5") && !rules.contains("R6") &&
                         !rules.contains("R8");
    if (decided) {
      EXPECT_EQ(rules.contains("R7"), outcome->wrong);
      EXPECT_EQ(rules.contains("R7"), !outcome->right);
    }
    ASSERT_FALSE(HasFailure());
    ++(rules.empty() ? accepted : refused);
  }
  std::printf("%d accepted, %d refused\n", accepted, refused);
  EXPECT_GT(accepted, kMutants / 10);
  EXPECT_GT(refused, kMutants / 2);
}

}  // namespace
}  // namespace espalier
