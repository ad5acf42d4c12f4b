// SPDX-License-Identifier: Apache-2.0
#include "python/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/interruption.h"
#include "core/words.h"
#include "ir/builder.h"

namespace espalier {

namespace {

/// Where a place deals with more others than this, lanes are used again.
constexpr int kMostLanes = 4096;
constexpr std::int64_t kMostScratch = std::int64_t{1} << 31;

std::uint64_t unit_key(const PlaceNumber& place, Buffer buffer, std::int64_t unit) {
  const auto number = static_cast<std::uint64_t>(place.number);
  const auto kind = static_cast<std::uint64_t>(place.kind);
  return number << 40 | kind << 38 | static_cast<std::uint64_t>(buffer) << 36 |
         static_cast<std::uint64_t>(unit);
}

bool is_same(const PlaceNumber& a, const PlaceNumber& b) {
  return a.kind == b.kind && a.number == b.number;
}

std::string name_of(const PlaceNumber& place) {
  static constexpr const char* kKinds[] = {"rank", "host memory", "relay"};
  return fmt::format("{} {}", kKinds[static_cast<std::size_t>(place.kind)], place.number);
}

/// Whether `b` goes on where `a` ends.
bool goes_on(const SketchSlice& a, const SketchSlice& b) {
  return is_same(a.place, b.place) && a.buffer == b.buffer && a.begin + a.length == b.begin;
}

[[noreturn]] void refuse(const std::string& message, const std::string& suggestion = {}) {
  throw Error(ErrorKind::usage, message, suggestion);
}

/// Gives every op of a place a lane of those with which it shares what `key` says.
class Lanes {
 public:
  int of(PlaceId at, std::vector<std::int64_t> key) {
    auto& known = lanes_[at];
    const auto next = static_cast<int>(known.size()) % kMostLanes;
    return known.try_emplace(std::move(key), next).first->second;
  }

 private:
  std::map<PlaceId, std::map<std::vector<std::int64_t>, int>> lanes_;
};

/// The other places that an op deals with and, where lanes are by block, the first of its blocks.
std::vector<std::int64_t> lane_key(PlaceId at, const std::vector<Slice>& operands, LanesBy lanes,
                                   std::int64_t block_units) {
  std::vector<std::int64_t> key;
  for (const Slice& operand : operands) {
    if (operand.place != at) key.push_back(operand.place);
  }
  std::ranges::sort(key);
  key.erase(std::unique(key.begin(), key.end()), key.end());
  if (lanes == LanesBy::peers_and_blocks) key.push_back(operands.front().begin % block_units);
  return key;
}

}  // namespace

Sketch::Sketch(std::string name, const Contract& contract)
    : name_(std::move(name)), contract_(contract) {}

/// Of a sketch that is a program already: what is added would be lost.
void Sketch::require_open() const {
  if (!is_closed_) return;
  refuse(fmt::format("{} is finished: nothing can be added to it any more", name_),
         "write all ops within the function that @algorithm stands before");
}

PlaceNumber Sketch::place(PlaceKind kind, std::int64_t number) {
  require_open();
  const std::int64_t most = kind == PlaceKind::rank ? contract_.ranks : kMaxPlaces / 4;
  if (number < 0 || number >= most) {
    refuse(fmt::format("there is no {}", name_of({kind, static_cast<int>(number)})),
           fmt::format("0 to {}", most - 1));
  }
  const PlaceNumber made{kind, static_cast<int>(number)};
  if (kind == PlaceKind::host) hosts_ = std::max(hosts_, made.number + 1);
  if (kind == PlaceKind::relay) relays_ = std::max(relays_, made.number + 1);
  return made;
}

Sketch::Part Sketch::part(const PlaceNumber& place, bool is_output) const {
  if (place.kind != PlaceKind::rank) return {};
  const int rank = place.number;
  const Region region = is_output ? output_region(contract_, rank) : input_region(contract_, rank);
  const bool is_own_block = region.units < contract_.units;
  return {region, is_own_block ? rank * (contract_.units / contract_.ranks) : 0};
}

SketchSlice Sketch::slice_of(const PlaceNumber& rank, const BlockRange& blocks,
                             bool is_output) const {
  require_blocks(blocks);
  const Part found = part(rank, is_output);
  const std::int64_t last = blocks.first + blocks.count - 1;
  if (!found.has(blocks.first) || !found.has(last)) {
    const std::string part_name = is_output ? "result" : "input";
    refuse(fmt::format("{} has no block {} in its {}", name_of(rank),
                       found.has(blocks.first) ? last : blocks.first, part_name),
           found.region.units == 0
               ? fmt::format("{} has no {}", name_of(rank), part_name)
               : fmt::format("{} to {}", found.first, found.first + found.region.units - 1));
  }
  return {rank, found.region.buffer, found.region.begin + blocks.first - found.first, blocks.count};
}

SketchSlice Sketch::input(const PlaceNumber& rank, const BlockRange& blocks) const {
  return slice_of(rank, blocks, false);
}

SketchSlice Sketch::output(const PlaceNumber& rank, const BlockRange& blocks) const {
  return slice_of(rank, blocks, true);
}

SketchSlice Sketch::scratch(const PlaceNumber& place, const BlockRange& blocks,
                            std::int64_t slot) const {
  require_blocks(blocks);
  // The first room is for what the sketch keeps by itself.
  if (slot < 0 || slot + 2 > kMostScratch / contract_.units) {
    refuse(fmt::format("there is no room {} for scratch", slot));
  }
  return {place, Buffer::tmp, (slot + 1) * contract_.units + blocks.first, blocks.count};
}

SketchSlice Sketch::kept(const PlaceNumber& place, std::int64_t block) const {
  if (part(place, true).has(block)) return slice_of(place, {block, 1}, true);
  return {place, Buffer::tmp, block, 1};
}

bool Sketch::is_written(const SketchSlice& unit) const {
  return written_.contains(unit_key(unit.place, unit.buffer, unit.begin));
}

SketchSlice Sketch::current(const PlaceNumber& place, std::int64_t block) const {
  const SketchSlice there = kept(place, block);
  if (is_written(there) || !part(place, false).has(block)) return there;
  return slice_of(place, {block, 1}, false);
}

bool Sketch::has(const PlaceNumber& place, std::int64_t block) const {
  return is_written(kept(place, block)) || part(place, false).has(block);
}

void Sketch::require_blocks(const BlockRange& blocks) const {
  if (blocks.count < 1) refuse("a range of blocks has one block at least");
  if (blocks.first < 0 || blocks.first + blocks.count > contract_.units) {
    refuse(fmt::format("there is no block {}",
                       blocks.first < 0 ? blocks.first : blocks.first + blocks.count - 1),
           fmt::format("0 to {}", contract_.units - 1));
  }
}

/// A block has one name wherever it is.
void Sketch::require_named_alike() const {
  if (contract_.collective != Collective::alltoall && contract_.collective != Collective::sendrecv)
    return;
  refuse(fmt::format("what is block b of a rank's input is another block of a result in {}",
                     to_string(contract_.collective)),
         "copy(rank.input(b), rank.output(b)) of slices says which is meant");
}

void Sketch::copy(const PlaceNumber& from, const PlaceNumber& to, const BlockRange& blocks,
                  const std::string& via, const Location& where) {
  require_open();
  require_named_alike();
  require_blocks(blocks);
  Op op{{}, {}, via, false, line_of(where)};
  for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
    const SketchSlice target = kept(to, block);
    const SketchSlice source = current(from, block);
    if (!op.to.empty() && goes_on(op.to[0], target) && goes_on(op.sources[0], source)) {
      ++op.to[0].length;
      ++op.sources[0].length;
      continue;
    }
    if (!op.to.empty()) add(op);
    op.to = {target};
    op.sources = {source};
  }
  add(std::move(op));
}

