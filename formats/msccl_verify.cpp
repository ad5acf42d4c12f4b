// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "formats/msccl_buffers.h"
#include "formats/op_names.h"

namespace espalier {
namespace {

using Kind = MscclAlgo::Kind;

/// In order of the file, the first few, and how many more there are.
void limit(std::vector<Diagnostic>& problems) {
  std::ranges::stable_sort(problems, {},
                           [](const Diagnostic& problem) { return problem.where.line; });
  const auto most = static_cast<std::size_t>(VerifyOptions().max_per_rule);
  if (problems.size() <= most) return;
  const std::size_t more = problems.size() - most + 1;
  problems.resize(most);
  problems.back() = {problems.back().rule, fmt::format("and {} more of this kind", more), {}, {}};
}

/// Steps that use a buffer which a caller may leave out: NCCL takes NULL for the result of a
/// reduction anywhere but at its root.
std::vector<Diagnostic> find_missing_buffers(const MscclSteps& steps, const MscclBuffers& buffers,
                                             const Contract& contract) {
  std::vector<Diagnostic> problems;
  for (int id = 0; id < steps.count(); ++id) {
    const MscclAlgo::Step& step = steps.step(id);
    const int gpu = steps.ids[static_cast<std::size_t>(id)].gpu;
    const auto look = [&](const MscclAlgo::Reference& reference, const char* does) {
      if (buffers.is_given(gpu, reference.buffer)) return;
      problems.push_back(
          {"R1",
           fmt::format("{}: {} '{}', but only rank {} of a {} has an {}", steps.name(id), does,
                       reference.buffer, contract.root, to_string(contract.collective),
                       reference.buffer == 'i' ? "input" : "output"),
           "scratch ('s')",
           {{}, step.line, 0}});
    };
    if (reads_source(step.kind)) look(step.src, "reads");
    if (stores(step.kind)) look(step.dst, "writes");
  }
  return problems;
}

/// How much work looking for another collective, or for a root, may be: steps and buffers looked
/// at.
constexpr std::int64_t kMostLookedAt = 4'000'000;

/// What one check of a label looks at.
std::int64_t looked_at(const MscclSteps& steps) { return steps.count() + steps.algo.ranks(); }

/// The steps as ops: two for those that store and send.
class StepsAsOps {
 public:
  StepsAsOps(const MscclSteps& steps, const Contract& contract)
      : steps_(steps), buffers_(steps.algo, contract) {
    program_.name = steps.algo.name;
    program_.contract = contract;
    place_slots();
    last_op_.assign(static_cast<std::size_t>(steps.count()), 0);
    for (int id = 0; id < steps.count(); ++id) add_step(id);
    add_dependencies();
  }

  const Program& program() const { return program_; }
  const MscclBuffers& buffers() const { return buffers_; }
  int step_of(OpId op) const { return step_of_[op]; }

 private:
  /// Messages lie behind everything else in the receiver's scratch.
  void place_slots() {
    slots_.resize(static_cast<std::size_t>(steps_.count()));
    std::vector<std::int64_t> next;
    for (int gpu = 0; gpu < steps_.algo.ranks(); ++gpu) next.push_back(buffers_.scratch(gpu));
    for (int id = 0; id < steps_.count(); ++id) {
      const int receiver = steps_.receiver[static_cast<std::size_t>(id)];
      if (receiver < 0) continue;
      const int gpu = steps_.ids[static_cast<std::size_t>(receiver)].gpu;
      std::int64_t& begin = next[static_cast<std::size_t>(gpu)];
      slots_[static_cast<std::size_t>(id)] = {gpu, static_cast<std::uint32_t>(begin), Buffer::tmp};
      begin += steps_.step(id).count;
    }
  }

