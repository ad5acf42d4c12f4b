// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_steps_writer.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "topologies/profile.h"

namespace espalier {
namespace {

using Kind = MscclAlgo::Kind;

/// MSCCL and RCCL spell one of them differently.
std::string label_of(Collective collective, bool for_rccl) {
  if (collective == Collective::reducescatter && !for_rccl) return "reduce_scatter";
  return std::string(to_string(collective));
}

}  // namespace

MscclStepsWriter::MscclStepsWriter(const Program& program, const WritingOptions& options)
    : program_(program) {
  const Contract& contract = program.contract;
  algo_.name = program.name;
  algo_.protocol = "Simple";
  for (const char* protocol : {"LL", "LL128"}) {
    if (lower_case(protocol) == lower_case(options.protocol)) algo_.protocol = protocol;
  }
  algo_.label = label_of(contract.collective, options.for_amd);
  algo_.chunks = static_cast<int>(contract.units);
  algo_.in_place = contract.in_place;
  algo_.out_of_place = !contract.in_place;
  algo_.min_bytes = options.min_bytes;
  algo_.max_bytes = options.max_bytes;
  algo_.gpus.resize(static_cast<std::size_t>(contract.ranks));
  known_.resize(algo_.gpus.size());
  clocks_.resize(algo_.gpus.size());
  pack_scratch();
}

/// Scratch that nobody uses is left out.
void MscclStepsWriter::pack_scratch() {
  packed_.resize(algo_.gpus.size());
  const auto use = [&](const Operand& operand, std::uint32_t length) {
    if (operand.buffer != Buffer::tmp) return;
    for (std::uint32_t i = 0; i < length; ++i) {
      packed_[static_cast<std::size_t>(operand.place)][operand.begin + std::int64_t{i}] = 0;
    }
  };
  for (const Op& op : program_.ops) {
    use(op.dst, op.length);
    for (const Operand& source : program_.sources_of(op)) use(source, op.length);
  }
  for (std::size_t gpu = 0; gpu < packed_.size(); ++gpu) {
    std::int64_t next = 0;
    for (auto& [unit, chunk] : packed_[gpu]) chunk = next++;
    algo_.gpus[gpu].scratch = static_cast<int>(next);
  }
}

void MscclStepsWriter::add_block(std::size_t id, PlaceId gpu, int lane, MscclAlgo::Block block) {
  auto& blocks = algo_.gpus[static_cast<std::size_t>(gpu)].blocks;
  // Lanes come in order of ops; numbers are theirs.
  const auto number = lane >= 0 ? static_cast<std::size_t>(lane) : blocks.size();
  if (number >= blocks.size()) blocks.resize(number + 1);
  blocks[number] = std::move(block);
  places_[id] = {gpu, static_cast<int>(number)};
  known_[static_cast<std::size_t>(gpu)].resize(blocks.size());
  clocks_[static_cast<std::size_t>(gpu)].resize(blocks.size());
}

MscclAlgo::Reference MscclStepsWriter::reference(const Slice& slice) const {
  if (slice.buffer == Buffer::tmp) {
    const auto& packed = packed_[static_cast<std::size_t>(slice.place)];
    return {'s', static_cast<int>(packed.at(slice.begin))};
  }
  // In place there is one buffer; files call it the output where input is a part of it.
  const Contract& contract = program_.contract;
  const bool is_output = contract.in_place ? contract.collective == Collective::allgather
                                           : slice.buffer == Buffer::out;
  return {is_output ? 'o' : 'i', static_cast<int>(slice.begin)};
}

/// The steps of the GPU that must come before, the last one of every thread block; notes the
/// accesses.
std::vector<MscclStepsWriter::Done> MscclStepsWriter::conflicts(int gpu,
                                                                const std::vector<Part>& parts,
                                                                const Slice& dst) {
  std::map<int, int> last;
  const auto id = static_cast<OpId>(steps_.size());
  const auto note = [&](OpId earlier) {
    const auto& [at, step] = steps_[earlier];
    CHECK(at.gpu == gpu);
    int& newest = last.try_emplace(at.block, -1).first->second;
    newest = std::max(newest, step);
  };
  const auto operand = [](const Slice& one) {
    return Operand{one.place, static_cast<std::uint32_t>(one.begin), one.buffer};
  };
  const auto length = static_cast<std::uint32_t>(dst.length);
  for (const Part& part : parts) {
    if (reads_source(part.kind)) accesses_.read(id, operand(part.src), length, note);
  }
  if (stores(parts.front().kind)) accesses_.write(id, operand(dst), length, note);
  std::vector<Done> before;
  for (const auto& [block, step] : last) before.push_back({block, step});
  return before;
}

/// A sum that was passed on and is overwritten before anybody else reads it need not be stored: by
/// the same thread block, since another one would go on waiting for it, and no data would say why.
/// `before`: what the step that writes `dst` conflicts with.
void MscclStepsWriter::forget_overwritten(const Place& at, const Part& part, const Slice& dst,
                                          const std::vector<Done>& before) {
  const bool reads_it =
      part.kind == Kind::re || (reads_source(part.kind) && overlap(part.src, dst));
  if (!stores(part.kind) || reads_it || before.size() != 1) return;
  if (before.front().block != at.block) return;
  MscclAlgo::Step& last = algo_.gpus[static_cast<std::size_t>(at.gpu)]
                              .blocks[static_cast<std::size_t>(at.block)]
                              .steps[static_cast<std::size_t>(before.front().step)];
  const MscclAlgo::Reference to = reference(dst);
  const bool is_same = last.dst.buffer == to.buffer && last.dst.offset == to.offset &&
                       last.count == static_cast<int>(dst.length);
  if (last.kind == Kind::rrcs && is_same) last.kind = Kind::rrs;
}

/// Of these, the ones that the thread block does not know to be done from what it and they waited
/// for.
std::vector<MscclStepsWriter::Done> MscclStepsWriter::needed(const Place& at,
                                                             const std::vector<Done>& before) {
  const auto gpu = static_cast<std::size_t>(at.gpu);
  const auto has = [](const Clock& clock, const Done& done) {
    const auto block = static_cast<std::size_t>(done.block);
    return block < clock.size() && clock[block] >= done.step;
  };
  const Clock& known = known_[gpu][static_cast<std::size_t>(at.block)];
  std::vector<Done> needed;
  for (const Done& one : before) {
    if (one.block == at.block || has(known, one)) continue;
    const bool is_implied = std::ranges::any_of(before, [&](const Done& other) {
      return other.block != one.block && other.block != at.block &&
             has(clocks_[gpu][static_cast<std::size_t>(other.block)]
                        [static_cast<std::size_t>(other.step)],
                 one);
    });
    if (!is_implied) needed.push_back(one);
  }
  return needed;
}

/// Whether the step before stored what this one sends, and does so now itself.
bool MscclStepsWriter::joined_to_last(const Place& at, Kind kind, const Slice& src) {
  auto& steps =
      algo_.gpus[static_cast<std::size_t>(at.gpu)].blocks[static_cast<std::size_t>(at.block)].steps;
  if (kind != Kind::s || steps.empty()) return false;
  MscclAlgo::Step& last = steps.back();
  const MscclAlgo::Reference from = reference(src);
  const bool is_same = last.dst.buffer == from.buffer && last.dst.offset == from.offset &&
                       last.count == static_cast<int>(src.length);
  if (!is_same || (last.kind != Kind::r && last.kind != Kind::rrc)) return false;
  last.kind = last.kind == Kind::r ? Kind::rcs : Kind::rrcs;
  return true;
}

void MscclStepsWriter::add(std::size_t id, Kind kind, const Slice& src, const Slice& dst) {
  append(id, {{kind, src}}, dst);
}

void MscclStepsWriter::add_up(std::size_t id, const std::vector<Slice>& operands,
                              const Slice& dst) {
  std::vector<Part> parts;
  // One that lies there already is added to. Two operands may change their places.
  const bool swaps = operands.size() == 2 && operands[1] == dst;
  if (operands.front() != dst && !swaps) parts.push_back({Kind::cpy, operands.front()});
  if (swaps) parts.push_back({Kind::re, operands.front()});
  for (std::size_t i = 1; i < operands.size() && !swaps; ++i) {
    parts.push_back({Kind::re, operands[i]});
  }
  append(id, parts, dst);
}

/// The runtime adds up steps in a row at once that add to the same place from the same buffer,
/// taking the count of the last for all, unless one says that it is done.
void MscclStepsWriter::keep_apart(const Part& part, const Slice& dst, bool follows,
                                  std::vector<MscclAlgo::Step>& steps) const {
  if (!follows || steps.empty() || part.kind != Kind::re || steps.back().kind != Kind::re) return;
  MscclAlgo::Step& last = steps.back();
  const MscclAlgo::Reference to = reference(dst);
  const bool is_same_place = last.dst.buffer == to.buffer && last.dst.offset == to.offset;
  if (is_same_place && last.count != static_cast<int>(dst.length)) last.awaited = true;
}

/// The first step waits for everything, so that the runtime may carry out sums at once.
void MscclStepsWriter::append(std::size_t id, const std::vector<Part>& parts, const Slice& dst) {
  const Place at = places_.at(id);
  const auto gpu = static_cast<std::size_t>(at.gpu);
  const auto block = static_cast<std::size_t>(at.block);
  auto& steps = algo_.gpus[gpu].blocks[block].steps;
  const std::vector<Done> before = conflicts(at.gpu, parts, dst);
  const std::vector<Done> waits = needed(at, before);
  forget_overwritten(at, parts.front(), dst, before);
  if (waits.empty() && joined_to_last(at, parts.front().kind, parts.front().src)) {
    steps_.emplace_back(at, static_cast<int>(steps.size()) - 1);
    return;
  }
  Clock& known = known_[gpu][block];
  known.resize(std::max(known.size(), clocks_[gpu].size()), -1);
  const auto push = [&](MscclAlgo::Step step) {
    step.awaited = false;
    known[block] = static_cast<int>(steps.size());
    steps.push_back(step);
    clocks_[gpu][block].push_back(known);
  };
  const auto wait_for = [&](const Done& done, MscclAlgo::Step& step) {
    step.block = done.block;
    step.step = done.step;
    const auto other = static_cast<std::size_t>(done.block);
    const auto number = static_cast<std::size_t>(done.step);
    algo_.gpus[gpu].blocks[other].steps[number].awaited = true;
    const Clock& theirs = clocks_[gpu][other][number];
    for (std::size_t k = 0; k < theirs.size(); ++k) known[k] = std::max(known[k], theirs[k]);
  };
  for (std::size_t i = 0; i + 1 < waits.size(); ++i) {
    MscclAlgo::Step nop;
    wait_for(waits[i], nop);
    push(nop);
  }
  keep_apart(parts.front(), dst, waits.empty(), steps);
  for (const Part& part : parts) {
    MscclAlgo::Step step;
    step.kind = part.kind;
    step.src = reference(part.src);
    step.dst = reference(dst);
    step.count = static_cast<int>(dst.length);
    if (&part == &parts.front() && !waits.empty()) wait_for(waits.back(), step);
    push(step);
  }
  steps_.emplace_back(at, static_cast<int>(steps.size()) - 1);
}

MscclAlgo MscclStepsWriter::finish(int channels) {
  algo_.channels = channels;
  return std::move(algo_);
}

}  // namespace espalier