void Sketch::reduce(std::span<const PlaceNumber> from, const PlaceNumber& to,
                    const BlockRange& blocks, const std::string& via, const Location& where) {
  require_open();
  require_named_alike();
  require_blocks(blocks);
  if (from.empty()) {  // as loops over all other ranks say it where there are none
    for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
      if (has(to, block)) continue;
      refuse(fmt::format("no source is given, and {} has nothing of block {}", name_of(to), block),
             "sources=[...] are the places that have it");
    }
    return;
  }
  const int line = line_of(where);
  std::vector<Op> ops;
  for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
    Op op{{kept(to, block)}, {}, via, false, line};
    if (has(to, block)) op.sources.push_back(current(to, block));
    for (const PlaceNumber& place : from) op.sources.push_back(current(place, block));
    const bool is_same_op = !ops.empty() && goes_on(ops.back().to[0], op.to[0]) &&
                            std::ranges::equal(ops.back().sources, op.sources, goes_on);
    if (!is_same_op) {
      ops.push_back(std::move(op));
      continue;
    }
    ++ops.back().to[0].length;
    for (SketchSlice& source : ops.back().sources) ++source.length;
  }
  for (Op& op : ops) add(std::move(op));
}

void Sketch::combine(const SketchSlice& to, std::vector<SketchSlice> sources,
                     const std::string& via, const Location& where) {
  require_open();
  add({{to}, std::move(sources), via, false, line_of(where)});
}

void Sketch::in_switch(std::vector<SketchSlice> to, std::vector<SketchSlice> sources,
                       const Location& where) {
  require_open();
  add({std::move(to), std::move(sources), {}, true, line_of(where)});
}

