// SPDX-License-Identifier: Apache-2.0
#include "ir/chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interruption.h"
#include "ir/builder.h"
#include "ir/op_order.h"
#include "ir/unfold.h"

// What `verify` says of a program holds for what it is cut into, too. Pieces stay within the slices
// of their ops, and come in an order in which the program can run, op by op: dependencies lead back
// in it (R3), and those that are derived order all that conflict (R6). Taken in that order, every
// unit goes through what it goes through in the program, from the same operands: an op's sources do
// not partly overlap with what it writes (R4), so that no piece reads what one before it wrote. So
// units end up as before (R5, R7 to R9), and finer ones as those that they are part of. Folded
// programs with slices of whole periods are another matter, as pieces of these turn: they are not
// to be cut (may_be_cut).

namespace espalier {
namespace {

/// Sizes are doubles: a chunk that divides a unit exactly must not look a little too small.
constexpr double kTolerance = 1e-9;

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Where the pieces of an op begin, in finer units from its first.
struct Borders {
  std::int64_t length = 0;  ///< of the op
  std::int64_t whole = 1;   ///< pieces, unless the first is half of one
  std::int64_t shift = 0;   ///< 1: it is

  /// Counted in half pieces. Of the last piece and one more it is the end.
  std::int64_t operator()(std::int64_t piece) const {
    return length * std::clamp<std::int64_t>(2 * piece - shift, 0, 2 * whole) / (2 * whole);
  }
};

/// What the ops of a lane move of a block: from the first to the last unit.
struct Stretch {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;

  void add(std::int64_t from, std::int64_t length) {
    begin = std::min(begin, from);
    end = std::max(end, from + length);
  }
  /// Whether the lane is every other one of those that divide the block among them. Its number must
  /// not decide: formats number lanes anew.
  bool begins_with_half() const {
    CHECK(begin < end);
    return begin / (end - begin) % 2 == 1;
  }
};

/// How many pieces ops are cut into. Keeps references to its arguments.
class Pieces {
 public:
  Pieces(const Program& program, const Chunking& chunking)
      : chunking_(chunking), block_(block_units(program.contract)) {
    if (!chunking.stagger) return;
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::combine) continue;
      stretches_[{op.at, op.lane}].add(op.dst.begin % block_, op.length);
    }
  }

  std::int64_t whole(const Op& op) const {
    return ceil_divide(op.length * chunking_.split, chunking_.piece_units);
  }

  std::int64_t count(const Op& op) const {
    if (op.kind != OpKind::combine) return 1;
    const std::int64_t pieces = whole(op);
    // Every piece has two units or more then, and half of one is not empty.
    const bool may_begin_with_half = pieces > 1 && op.length * chunking_.split >= 2 * pieces;
    return pieces + (may_begin_with_half && is_staggered(op) ? 1 : 0);
  }

  /// \pre it is a combine
  Borders borders(const Op& op) const {
    const std::int64_t whole = this->whole(op);
    return {op.length * chunking_.split, whole, count(op) - whole};
  }

  std::int64_t count(const Program& program) const {
    std::int64_t pieces = 0;
    for (const Op& op : program.ops) pieces += count(op);
    return pieces;
  }

 private:
  bool is_staggered(const Op& op) const {
    return chunking_.stagger && stretches_.at({op.at, op.lane}).begins_with_half();
  }

  const Chunking& chunking_;
  const std::int64_t block_;  ///< operands of an op are at the same place of one (rule R4)
  std::map<std::pair<PlaceId, int>, Stretch> stretches_;  ///< by place and lane
};

