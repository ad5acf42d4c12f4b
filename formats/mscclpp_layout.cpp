// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "core/words.h"
#include "formats/op_names.h"

namespace espalier {
namespace {

using Plan = MscclppPlan;

/// The most ranks of a contract under which a plan is laid out as it is: inputs and results have
/// this many units squared.
constexpr std::int64_t kMaxAsIs = 2048;

std::int64_t chunks(const Plan::Gpu& gpu, Plan::Buffer buffer) {
  return gpu.chunks[static_cast<std::size_t>(buffer)];
}

std::int64_t largest(const Plan& plan, Plan::Buffer buffer) {
  std::int64_t most = 0;
  for (const Plan::Gpu& gpu : plan.gpus) most = std::max(most, chunks(gpu, buffer));
  return most;
}

/// A contract of as many units as the chunks say, or 0 units where they say nothing.
Contract contract_of(const Plan& plan, Collective collective, std::int64_t split) {
  const std::int64_t in = largest(plan, Plan::Buffer::input);
  const std::int64_t out = largest(plan, Plan::Buffer::output);
  const auto ranks = static_cast<std::int64_t>(plan.gpus.size());
  std::int64_t units = std::max(in, out);
  if (collective == Collective::allgather || collective == Collective::gather) {
    units = out > 0 ? out : in * ranks;
  } else if (collective == Collective::reducescatter || collective == Collective::scatter) {
    units = in > 0 ? in : out * ranks;
  }
  return {collective, static_cast<int>(ranks), 0, units * split, plan.in_place};
}

/// Why the chunk counts are not those of a contract, or nothing.
std::string misfit(const Plan& plan, const Contract& contract, std::int64_t split) {
  const std::string name(to_string(contract.collective));
  if (contract.units == 0) return "no GPU has chunks of input or output";
  if (contract.units > kMaxUnits) {
    return fmt::format("{} units are more than a program may have", contract.units);
  }
  if (info(contract.collective).blocked && contract.units / split % contract.ranks != 0) {
    return fmt::format("{} of a message can't be divided among {} ranks, as {} needs",
                       counted(static_cast<std::size_t>(contract.units / split), "chunk"),
                       contract.ranks, name);
  }
  for (int rank = 0; rank < contract.ranks; ++rank) {
    const Plan::Gpu& gpu = plan.gpus[static_cast<std::size_t>(rank)];
    const auto differs = [&](Plan::Buffer buffer, const Region& region) {
      const std::int64_t given = chunks(gpu, buffer) * split;
      // A rank without an input or result names some count for the runtime's sake, and in place
      // one name of the buffer is enough.
      if (region.units == 0 || given == region.units) return false;
      return !(contract.in_place && given == 0);
    };
    const Region in = input_region(contract, rank);
    const Region out = output_region(contract, rank);
    if (!differs(Plan::Buffer::input, in) && !differs(Plan::Buffer::output, out)) continue;
    return fmt::format(
        "gpu {} has {} and {} chunks of input and output, but {} over {} ranks has "
        "{} and {}",
        rank, chunks(gpu, Plan::Buffer::input), chunks(gpu, Plan::Buffer::output), name,
        contract.ranks, in.units / split, out.units / split);
  }
  return {};
}

/// Where a unit of a rank's buffer is in a program, under one way of laying buffers out.
using Locate = std::function<Operand(const MscclppOperand&)>;

Operand operand(int place, Buffer buffer, std::int64_t begin) {
  return {place, static_cast<std::uint32_t>(begin), buffer};
}

Operand locate_user_buffer(const MscclppOperand& given, const Contract& contract) {
  const bool is_input = given.buffer == Plan::Buffer::input;
  if (!contract.in_place) {
    return operand(given.rank, is_input ? Buffer::in : Buffer::out, given.begin);
  }
  const Region region =
      is_input ? input_region(contract, given.rank) : output_region(contract, given.rank);
  return operand(given.rank, Buffer::out, region.begin + given.begin);
}

/// Writes the moves down as ops, with the dependencies that they have and no others.
void write_ops(const MscclppRun& run, const std::function<void(const MscclppMove&)>& before,
               const Locate& locate, Program& program) {
  for (const MscclppMove& move : run.moves) {
    before(move);
    Op op;
    op.at = move.place.gpu;
    op.lane = static_cast<std::uint16_t>(move.place.block);
    op.length = static_cast<std::uint32_t>(move.length);
    op.in_switch = move.in_switch;
    op.src_begin = static_cast<std::uint32_t>(program.sources.size());
    op.src_count = static_cast<std::uint32_t>(move.sources.size());
    op.copy_count = static_cast<std::uint32_t>(move.targets.size() - 1);
    op.dst = locate(move.targets[0]);
    for (const MscclppOperand& source : move.sources) program.sources.push_back(locate(source));
    for (std::size_t k = 1; k < move.targets.size(); ++k) {
      program.sources.push_back(locate(move.targets[k]));
    }
    op.dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
    op.dep_count = static_cast<std::uint32_t>(move.after.size());
    program.dependencies.insert(program.dependencies.end(), move.after.begin(), move.after.end());
    program.ops.push_back(op);
    program.lines.push_back(move.line);
  }
}

/// With scratch as the plan has it, and inputs and outputs where `places` has them.
void write_where_it_is(const MscclppRun& run, const Contract& places, Program& program) {
  write_ops(
      run, [](const MscclppMove&) {},
      [&](const MscclppOperand& given) {
        return given.buffer == Plan::Buffer::scratch ? operand(given.rank, Buffer::tmp, given.begin)
                                                     : locate_user_buffer(given, places);
      },
      program);
}

/// Which shift of the scratch of a GPU each of its chunks was last written with. A unit at k with
/// shift d holds what belongs at (k + d) mod block.
class Shifts {
 public:
  void set(std::int64_t begin, std::int64_t end, std::int64_t shift) {
    cut(begin);
    cut(end);
    runs_.erase(runs_.lower_bound(begin), runs_.lower_bound(end));
    runs_[begin] = {end, shift};
  }
  std::optional<std::int64_t> at(std::int64_t unit) const {
    const auto next = runs_.upper_bound(unit);
    if (next == runs_.begin() || std::prev(next)->second.end <= unit) return {};
    return std::prev(next)->second.shift;
  }
  /// Whether a unit of the range was written with another shift.
  bool differs(std::int64_t begin, std::int64_t end, std::int64_t shift) const {
    auto run = runs_.upper_bound(begin);
    if (run != runs_.begin()) --run;
    for (; run != runs_.end() && run->first < end; ++run) {
      if (run->second.end > begin && run->second.shift != shift) return true;
    }
    return false;
  }