/// What the builder takes for granted, and whoever writes ops by hand may get wrong.
void Sketch::require_operands(const Op& op) const {
  if (op.to.empty() || op.sources.empty()) refuse("an op has a source and a destination");
  const SketchSlice& first = op.to.front();
  const std::int64_t block = block_units(contract_);
  const auto require_alike = [&](const SketchSlice& slice) {
    if (slice.length != first.length) {
      refuse(fmt::format("slices of {} and of {} in one op",
                         counted(static_cast<std::size_t>(slice.length), "block"),
                         counted(static_cast<std::size_t>(first.length), "block")),
             "all of them have as many blocks");
    }
    if (slice.begin % block != first.begin % block) {
      refuse("blocks that are different parts of the message in one op",
             "not all have as many elements [R4]");
    }
  };
  std::ranges::for_each(op.sources, require_alike);
  for (const SketchSlice& to : op.to) {
    require_alike(to);
    for (const SketchSlice& source : op.sources) {
      const bool is_beside = !is_same(to.place, source.place) || to.buffer != source.buffer ||
                             to.begin + to.length <= source.begin ||
                             source.begin + source.length <= to.begin;
      if (!is_beside && to.begin != source.begin) {
        refuse("a destination that overlaps a source in part", "[R4]");
      }
    }
  }
}

void Sketch::add(Op op) {
  require_operands(op);
  for (const SketchSlice& to : op.to) {
    for (std::int64_t unit = to.begin; unit < to.begin + to.length; ++unit) {
      written_.insert(unit_key(to.place, to.buffer, unit));
    }
  }
  ops_.push_back(std::move(op));
}

/// The same place as often as not: loops write many ops on one line.
int Sketch::line_of(const Location& where) {
  if (places_.empty() || places_.back() != where) {
    const auto known = std::ranges::find(places_, where);
    if (known != places_.end()) return static_cast<int>(known - places_.begin()) + 1;
    places_.push_back(where);
  }
  return static_cast<int>(places_.size());
}

/// A unit of a result that nobody wrote and that is the rank's own input.
void Sketch::add_kept_inputs(int line) {
  for (int rank = 0; rank < contract_.ranks; ++rank) {
    check_interruption();
    const Region input = input_region(contract_, rank);
    const Region output = output_region(contract_, rank);
    const PlaceNumber place{PlaceKind::rank, rank};
    Op op{{}, {}, {}, false, line};
    for (std::int64_t unit = 0; unit < output.units; ++unit) {
      const Origin origin = origin_of(contract_, rank, unit);
      const bool is_own = origin.rank == rank || (origin.rank < 0 && contract_.ranks == 1);
      const SketchSlice to{place, output.buffer, output.begin + unit, 1};
      if (!is_own || is_written(to)) continue;
      const SketchSlice from{place, input.buffer, input.begin + origin.unit, 1};
      if (!op.to.empty() && goes_on(op.to[0], to) && goes_on(op.sources[0], from)) {
        ++op.to[0].length;
        ++op.sources[0].length;
        continue;
      }
      if (!op.to.empty()) add(op);
      op.to = {to};
      op.sources = {from};
    }
    if (!op.to.empty()) add(std::move(op));
  }
}

Program Sketch::built(LanesBy by) const {
  Builder builder(name_, contract_);
  for (int host = 0; host < hosts_; ++host) builder.add_host();
  for (int relay = 0; relay < relays_; ++relay) builder.add_relay();
  builder.reserve(ops_.size());
  const int first_of_kind[] = {0, contract_.ranks, contract_.ranks + hosts_};
  const auto built_slice = [&](const SketchSlice& slice) {
    const PlaceId place =
        first_of_kind[static_cast<std::size_t>(slice.place.kind)] + slice.place.number;
    return Slice{place, slice.buffer, slice.begin, slice.length};
  };
  Lanes lanes;
  std::vector<int> lines;
  for (const Op& op : ops_) {
    std::vector<Slice> to;
    std::vector<Slice> sources;
    std::ranges::transform(op.to, std::back_inserter(to), built_slice);
    std::ranges::transform(op.sources, std::back_inserter(sources), built_slice);
    // In place, a rank has its input where it is to be.
    if (!op.in_switch && sources.size() == 1 && sources[0] == to[0]) continue;
    OpOptions options;
    options.via = op.via;
    options.at = sources.size() == 1 ? sources[0].place : to[0].place;
    std::vector<Slice> operands = sources;
    operands.insert(operands.end(), to.begin(), to.end());
    options.lane = lanes.of(options.at, lane_key(options.at, operands, by, block_units(contract_)));
    if (op.in_switch) {
      builder.in_switch(to, sources, options);
    } else {
      builder.combine(to[0], sources, options);
    }
    lines.push_back(op.line);
  }
  Program program = builder.finish();
  CHECK(program.ops.size() == lines.size());
  program.lines = std::move(lines);
  return program;
}

SketchedProgram Sketch::finish(const Location& where) {
  CHECK(is_closed_);
  add_kept_inputs(line_of(where));
  SketchedProgram made{built(LanesBy::peers), built(LanesBy::peers_and_blocks), places_};
  if (same_program(made.program, *made.by_block)) made.by_block.reset();
  return made;
}

}  // namespace espalier
