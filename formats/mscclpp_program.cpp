// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/words.h"
#include "formats/machine.h"
#include "formats/mscclpp_layout.h"
#include "formats/mscclpp_limits.h"
#include "formats/mscclpp_run.h"
#include "formats/op_names.h"
#include "ir/verify.h"

namespace espalier {
namespace {

using Plan = MscclppPlan;

/// What a plan does instead of its label is looked for up to this size; roots, too.
constexpr std::size_t kMaxMovesTriedAgain = 20000;
constexpr std::size_t kMaxGpusTriedAgain = 256;
constexpr int kMaxRootsTried = 64;
constexpr std::size_t kMaxNopNotes = 4;

using Severity = ForeignNote::Severity;

class Judge {
 public:
  Judge(const Plan& plan, const std::string& file)
      : plan_(plan), file_(file), run_(run_mscclpp_plan(plan)) {}

  ForeignProgram judge() {
    const MscclppContracts contracts = mscclpp_contracts(plan_, run_.split);
    made_.facts = facts();
    made_.protocol = plan_.protocol;
    made_.min_bytes = clamped(plan_.min_bytes);
    if (plan_.max_bytes != ~std::uint64_t{0}) made_.max_bytes = clamped(plan_.max_bytes);
    for (const Plan::Gpu& gpu : plan_.gpus) {
      made_.multiple_of_bytes = std::max(made_.multiple_of_bytes,
                                         plan_.alignment * std::max(gpu.chunks[0], gpu.chunks[1]));
    }
    judge_hosts();
    made_.verification.problems = check_mscclpp_limits(plan_);
    std::vector<Diagnostic>& problems = made_.verification.problems;
    problems.insert(problems.end(), run_.stuck.begin(), run_.stuck.end());
    problems.insert(problems.end(), run_.early_ends.begin(), run_.early_ends.end());
    if (run_.stuck.empty()) {
      if (contracts.labelled && contracts.labelled->collective != Collective::sendrecv) {
        judge_collective(*contracts.labelled, contracts.others);
      } else if (contracts.labelled) {
        judge_exchange(*contracts.labelled);
      } else {
        say_misfit(contracts);
        judge_order(first_of(contracts));
      }
    }
    note_early_accesses();
    if (problems.empty()) note_relaxed_signals(contracts);
    note_oddities();
    for (Diagnostic& problem : problems) {
      problem.where.file = file_;
      if (problem.where.line == 0) problem.where.line = plan_.line;
    }
    made_.has_program &= made_.verification.ok();
    if (!made_.has_program) made_.program = {};
    return std::move(made_);
  }

 private:
  /// What there is to say of the plan under a contract.
  struct Verdict {
    Contract contract;
    Verification verification;
    std::optional<Program> program;  ///< nothing where it is wrong, or moves chunks elsewhere
  };

  static std::optional<Contract> first_of(const MscclppContracts& contracts) {
    if (contracts.labelled) return contracts.labelled;
    if (!contracts.others.empty()) return contracts.others.front();
    return {};
  }

  static std::int64_t clamped(std::uint64_t bytes) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(bytes, kMost));
  }

  void judge_hosts() {
    MscclppHosts hosts = hosts_of(plan_);
    made_.host_of_rank = std::move(hosts.of_rank);
    const auto& [gpu, peer] = hosts.same;
    if (gpu == peer) return;
    made_.notes.push_back({fmt::format(
        "a port channel joins gpus {} and {}, which memory channels join, too: they are "
        "taken to share a computer, and to use memory channels where the plan is "
        "written again",
        gpu, peer)});
  }

  void say_misfit(const MscclppContracts& contracts) {
    if (parse_collective(plan_.collective)) {
      made_.verification.problems.push_back(
          {"R1", contracts.misfit, "correct the chunk counts or 'collective'", {}});
    } else {
      made_.notes.push_back(
          {fmt::format("what its results should be is not known, since {}", contracts.misfit)});
    }
  }

  std::string facts() const {
    std::size_t blocks = 0;
    std::size_t ops = 0;
    for (const Plan::Gpu& gpu : plan_.gpus) {
      blocks = std::max(blocks, gpu.blocks.size());
      for (const Plan::ThreadBlock& block : gpu.blocks) {
        ops += block.ops.size();
        for (const Plan::Op& op : block.ops) ops += op.body.size();
      }
    }
    return fmt::format("MSCCL++ execution plan {}: {} {}, {}, up to {} of a GPU, {}, protocol {}",
                       quote(plan_.name), printable(plan_.collective),
                       plan_.in_place ? "in place" : "out of place",
                       counted(plan_.gpus.size(), "rank"), counted(blocks, "thread block"),
                       counted(ops, "op"), plan_.protocol);
  }

