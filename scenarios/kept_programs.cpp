// SPDX-License-Identifier: Apache-2.0
#include "scenarios/kept_programs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace espalier {
namespace {

constexpr std::size_t kMaxPrograms = 32;
constexpr std::size_t kMaxOps = std::size_t{1} << 18;
constexpr std::size_t kMaxWays = std::size_t{1} << 16;  ///< of a program

/// No more than the recipe of what is Algorithm::of_ranks_alone has: what else an algorithm looked
/// at would be the first machine's.
BuildRequest without_machine(const BuildRequest& request) {
  BuildRequest of_ranks;
  of_ranks.collective = request.collective;
  of_ranks.ranks = request.ranks;
  of_ranks.root = request.root;
  of_ranks.in_place = request.in_place;
  of_ranks.fold = request.fold;
  return of_ranks;
}

}  // namespace

std::shared_ptr<KeptProgram> KeptPrograms::shared(std::shared_ptr<const Program> program) {
  const auto earlier = std::ranges::find_if(
      known_, [&](const auto& known) { return same_program(*known->program, *program); });
  if (earlier != known_.end()) return *earlier;
  auto made = std::make_shared<KeptProgram>();
  made->program = std::move(program);
  if (made->program->ops.size() > kMaxOps) return made;
  made->found = std::make_shared<std::any>();
  ops_ += made->program->ops.size();
  known_.push_back(made);
  while (ops_ > kMaxOps || known_.size() > kMaxPrograms) {
    // Whoever still has it: what is found out about all programs would take much memory.
    known_.front()->found = nullptr;
    known_.front()->ways = nullptr;
    ops_ -= known_.front()->program->ops.size();
    known_.pop_front();
  }
  return made;
}

std::shared_ptr<const Program> KeptPrograms::built(const AlgorithmChoice& choice,
                                                   const BuildRequest& request) {
  const Algorithm& algorithm = *choice.algorithm;
  std::optional<std::string> of_machine;
  if (algorithm.of_ranks_alone) {
    of_machine.emplace();
  } else {
    of_machine = recipe(choice, request);
  }
  if (!of_machine) return nullptr;
  Recipe made_of{spec_of(choice), request.contract(0), request.fold, std::move(*of_machine)};
  const auto earlier = std::ranges::find_if(
      known_, [&](const auto& known) { return std::ranges::count(known->recipes, made_of) > 0; });
  if (earlier != known_.end()) return (*earlier)->program;
  const bool is_of_ranks = algorithm.of_ranks_alone;
  Program program = build(choice, is_of_ranks ? without_machine(request) : request);
  const auto made = shared(std::make_shared<const Program>(std::move(program)));
  made->recipes.push_back(std::move(made_of));
  return made->program;
}

std::shared_ptr<const Ways> KeptPrograms::ways(const Program& program, int groups) {
  const auto find = [&] { return std::make_shared<const Ways>(find_ways(program, groups)); };
  const auto known =
      std::ranges::find_if(known_, [&](const auto& one) { return one->program.get() == &program; });
  if (known == known_.end()) return find();
  KeptProgram& kept = **known;
  if (kept.ways && kept.ways->groups == groups) return kept.ways;
  auto made = find();
  if (made->transfers.size() <= kMaxWays) kept.ways = made;
  return made;
}

const Verification& verdict_on(KeptProgram& known) {
  if (!known.verdict) known.verdict = verify(*known.program);
  return *known.verdict;
}

}  // namespace espalier