  /// Copies of the scratch, by shift; 0 comes first.
  std::map<std::int64_t, std::int64_t> copies{{0, 0}};

 private:
  struct Run {
    std::int64_t end;
    std::int64_t shift;
  };
  void cut(std::int64_t at) {
    const auto next = runs_.upper_bound(at);
    if (next == runs_.begin()) return;
    const auto run = std::prev(next);
    if (run->first >= at || run->second.end <= at) return;
    const Run rest = run->second;
    run->second.end = at;
    runs_[at] = rest;
  }
  std::map<std::int64_t, Run> runs_;
};

class Layout {
 public:
  Layout(const Plan& plan, const MscclppRun& run, const Contract& contract)
      : run_(run),
        block_(block_units(contract)),
        shifts_(plan.gpus.size()),
        stride_(largest(plan, Plan::Buffer::scratch) * run.split + block_) {
    stride_ = (stride_ + block_ - 1) / block_ * block_;
    result_.program.name = plan.name;
    result_.program.contract = contract;
  }

  MscclppLayout lay_out() {
    write_ops(
        run_, [&](const MscclppMove& move) { choose_residue(move); },
        [&](const MscclppOperand& operand) { return locate(operand); }, result_.program);
    return std::move(result_);
  }

 private:
  Shifts& shifts_of(int rank) { return shifts_[static_cast<std::size_t>(rank)]; }

  /// Where in its block the data of a move belong: where its inputs and outputs are, else where
  /// what it reads from scratch came from, else where scratch itself begins.
  void choose_residue(const MscclppMove& move) {
    std::optional<std::int64_t> residue;
    const auto look = [&](const MscclppOperand& operand, bool is_source) {
      if (residue) return;
      if (operand.buffer != Plan::Buffer::scratch) {
        residue = user_buffer(operand).begin % block_;
      } else if (is_source) {
        if (const auto shift = shifts_of(operand.rank).at(operand.begin)) {
          residue = (operand.begin + *shift) % block_;
        }
      }
    };
    for (const MscclppOperand& target : move.targets) look(target, false);
    for (const MscclppOperand& source : move.sources) {
      if (source.buffer != Plan::Buffer::scratch) look(source, true);
    }
    for (const MscclppOperand& source : move.sources) look(source, true);
    residue_ = residue.value_or(move.sources[0].begin % block_);
    for (const MscclppOperand& target : move.targets) {
      if (target.buffer != Plan::Buffer::scratch) continue;
      const std::int64_t shift = shift_of(target);
      Shifts& shifts = shifts_of(target.rank);
      result_.scratch_is_shared |= shifts.differs(target.begin, target.begin + move.length, shift);
      shifts.set(target.begin, target.begin + move.length, shift);
    }
  }