  /// "gpu 0, threadblock 0, op 3 (put)".
  std::string name(const MscclppOpPlace& place) const {
    const Plan::Op& outer = plan_.gpus[static_cast<std::size_t>(place.gpu)]
                                .blocks[static_cast<std::size_t>(place.block)]
                                .ops[static_cast<std::size_t>(place.op)];
    const Plan::Op& op =
        place.inner < 0 ? outer : outer.body[static_cast<std::size_t>(place.inner)];
    return fmt::format("{} ({})", describe(place), op.type->name);
  }

  /// `contract`: says where inputs and outputs are in their buffer in place.
  void use_names(std::vector<Diagnostic>& problems, const std::optional<Contract>& contract) const {
    use_foreign_names(
        problems, {[&](OpId id) {
                     return id < run_.moves.size() ? name(run_.moves[id].place)
                                                   : std::string("an op");
                   },
                   [&](const Slice& slice) { return mscclpp_name(slice, contract, run_.split); }});
  }

  void report(std::vector<Diagnostic> problems, const std::optional<Contract>& contract) {
    use_names(problems, contract);
    std::vector<Diagnostic>& all = made_.verification.problems;
    all.insert(all.end(), problems.begin(), problems.end());
  }

  static std::vector<Diagnostic> only(std::vector<Diagnostic> problems,
                                      std::initializer_list<std::string_view> rules, bool keep) {
    std::erase_if(problems, [&](const Diagnostic& problem) {
      return (std::ranges::find(rules, problem.rule) != rules.end()) != keep;
    });
    return problems;
  }

  /// Takes over what was found, apart from the problems.
  void adopt(Verdict verdict) {
    made_.verification.order_consistent = verdict.verification.order_consistent;
    made_.verification.combines_in_switch = verdict.verification.combines_in_switch;
    made_.verification.proof = verdict.verification.proof;
    made_.has_program = verdict.program.has_value();
    if (verdict.program) made_.program = std::move(*verdict.program);
    const int line = plan_.line;
    made_.program.header_lines = {line, line, line, line, line, line, line};
    if (verdict.verification.ok() && !made_.has_program) made_.notes.push_back(note_moved_chunks());
  }

  Verdict check(const Contract& contract) const {
    Verdict verdict{contract, {}, {}};
    MscclppLayout layout = lay_out(plan_, run_, contract);
    verdict.verification = verify(layout.program);
    if (verdict.verification.ok()) verdict.program = std::move(layout.program);
    if (verdict.program && !layout.scratch_is_shared) return verdict;
    verdict.verification = verify(lay_out_equal(plan_, run_, contract), {.equal_units = true});
    return verdict;
  }

  /// A plan does not name its root: it is the one for which the plan is right, or least wrong.
  Verdict check_roots(Contract contract) const {
    Verdict best = check(contract);
    const int roots =
        info(contract.collective).rooted ? std::min(contract.ranks, kMaxRootsTried) : 1;
    for (contract.root = 1; contract.root < roots && !best.verification.ok(); ++contract.root) {
      Verdict verdict = check(contract);
      if (verdict.verification.problems.size() < best.verification.problems.size()) {
        best = std::move(verdict);
      }
    }
    return best;
  }

  void name_root(int root, std::vector<Diagnostic>& problems) {
    const auto ranks = static_cast<int>(plan_.gpus.size());
    name_best_root(root, std::min(ranks, kMaxRootsTried), ranks, problems);
    if (!problems.empty()) return;
    made_.notes.push_back({fmt::format(
        "the plan does not name its root: rank {} is the one for which it is right", root)});
  }

  void judge_collective(const Contract& contract, const std::vector<Contract>& others) {
    Verdict verdict = check_roots(contract);
    std::vector<Diagnostic> problems = verdict.verification.problems;
    const bool is_right = problems.empty();
    if (info(contract.collective).rooted) name_root(verdict.contract.root, problems);
    // An allreduce is a reduction to every rank, which overwrites buffers that are not its to
    // write.
    const bool only_results = std::ranges::all_of(problems, [](const Diagnostic& problem) {
      return problem.rule == "R1" || problem.rule == "R5" || problem.rule == "R7" ||
             problem.rule == "R8";
    });
    const bool is_reduction = contract.collective == Collective::reduce && contract.ranks > 1;
    if (only_results && (!is_right || is_reduction)) {
      say_what_it_is(contract, others, is_right, problems);
    }
    report(std::move(problems), verdict.contract);
    adopt(std::move(verdict));
  }