  void add_step(int id) {
    const MscclAlgo::Step& step = steps_.step(id);
    const int gpu = steps_.ids[static_cast<std::size_t>(id)].gpu;
    const Operand src = buffers_.operand(gpu, step.src);
    const Operand dst = buffers_.operand(gpu, step.dst);
    std::vector<Operand> sources;
    // In place, the copy of an input to where it lies already moves nothing.
    if (step.kind == Kind::nop || (step.kind == Kind::cpy && src == dst)) {
      add_op(id, OpKind::wait, {}, {});
    } else {
      if (reduces(step.kind) || reads_source(step.kind)) sources.push_back(src);
      if (step.kind == Kind::re) sources.insert(sources.begin(), dst);
      if (receives(step.kind)) {
        const int sender = steps_.sender[static_cast<std::size_t>(id)];
        sources.push_back(slots_[static_cast<std::size_t>(sender)]);
      }
      if (stores(step.kind)) {
        add_op(id, OpKind::combine, dst, sources);
        sources = {dst};
      }
      if (sends(step.kind)) {
        add_op(id, OpKind::combine, slots_[static_cast<std::size_t>(id)], sources);
      }
    }
    last_op_[static_cast<std::size_t>(id)] = static_cast<OpId>(program_.ops.size() - 1);
  }

  void add_op(int id, OpKind kind, const Operand& dst, const std::vector<Operand>& sources) {
    const MscclSteps::Id& at = steps_.ids[static_cast<std::size_t>(id)];
    Op op;
    op.kind = kind;
    op.at = at.gpu;
    op.lane = static_cast<std::uint16_t>(at.block);
    op.src_begin = static_cast<std::uint32_t>(program_.sources.size());
    if (kind == OpKind::combine) {
      op.dst = dst;
      op.length = static_cast<std::uint32_t>(steps_.step(id).count);
      op.src_count = static_cast<std::uint32_t>(sources.size());
      program_.sources.insert(program_.sources.end(), sources.begin(), sources.end());
    } else {
      op.dst = {at.gpu, 0, Buffer::tmp};
      if (program_.durations_s.empty()) program_.durations_s.push_back(0);
    }
    program_.ops.push_back(op);
    program_.lines.push_back(steps_.step(id).line);
    step_of_.push_back(id);
  }

  /// The first op of a step waits for the message and for the step that it depends on.
  void add_dependencies() {
    int before = -1;
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      Op& op = program_.ops[id];
      op.dep_begin = static_cast<std::uint32_t>(program_.dependencies.size());
      const int step = step_of_[id];
      if (step != before) {
        for (const int earlier :
             {steps_.awaited(step), steps_.sender[static_cast<std::size_t>(step)]}) {
          if (earlier < 0) continue;
          program_.dependencies.push_back(last_op_[static_cast<std::size_t>(earlier)]);
        }
      }
      before = step;
      op.dep_count = static_cast<std::uint32_t>(program_.dependencies.size() - op.dep_begin);
    }
  }