/// How fine units may become: the message and every tmp buffer stay addressable, and single finer
/// units as pieces stay under `max_ops`. At least 1.
std::int64_t largest_split(const Program& program, std::int64_t max_ops) {
  std::int64_t maximum = kMaxUnits / program.contract.units;
  for (const std::int64_t units : tmp_units(program)) {
    if (units > 0) maximum = std::min(maximum, std::numeric_limits<std::uint32_t>::max() / units);
  }
  const Chunking single{1, 1};
  const std::int64_t single_units = Pieces(program, single).count(program);
  if (single_units > 0) maximum = std::min(maximum, max_ops / single_units);
  return std::max<std::int64_t>(maximum, 1);
}

/// The smallest pieces, of this many units or more, that keep the program under `max_ops`.
std::int64_t enlarge_pieces(const Program& program, std::int64_t piece_units,
                            std::int64_t max_ops) {
  std::int64_t enough = kMaxUnits;
  while (piece_units < enough) {
    check_interruption();
    const std::int64_t middle = piece_units + (enough - piece_units) / 2;
    const Chunking chunking{1, middle};
    if (Pieces(program, chunking).count(program) <= max_ops) {
      enough = middle;
    } else {
      piece_units = middle + 1;
    }
  }
  return enough;
}

Contract finer_contract(const Program& program, const Chunking& chunking) {
  Contract contract = program.contract;
  contract.units *= chunking.split;
  return contract;
}

Fold finer_fold(const Fold& fold, const Chunking& chunking) {
  Fold finer = fold;
  finer.dependency_groups.clear();
  for (Fold::Turns& turns : finer.turns) {
    for (Fold::Turn* const turn : {&turns.most, &turns.rest}) {
      turn->period *= chunking.split;
      turn->step *= chunking.split;
    }
    if (turns.rest_begin < std::numeric_limits<std::int64_t>::max()) {
      turns.rest_begin *= chunking.split;
    }
  }
  return finer;
}

/// Cuts one op after the other and remembers which pieces became of it.
class Cutter {
 public:
  /// Keeps references to its arguments. `pieces`: those of the program with this chunking.
  Cutter(const Program& program, const Chunking& chunking, const Pieces& pieces)
      : program_(program),
        chunking_(chunking),
        pieces_(pieces),
        builder_(program.name, finer_contract(program, chunking),
                 finer_fold(program.fold, chunking)),
        first_piece_(program.ops.size()),
        last_piece_(program.ops.size()) {
    for (int host = 0; host < program.hosts; ++host) builder_.add_host();
    for (int relay = 0; relay < program.relays; ++relay) builder_.add_relay();
    builder_.reserve(static_cast<std::size_t>(pieces_.count(program)));
  }

  void cut(OpId id) {
    const Op& op = program_.ops[id];
    OpOptions options{.lane = op.lane, .at = op.at, .via = {}};
    if (op.via >= 0) options.via = program_.vias[op.via];
    if (op.kind != OpKind::combine) {
      first_piece_[id] = builder_.busy(op.kind, op.at, program_.duration_s(op), options);
      last_piece_[id] = first_piece_[id];
    } else {
      cut_combine(id, op, options);
    }
    if (!program_.lines.empty()) {
      lines_.insert(lines_.end(), last_piece_[id] - first_piece_[id] + 1, program_.lines[id]);
    }
    // Data flow orders the pieces of ops that conflict. Pieces of one op share a lane, so that here
    // the first after the last is every one after every one.
    for (const OpId earlier : program_.dependencies_of(op)) {
      if (conflict(program_, program_.ops[earlier], op)) continue;
      builder_.after(first_piece_[id], last_piece_[earlier]);
    }
  }

  Program finish() {
    Program cut = builder_.finish();
    cut.lines = std::move(lines_);
    return cut;
  }