  /// "labelled allgather, but does an alltoall", where another collective's contract is kept.
  /// `is_right`: the labelled one is, too.
  void say_what_it_is(const Contract& labelled, const std::vector<Contract>& others, bool is_right,
                      std::vector<Diagnostic>& problems) const {
    if (run_.moves.size() > kMaxMovesTriedAgain || plan_.gpus.size() > kMaxGpusTriedAgain) return;
    for (const Contract& other : others) {
      if (is_right && other.collective != Collective::allreduce) continue;
      const Verdict verdict = check_roots(other);
      if (!verdict.verification.ok()) continue;
      const Contract& contract = verdict.contract;
      problems.insert(place_of_other_label(problems, labelled),
                      Diagnostic{"R7",
                                 fmt::format("the plan is labelled {}, but what it does is {}{}",
                                             plan_.collective, to_string(contract.collective),
                                             info(contract.collective).rooted
                                                 ? fmt::format(" with root {}", contract.root)
                                                 : ""),
                                 "correct 'collective', or the plan",
                                 {}});
      return;
    }
  }

  /// MSCCL++ promises nothing of a plan labelled sendrecv; ours sends to the next rank.
  void judge_exchange(const Contract& contract) {
    Verdict verdict = check(contract);
    if (verdict.verification.ok()) {
      adopt(std::move(verdict));
      return;
    }
    made_.notes.push_back(
        {"it is labelled sendrecv, but does not send from every rank to the next one, as "
         "Espalier's sendrecv does: its results are not checked"});
    judge_order(contract);
  }

  void judge_order(const std::optional<Contract>& contract) {
    const auto as_is = lay_out_as_is(plan_, run_, contract);
    if (!as_is) {
      made_.verification.problems.push_back(
          {"limit",
           "the plan has too many chunks for its order to be checked without a contract",
           "",
           {}});
      return;
    }
    report(only(verify(*as_is).problems, {"R7", "R8"}, false), contract);
  }

  void note_early_accesses() {
    if (run_.early_accesses.empty()) return;
    const MscclppEarlyAccess& first = run_.early_accesses.front();
    std::vector<MscclppOpPlace> places;
    for (const MscclppEarlyAccess& access : run_.early_accesses) {
      if (places.empty() || places.back() != access.place) places.push_back(access.place);
    }
    const std::size_t more = places.size() - 1;
    warn(fmt::format(
        "{} {} the {} of gpu {} before anything has come from there, so that gpu {} "
        "may not have begun and may still be using it{}",
        name(first.place), first.writes ? "writes to" : "reads",
        first.buffer == Plan::Buffer::input ? "input" : "output", first.rank, first.rank,
        more == 0 ? "" : fmt::format(", and {} like it", counted(more, "more op"))));
  }

  /// Memory models promise nothing of what relaxed signals announce: says what would go wrong if
  /// they ordered no data.
  void note_relaxed_signals(const MscclppContracts& contracts) {
    bool any = false;
    for_each_op([&](const Plan::Op& op) { any |= op.type->relaxed; });
    if (!any) return;
    const MscclppRun apart = run_mscclpp_plan(plan_, RelaxedSignals::order_nothing);
    const bool same_order =
        std::ranges::equal(apart.moves, run_.moves, {}, &MscclppMove::after, &MscclppMove::after);
    if (same_order && apart.early_ends.empty()) return;
    std::vector<Diagnostic> problems;
    if (!same_order) {
      const auto contract =
          made_.has_program ? std::optional(made_.program.contract) : first_of(contracts);
      const auto as_is = lay_out_as_is(plan_, apart, contract);
      if (!as_is) {
        warn(
            "relaxed signals are taken to order data; the plan has too many chunks for what "
            "depends "
            "on that to be looked for");
        return;
      }
      problems = only(verify(*as_is).problems, {"R6"}, true);
      use_names(problems, contract);
    }
    problems.insert(problems.end(), apart.early_ends.begin(), apart.early_ends.end());
    if (problems.empty()) return;
    warn(
        fmt::format("relaxed signals are taken to order data, which they do not promise; without "
                    "that: {}{}",
                    problems.front().message,
                    problems.size() == 1 ? "" : fmt::format(", and {} more", problems.size() - 1)));
  }

  void warn(std::string text) { made_.notes.push_back({std::move(text), Severity::warning}); }