  const MscclSteps& steps_;
  MscclBuffers buffers_;
  Program program_;
  std::vector<Operand> slots_;  ///< by step that sends
  std::vector<OpId> last_op_;   ///< by step
  std::vector<int> step_of_;    ///< by op
};

Verification check(const MscclSteps& steps, const Contract& contract) {
  const StepsAsOps built(steps, contract);
  VerifyOptions options;
  options.equal_units = true;
  Verification verification = verify(built.program(), options);
  use_foreign_names(verification.problems,
                    {[&](OpId op) { return steps.name(built.step_of(op)); },
                     [&](const Slice& slice) { return built.buffers().name(slice); }});
  std::vector<Diagnostic> missing = find_missing_buffers(steps, built.buffers(), contract);
  limit(missing);
  verification.problems.insert(verification.problems.begin(), missing.begin(), missing.end());
  return verification;
}

bool is_possible(const Contract& contract) {
  return !info(contract.collective).blocked || contract.units % contract.ranks == 0;
}

/// Rules of which a wrong label breaks some: what there is, what is defined at first, and what
/// results are.
bool is_about_data(const Diagnostic& problem) {
  return problem.rule == "R1" || problem.rule == "R5" || problem.rule == "R7" ||
         problem.rule == "R8";
}

/// Broadcasts and reductions do not say which rank is their root. Those that only send or only
/// receive come first: it is one of them where anything is wrong with all.
std::vector<int> roots_of(Collective collective, const MscclAlgo& algo) {
  std::vector<int> roots;
  for (int root = 0; root < (info(collective).rooted ? algo.ranks() : 1); ++root) {
    roots.push_back(root);
  }
  // Clang 14, which builds the fuzz targets, does not take that of std::ranges.
  std::stable_partition(roots.begin(), roots.end(), [&](int root) {
    const auto& blocks = algo.gpus[static_cast<std::size_t>(root)].blocks;
    return std::ranges::none_of(blocks, [&](const MscclAlgo::Block& block) {
      return (collective == Collective::reduce ? block.send : block.recv) >= 0;
    });
  });
  return roots;
}

/// Another collective that the steps do, in the same buffers.
std::optional<Contract> find_other(const MscclSteps& steps, const Contract& labelled,
                                   bool is_label_known = true) {
  std::int64_t left = kMostLookedAt;
  // An allreduce is a reduction, too: those that promise more come first.
  std::vector<CollectiveInfo> collectives(all_collectives().begin(), all_collectives().end());
  // Clang 14, which builds the fuzz targets, does not take that of std::ranges.
  std::stable_partition(collectives.begin(), collectives.end(),
                        [](const CollectiveInfo& one) { return !one.rooted; });
  for (const CollectiveInfo& collective : collectives) {
    if (is_label_known && collective.id == labelled.collective) continue;
    for (const int root : roots_of(collective.id, steps.algo)) {
      Contract other = labelled;
      other.collective = collective.id;
      other.root = root;
      left -= looked_at(steps);
      if (left < 0) return std::nullopt;
      if (is_possible(other) && check(steps, other).ok()) return other;
    }
  }
  return std::nullopt;
}

/// The same for a reduction that leaves its result everywhere.
std::optional<Contract> as_allreduce(const MscclSteps& steps, Contract contract) {
  contract.collective = Collective::allreduce;
  contract.root = 0;
  return check(steps, contract).ok() ? std::optional(contract) : std::nullopt;
}

/// What the runtime makes something else of than the file says.
void find_misread(const MscclSteps& steps, std::vector<Diagnostic>& problems) {
  const auto add = [&](int id, const std::string& message, const std::string& suggestion) {
    problems.push_back({"R3",
                        fmt::format("{}: {}", steps.name(id), message),
                        suggestion,
                        {{}, steps.step(id).line, 0}});
  };
  for (int id = 0; id < steps.count(); ++id) {
    const MscclAlgo::Step& step = steps.step(id);
    const MscclSteps::Id& at = steps.ids[static_cast<std::size_t>(id)];
    if (steps.awaited(id) == MscclSteps::kUnsaid) {
      add(id,
          fmt::format("it waits for thread block {}, step {}, which never says that it is done "
                      "('hasdep' is 0 there and behind it, or only nops follow)",
                      step.block, step.step),
          "hasdep=\"1\" there");
    }
    const bool is_last = id + 1 == steps.count() ||
                         steps.ids[static_cast<std::size_t>(id) + 1].block != at.block ||
                         steps.ids[static_cast<std::size_t>(id) + 1].gpu != at.gpu;
    const MscclAlgo::Step* next = is_last ? nullptr : &steps.step(id + 1);
    if (step.kind == Kind::nop && (step.block < 0 || next == nullptr || next->block < 0)) {
      add(id,
          step.block < 0 ? "a nop that waits for nothing: the runtime leaves it out and counts the "
                           "steps behind it wrongly"
                         : "a nop adds a dependency to those of the step behind it, and there is "
                           "none with any",
          "nops carry the first dependencies of a step, which has the last one itself");
    }
    if (next == nullptr || step.kind != Kind::re || next->kind != Kind::re) continue;
    // The runtime carries out such sums at once, with the last count (msccl_parser.cc of RCCL).
    const bool is_fused = next->block < 0 && !step.awaited && step.dst.buffer == next->dst.buffer &&
                          step.dst.offset == next->dst.offset &&
                          step.src.buffer == next->src.buffer && step.count != next->count;
    if (is_fused) {
      add(id + 1,
          fmt::format("the runtime adds this up together with the step before it, which has {} "
                      "chunks instead of {}, and takes the last number for both",
                      step.count, next->count),
          "hasdep=\"1\" at the step before, or another order");
    }
  }
}

/// Under the label, with the root that fits, or else with the one that fits best.
MscclVerdict check_labelled(const MscclSteps& steps, Contract contract) {
  std::optional<MscclVerdict> best;
  std::int64_t left = kMostLookedAt;
  int tried = 0;
  for (const int root : roots_of(contract.collective, steps.algo)) {
    left -= looked_at(steps);
    if (best && left < 0) break;
    ++tried;
    contract.root = root;
    Verification verification = check(steps, contract);
    const bool is_better =
        !best || verification.problems.size() < best->verification.problems.size();
    if (is_better) best = {std::move(verification), contract};
    if (best->verification.ok()) return *best;
  }
  if (info(contract.collective).rooted) {
    name_best_root(best->contract->root, tried, contract.ranks, best->verification.problems);
  }
  return *best;
}

/// Steps that do no collective of ours are still to be free of races and deadlocks.
MscclVerdict check_custom(const MscclSteps& steps, Contract contract) {
  if (const auto known = find_other(steps, contract, false)) return {check(steps, *known), known};
  // Every rank has an input and a result.
  contract.collective = Collective::sendrecv;
  MscclVerdict verdict{check(steps, contract), std::nullopt};
  std::erase_if(verdict.verification.problems,
                [](const Diagnostic& problem) { return problem.rule == "R7"; });
  return verdict;
}

}  // namespace