 private:
  void cut_combine(OpId id, const Op& op, const OpOptions& options) {
    const std::int64_t pieces = pieces_.count(op);
    const Borders border = pieces_.borders(op);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t begin = border(piece);
      const std::int64_t end = border(piece + 1);
      const auto part = [&](const Operand& operand) {
        return Slice{operand.place, operand.buffer, operand.begin * chunking_.split + begin,
                     end - begin};
      };
      parts_.clear();
      for (const Operand& src : program_.sources_of(op)) parts_.push_back(part(src));
      if (op.in_switch) {
        written_.clear();
        for_each_destination(program_, op,
                             [&](const Operand& dst) { written_.push_back(part(dst)); });
        last_piece_[id] = builder_.in_switch(written_, parts_, options);
      } else {
        last_piece_[id] = builder_.combine(part(op.dst), parts_, options);
      }
      if (piece == 0) first_piece_[id] = last_piece_[id];
    }
  }

  const Program& program_;
  const Chunking& chunking_;
  const Pieces& pieces_;
  Builder builder_;
  std::vector<OpId> first_piece_;  ///< by op
  std::vector<OpId> last_piece_;   ///< by op
  std::vector<int> lines_;         ///< by piece
  std::vector<Slice> parts_;       ///< sources of the piece in the making
  std::vector<Slice> written_;     ///< its destinations, in a switch
};

/// Whether ops that conflict do so on the same slice each time, which all of them cut at the same
/// places: then a piece conflicts with the pieces of the same number, and with no other. In a
/// folded program, on what is the same slice to their groups, and whose pieces are moved with it.
bool conflict_piece_by_piece(const Program& program, const Pieces& pieces) {
  struct Access {
    std::uint64_t buffer = 0;
    std::uint32_t begin = 0;
    std::uint32_t length = 0;
    std::int64_t shift = 0;
    bool writes = false;
    bool is_cut_as(const Access& other) const {
      return begin == other.begin && length == other.length && shift == other.shift;
    }
  };
  std::vector<Access> all;
  all.reserve(program.ops.size() + program.sources.size());
  const Fold& fold = program.fold;
  bool are_moved = true;
  for (const Op& op : program.ops) {
    const std::int64_t shift = pieces.borders(op).shift;
    const auto add = [&](const Operand& operand, bool writes) {
      // Slices of whole periods stay where they are, but their pieces would be turned.
      are_moved = are_moved &&
                  (!fold.is_folded() ||
                   op.length <= fold.stay_together(operand.place, operand.buffer, operand.begin));
      const Operand one = packed_in_first_group(fold, operand, op.length);
      const std::uint64_t buffer =
          static_cast<std::uint64_t>(one.place) << 2 | static_cast<std::uint64_t>(one.buffer);
      all.push_back({buffer, one.begin, op.length, shift, writes});
    };
    for (const Operand& source : program.sources_of(op)) add(source, false);
    for_each_destination(program, op, [&](const Operand& one) { add(one, true); });
  }
  if (!are_moved) return false;
  std::ranges::sort(all, {}, [](const Access& one) { return std::pair(one.buffer, one.begin); });
  // Slices that overlap, one after the other, are what is read only, or all the same one.
  std::int64_t end = 0;
  bool is_written = false;
  bool is_same = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Access& one = all[i];
    const bool overlaps = i > 0 && all[i - 1].buffer == one.buffer && one.begin < end;
    if (!overlaps) end = 0;
    is_written = (overlaps && is_written) || one.writes;
    is_same = !overlaps || (is_same && one.is_cut_as(all[i - 1]));
    if (is_written && !is_same) return false;
    end = std::max(end, std::int64_t{one.begin} + one.length);
  }
  return true;
}