  std::int64_t shift_of(const MscclppOperand& operand) const {
    return ((residue_ - operand.begin) % block_ + block_) % block_;
  }

  Operand user_buffer(const MscclppOperand& given) const {
    return locate_user_buffer(given, result_.program.contract);
  }

  Operand locate(const MscclppOperand& given) {
    if (given.buffer != Plan::Buffer::scratch) return user_buffer(given);
    const std::int64_t shift = shift_of(given);
    auto& copies = shifts_of(given.rank).copies;
    const auto copy =
        copies.try_emplace(shift, static_cast<std::int64_t>(copies.size())).first->second;
    const std::int64_t begin = copy * stride_ + given.begin + shift;
    if (begin + stride_ > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorKind::input, "the plan's scratch is too large to be checked");
    }
    return operand(given.rank, Buffer::tmp, begin);
  }

  const MscclppRun& run_;
  std::int64_t block_;
  std::vector<Shifts> shifts_;
  std::int64_t stride_;
  std::int64_t residue_ = 0;
  MscclppLayout result_;
};

}  // namespace

MscclppContracts mscclpp_contracts(const MscclppPlan& plan, std::int64_t split) {
  MscclppContracts found;
  const auto labelled = parse_collective(plan.collective);
  if (!labelled) {
    found.misfit = fmt::format("{} is no collective that Espalier knows", quote(plan.collective));
  }
  for (const CollectiveInfo& info : all_collectives()) {
    const Contract contract = contract_of(plan, info.id, split);
    const std::string why = misfit(plan, contract, split);
    if (info.id == labelled) {
      found.misfit = why;
      if (why.empty()) found.labelled = contract;
    } else if (why.empty()) {
      found.others.push_back(contract);
    }
  }
  return found;
}

MscclppLayout lay_out(const MscclppPlan& plan, const MscclppRun& run, const Contract& contract) {
  return Layout(plan, run, contract).lay_out();
}

Program lay_out_equal(const MscclppPlan& plan, const MscclppRun& run, const Contract& contract) {
  Program program;
  program.name = plan.name;
  program.contract = contract;
  write_where_it_is(run, contract, program);
  return program;
}

std::optional<Program> lay_out_as_is(const MscclppPlan& plan, const MscclppRun& run,
                                     const std::optional<Contract>& contract) {
  const std::int64_t units =
      std::max(largest(plan, Plan::Buffer::input), largest(plan, Plan::Buffer::output)) * run.split;
  const std::int64_t ranks =
      std::max<std::int64_t>({units, static_cast<std::int64_t>(plan.gpus.size()), 1});
  if (ranks > kMaxAsIs) return {};
  Program program;
  program.name = plan.name;
  // An alltoall of one unit for each rank: a block has one unit, and all buffers have `ranks`.
  program.contract = {Collective::alltoall, static_cast<int>(ranks), 0, ranks, plan.in_place};
  const Contract places = contract ? *contract : program.contract;
  write_where_it_is(run, places, program);
  return program;
}

std::string mscclpp_name(const Slice& slice, const std::optional<Contract>& contract,
                         std::int64_t split) {
  Plan::Buffer buffer = Plan::Buffer::scratch;
  std::int64_t begin = slice.begin;
  if (slice.buffer != Buffer::tmp) {
    // In place, the larger one of input and output is all of the buffer.
    const bool in_place = contract && contract->in_place;
    const Region in = in_place ? input_region(*contract, slice.place) : Region{};
    const Region out = in_place ? output_region(*contract, slice.place) : Region{};
    const bool is_input = slice.buffer == Buffer::in || in.units > out.units;
    buffer = is_input ? Plan::Buffer::input : Plan::Buffer::output;
    begin -= is_input ? in.begin : out.begin;
  }
  const std::int64_t end = begin + slice.length;
  return foreign_slice(letter_of(buffer), begin / split, (end + split - 1) / split, slice.place);
}

}  // namespace espalier