  void note_oddities() {
    const std::vector<std::string> nops = missing_mscclpp_nops(plan_);
    for (std::size_t k = 0; k < nops.size() && k < kMaxNopNotes; ++k) warn(nops[k]);
    if (nops.size() > kMaxNopNotes) {
      warn(
          fmt::format("nops or flushes are missing in {} more places", nops.size() - kMaxNopNotes));
    }
    if (run_.lost_signals > 0 && run_.stuck.empty()) {
      warn(fmt::format(
          "{} never awaited: the next launch finds {} there",
          run_.lost_signals == 1 ? "1 signal is" : fmt::format("{} signals are", run_.lost_signals),
          run_.lost_signals == 1 ? "it" : "them"));
    }
    note_zero_chunks();
    note_ops();
    note_blocks();
  }

  void note_zero_chunks() {
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      if (plan_.gpus[g].chunks[0] != 0 && plan_.gpus[g].chunks[1] != 0) continue;
      warn(fmt::format("gpu {}: {} is 0, by which the executor of MSCCL++ 0.9 divides: it dies", g,
                       plan_.gpus[g].chunks[0] == 0 ? "'input_chunks'" : "'output_chunks'"));
      return;
    }
  }

  /// They wait for each other, so that all have to be there.
  void note_blocks() {
    std::size_t most = 0;
    for (const Plan::Gpu& gpu : plan_.gpus) most = std::max(most, gpu.blocks.size());
    const int a100 = multiprocessors_of("a100");
    const int mi300x = multiprocessors_of("mi300x");  // no GPU has more
    if (most <= static_cast<std::size_t>(a100)) return;
    made_.notes.push_back(
        {fmt::format("up to {} of a GPU, which has to run all at once: an A100 has {} "
                     "multiprocessors, an H100 {}, an MI300X {}",
                     counted(most, "thread block"), a100, multiprocessors_of("h100"), mi300x),
         most > static_cast<std::size_t>(mi300x) ? Severity::warning : Severity::remark});
  }

  template <class Visit>
  void for_each_op(const Visit& visit) const {
    for (const Plan::Gpu& gpu : plan_.gpus) {
      for (const Plan::ThreadBlock& block : gpu.blocks) {
        for (const Plan::Op& op : block.ops) {
          visit(op);
          for (const Plan::Op& inner : op.body) visit(inner);
        }
      }
    }
  }

  void note_ops() {
    std::size_t other_operators = 0;
    std::size_t swapped = 0;
    std::size_t packets = 0;
    std::size_t pipelines = 0;
    std::size_t flushes = 0;
    std::size_t flushing_puts = 0;
    for_each_op([&](const Plan::Op& op) {
      flushes += op.type->kind == Plan::Kind::flush;
      flushing_puts += op.type->flushes && op.type->kind == Plan::Kind::put;
      other_operators += !op.reduce_op.empty() && op.reduce_op != "sum";
      packets += op.type->source_packets || op.type->target_packets;
      pipelines += op.type->kind == Plan::Kind::pipeline;
      if (op.type->kind != Plan::Kind::get) return;
      for (std::size_t k = 0; k < op.sources.size(); ++k) {
        swapped += op.sources[k].index != op.targets[k].index;
      }
    });
    if (other_operators > 0) {
      warn(fmt::format("'reduce_op' of {} is not sum, but MSCCL++ 0.9 does not read it",
                       counted(other_operators, "op")));
    }
    if (swapped > 0) {
      warn(
          fmt::format("{} copied from another index than to; get of MSCCL++ 0.9 takes "
                      "one offset for the other, so it works for equal ones only",
                      swapped == 1 ? "a slice is" : fmt::format("{} slices are", swapped)));
    }
    if (flushes > 0) {
      warn(
          fmt::format("{} through port channels, which MSCCL++ 0.9 takes for nothing: what was put "
                      "may be overwritten before it has gone",
                      counted(flushes, "flush", "flushes")));
    }
    if (flushing_puts > 0) {
      warn(fmt::format("{}, whose source MSCCL++ 0.9 looks for in a wrong place",
                       counted(flushing_puts, "'pwsf'")));
    }
    if (packets > 0 && plan_.protocol != "LL") {
      warn(fmt::format(
          "{} packets, but the protocol is {}: packets need LL, which "
          "doubles the scratch for their flags",
          packets == 1 ? "1 op uses" : fmt::format("{} ops use", packets), plan_.protocol));
    }
    if (pipelines > 0) {
      made_.notes.push_back(
          {fmt::format("the body of {} is taken once, for the whole of its chunks",
                       counted(pipelines, "pipeline"))});
    }
  }

  const Plan& plan_;
  const std::string& file_;
  MscclppRun run_;
  ForeignProgram made_;
};

}  // namespace

ForeignProgram mscclpp_program(const MscclppPlan& plan, const std::string& file) {
  return Judge(plan, file).judge();
}

}  // namespace espalier