/// Cuts every op by itself: its pieces wait for those of the same number. \pre `whole` has the
/// dependencies that the Builder derives and no others, and conflict_piece_by_piece
Program cut_each(const Program& whole, const Chunking& chunking, const Pieces& pieces) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  Program cut;
  cut.name = whole.name;
  cut.contract = finer_contract(whole, chunking);
  cut.hosts = whole.hosts;
  cut.relays = whole.relays;
  cut.vias = whole.vias;
  cut.fold = finer_fold(whole.fold, chunking);
  const auto count = static_cast<std::size_t>(pieces.count(whole));
  CHECK(count < kMost);
  cut.ops.reserve(count);
  std::int64_t operands = 0;
  std::int64_t dependencies = 0;
  for (const Op& op : whole.ops) {
    const std::int64_t parts = pieces.count(op);
    operands += parts * (op.src_count + op.copy_count);
    dependencies += parts * op.dep_count;
  }
  CHECK(operands < kMost && dependencies < kMost);
  cut.sources.reserve(static_cast<std::size_t>(operands));
  cut.dependencies.reserve(static_cast<std::size_t>(dependencies));
  const bool is_folded = whole.fold.is_folded();
  if (is_folded) cut.fold.dependency_groups.reserve(static_cast<std::size_t>(dependencies));
  std::vector<OpId> first_piece;
  first_piece.reserve(whole.ops.size());
  for (OpId id = 0; id < whole.ops.size(); ++id) {
    const Op& op = whole.ops[id];
    const std::int64_t parts = pieces.count(op);
    const Borders border = pieces.borders(op);
    first_piece.push_back(static_cast<OpId>(cut.ops.size()));
    for (std::int64_t piece = 0; piece < parts; ++piece) {
      check_interruption_at(cut.ops.size());
      const std::int64_t begin = border(piece);
      const auto part = [&](Operand operand) {
        CHECK(operand.begin * chunking.split + border.length <= kMost);
        operand.begin = static_cast<std::uint32_t>(operand.begin * chunking.split + begin);
        return operand;
      };
      Op& made = cut.ops.emplace_back(op);
      made.dst = part(op.dst);
      made.length = static_cast<std::uint32_t>(border(piece + 1) - begin);
      made.src_begin = static_cast<std::uint32_t>(cut.sources.size());
      made.dep_begin = static_cast<std::uint32_t>(cut.dependencies.size());
      for (const Operand& source : whole.sources_of(op)) cut.sources.push_back(part(source));
      for (const Operand& copy : whole.copies_of(op)) cut.sources.push_back(part(copy));
      for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
        cut.dependencies.push_back(first_piece[whole.dependencies[i]] + static_cast<OpId>(piece));
        if (is_folded) {
          cut.fold.dependency_groups.push_back(whole.fold.dependency_groups[i]);
        }
      }
    }
    if (!whole.lines.empty()) {
      cut.lines.insert(cut.lines.end(), static_cast<std::size_t>(parts), whole.lines[id]);
    }
  }
  return cut;
}

/// Whether slices cover all that lies between the first and the last of their units, and that is
/// whole periods: it is then the same units in every group.
bool covers_periods(const Fold& fold, std::vector<std::pair<std::int64_t, std::int64_t>> slices) {
  std::ranges::sort(slices);
  const auto& [most, rest_begin, rest] = fold.turns[static_cast<std::size_t>(Buffer::out)];
  std::int64_t end = slices.front().first;
  if (end % most.period != 0) return false;
  for (const auto& [begin, length] : slices) {
    if (begin > end) return false;
    end = std::max(end, begin + length);
  }
  return end % most.period == 0 && end <= rest_begin;
}

/// Whether the order of ops is that of their data, and nothing but data is about.
bool is_data_flow(const Program& program) {
  return std::ranges::all_of(program.ops, [&](const Op& op) {
    return op.kind == OpKind::combine &&
           std::ranges::all_of(program.dependencies_of(op), [&](OpId earlier) {
             return conflict(program, program.ops[earlier], op);
           });
  });
}

}  // namespace

