// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_program.h"

#include <utility>
#include <vector>

#include "formats/msccl_moves.h"
#include "formats/scratch_map.h"
#include "ir/builder.h"

namespace espalier {
namespace {

using Kind = MscclAlgo::Kind;

/// The steps that a step waits for by itself: its own, and those of the nops before it.
std::vector<int> awaited_by(const MscclSteps& steps, int id) {
  std::vector<int> awaited;
  for (int step = id; step >= 0; --step) {
    if (step != id && (steps.step(step).kind != Kind::nop ||
                       steps.ids[static_cast<std::size_t>(step)].block !=
                           steps.ids[static_cast<std::size_t>(id)].block ||
                       steps.ids[static_cast<std::size_t>(step)].gpu !=
                           steps.ids[static_cast<std::size_t>(id)].gpu)) {
      break;
    }
    if (const int one = steps.awaited(step); one >= 0) awaited.push_back(one);
  }
  return awaited;
}

/// The moves as a program.
class Writer {
 public:
  Writer(const MscclSteps& steps, const Contract& contract)
      : steps_(steps),
        builder_(steps.algo.name, contract),
        ops_(static_cast<std::size_t>(steps.count())),
        scratch_(block_units(contract)) {}

  /// Nothing where units change their positions.
  std::optional<Program> write(const std::vector<Move>& moves) {
    std::vector<std::vector<ScratchMap::Run>> runs;
    for (const Move& move : moves) {
      auto parts = scratch_.note(move.dst, move.sources, move.count);
      if (!parts) return std::nullopt;
      runs.push_back(std::move(*parts));
    }
    scratch_.place();
    for (std::size_t i = 0; i < moves.size(); ++i) {
      for (const ScratchMap::Run& run : runs[i]) add(moves[i], run);
    }
    Program program = builder_.finish();
    program.lines = std::move(lines_);
    const int line = steps_.algo.line;
    program.header_lines = {line, line, line, line, line, line, line};
    return program;
  }

 private:
  void add(const Move& move, const ScratchMap::Run& run) {
    std::vector<Slice> sources;
    const auto part = [&](const Operand& operand, std::size_t which) {
      return slice(scratch_.placed(operand, run.begin, run.turns[which]),
                   static_cast<std::uint32_t>(run.count));
    };
    for (std::size_t i = 0; i < move.sources.size(); ++i) {
      sources.push_back(part(move.sources[i], i + 1));
    }
    const Slice dst = part(move.dst, 0);
    if (sources.size() == 1 && sources.front() == dst) return;
    OpOptions options;
    options.lane = move.lane;
    options.at = move.at;
    const OpId op = builder_.combine(dst, sources, options);
    for (const int step : {move.step, move.sender}) {
      if (step < 0) continue;
      for (const int awaited : awaited_by(steps_, step)) {
        for (const OpId earlier : ops_[static_cast<std::size_t>(awaited)]) {
          builder_.after(op, earlier);
        }
      }
    }
    // Who waits for a step needs what it stored. What it sent, it only has to have read, which data
    // flow says.
    ops_[static_cast<std::size_t>(move.step)].push_back(op);
    lines_.push_back(steps_.step(move.step).line);
  }

  const MscclSteps& steps_;
  Builder builder_;
  std::vector<std::vector<OpId>> ops_;  ///< by step: those that store what it stores, so far
  std::vector<int> lines_;
  ScratchMap scratch_;
};

}  // namespace

std::optional<Program> msccl_program(const MscclSteps& steps, const Contract& contract,
                                     int fifo_slots) {
  return Writer(steps, contract).write(msccl_moves(steps, contract, fifo_slots));
}

}  // namespace espalier