MscclVerdict verify_msccl(const MscclSteps& steps, bool in_place) {
  const MscclAlgo& algo = steps.algo;
  const auto label = msccl_collective(algo.label);
  Contract contract;
  contract.ranks = algo.ranks();
  contract.units = algo.chunks;
  contract.in_place = in_place;
  MscclVerdict verdict;
  std::vector<Diagnostic>& problems = verdict.verification.problems;
  problems = steps.problems;
  find_misread(steps, problems);
  if (label) {
    contract.collective = *label;
    verdict.contract = contract;
  }
  if (!problems.empty()) {
    limit(problems);
    return verdict;
  }
  if (!label) return check_custom(steps, contract);
  if (!is_possible(contract)) {
    problems.push_back({"R1",
                        fmt::format("labelled {}, which has one block for each of {} ranks, but "
                                    "'nchunksperloop' is {}",
                                    algo.label, algo.ranks(), algo.chunks),
                        "a multiple of the number of ranks",
                        {{}, algo.line, 0}});
    return verdict;
  }
  verdict = check_labelled(steps, contract);
  if (!std::ranges::all_of(problems, is_about_data)) return verdict;
  // An allreduce is a reduction to every rank, which overwrites buffers that are not its to write.
  const bool is_reduction = contract.collective == Collective::reduce && contract.ranks > 1;
  if (problems.empty() && !is_reduction) return verdict;
  const auto other = problems.empty() ? as_allreduce(steps, contract) : find_other(steps, contract);
  if (other) {
    problems.insert(
        place_of_other_label(problems, contract),
        Diagnostic{
            "R7",
            fmt::format(
                "labelled {}, but what it does is {}{}", algo.label, to_string(other->collective),
                info(other->collective).rooted ? fmt::format(" with root {}", other->root) : ""),
            "another 'coll'",
            {{}, algo.line, 0}});
  }
  return verdict;
}

}  // namespace espalier