Chunking plan_chunking(const Program& program, double size_bytes, double chunk_bytes,
                       std::int64_t max_ops, bool stagger) {
  CHECK(std::isfinite(size_bytes) && std::isfinite(chunk_bytes));
  CHECK(size_bytes >= 0 && chunk_bytes >= 0);
  Chunking chunking;
  chunking.stagger = stagger;
  if (size_bytes == 0 || chunk_bytes == 0) return chunking;
  const double units_per_chunk =
      chunk_bytes * static_cast<double>(program.contract.units) / size_bytes;
  if (units_per_chunk * (1 + kTolerance) < 1) {
    const double wanted = std::ceil((1 - kTolerance) / units_per_chunk);
    const auto maximum = static_cast<double>(largest_split(program, max_ops));
    chunking.split = static_cast<std::int64_t>(std::min(wanted, maximum));
    chunking.piece_units = 1;
    if (stagger && chunking.split * 2 <= kMaxUnits / program.contract.units) {
      chunking.split *= 2;
      chunking.piece_units = 2;
    }
  } else {
    const double wanted = std::floor(units_per_chunk * (1 + kTolerance));
    chunking.piece_units =
        static_cast<std::int64_t>(std::min(wanted, static_cast<double>(kMaxUnits)));
  }
  if (Pieces(program, chunking).count(program) > max_ops) {
    chunking = {1, enlarge_pieces(program, chunking.piece_units, max_ops), stagger};
  }
  return chunking;
}

bool staggers_alike(const Program& program) {
  const Fold& fold = program.fold;
  const std::int64_t block = block_units(program.contract);
  std::map<std::pair<PlaceId, int>, std::vector<const Op*>> lanes;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::combine) lanes[{op.at, op.lane}].push_back(&op);
  }
  return std::ranges::all_of(lanes, [&](const auto& lane) {
    const std::vector<const Op*>& ops = lane.second;
    std::vector<std::pair<std::int64_t, std::int64_t>> slices;
    for (const Op* op : ops) slices.emplace_back(op->dst.begin, op->length);
    const auto is_output = [](const Op* op) { return op->dst.buffer == Buffer::out; };
    const bool is_one_block = block == program.contract.units;
    if (is_one_block && std::ranges::all_of(ops, is_output) && covers_periods(fold, slices)) {
      return true;
    }
    const auto is_staggered = [&](int group) {
      Stretch stretch;
      for (const Op* op : ops) {
        stretch.add(fold.moved(op->dst.buffer, op->dst.begin, op->length, group) % block,
                    op->length);
      }
      return stretch.begins_with_half();
    };
    const bool of_first = is_staggered(0);
    for (int group = 1; group < fold.groups; ++group) {
      check_interruption_at(static_cast<std::size_t>(group));
      if (is_staggered(group) != of_first) return false;
    }
    return true;
  });
}

Program chunk(const Program& program, const Chunking& chunking) {
  CHECK(chunking.split >= 1 && chunking.piece_units >= 1);
  CHECK(chunking.split <= kMaxUnits / program.contract.units);
  const Pieces pieces(program, chunking);
  const bool whole =
      std::ranges::all_of(program.ops, [&](const Op& op) { return pieces.count(op) == 1; });
  if (whole && chunking.split == 1) return program;
  CHECK(may_be_cut(program));
  const std::vector<OpId> order = run_order(program, lane_chains(program));
  CHECK(order.size() == program.ops.size());
  const auto with = [&](const Chunking& used, const Pieces& its_pieces) {
    Cutter cutter(program, used, its_pieces);
    for (const OpId op : order) cutter.cut(op);
    return cutter.finish();
  };
  // Of ops that cut what they conflict about at the same places, the k-th piece conflicts with the
  // k-th pieces of the ops that the op conflicts with, and with nothing else. Of these the newest
  // on a lane is that of the newest op there. So pieces need not be looked at one by one.
  const bool is_each = is_data_flow(program) && conflict_piece_by_piece(program, pieces);
  if (!is_each) return with(chunking, pieces);
  const Chunking uncut{1, std::numeric_limits<std::int64_t>::max()};
  return cut_each(with(uncut, Pieces(program, uncut)), chunking, pieces);
}

}  // namespace espalier
