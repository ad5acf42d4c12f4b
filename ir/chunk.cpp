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

namespace espalier {
namespace {

/// Sizes are doubles: a chunk that divides a unit exactly must not look a little too small.
constexpr double kTolerance = 1e-9;

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// How many pieces ops are cut into. Keeps references to its arguments.
class Pieces {
 public:
  Pieces(const Program& program, const Chunking& chunking)
      : chunking_(chunking), block_(block_units(program.contract)) {
    if (!chunking.stagger) return;
    for (const Op& op : program.ops) {
      if (op.kind != OpKind::combine) continue;
      const std::int64_t begin = op.dst.begin % block_;
      const auto [lane, is_new] = stretches_.try_emplace({op.at, op.lane}, begin, begin);
      lane->second.first = std::min(lane->second.first, begin);
      lane->second.second = std::max<std::int64_t>(lane->second.second, begin + op.length);
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

  std::int64_t count(const Program& program) const {
    std::int64_t pieces = 0;
    for (const Op& op : program.ops) pieces += count(op);
    return pieces;
  }

 private:
  /// Whether its lane is every other one of those that divide a block among them. The lane's number
  /// must not decide: formats number lanes anew.
  bool is_staggered(const Op& op) const {
    if (!chunking_.stagger) return false;
    const auto [begin, end] = stretches_.at({op.at, op.lane});
    return begin / (end - begin) % 2 == 1;
  }

  const Chunking& chunking_;
  const std::int64_t block_;  ///< operands of an op are at the same place of one (rule R4)
  /// What the ops of a lane move, by place and lane: from the first to the last unit of a block.
  std::map<std::pair<PlaceId, int>, std::pair<std::int64_t, std::int64_t>> stretches_;
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

/// Cuts one op after the other and remembers which pieces became of it.
class Cutter {
 public:
  /// Keeps references to its arguments. `pieces`: those of the program with this chunking.
  Cutter(const Program& program, const Chunking& chunking, const Pieces& pieces)
      : program_(program),
        chunking_(chunking),
        pieces_(pieces),
        builder_(program.name, finer_contract(program, chunking), finer(program.fold, chunking)),
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
  static Contract finer_contract(const Program& program, const Chunking& chunking) {
    Contract contract = program.contract;
    contract.units *= chunking.split;
    return contract;
  }

  static Fold finer(const Fold& fold, const Chunking& chunking) {
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

  void cut_combine(OpId id, const Op& op, const OpOptions& options) {
    const std::int64_t length = op.length * chunking_.split;
    const std::int64_t whole = pieces_.whole(op);
    const std::int64_t pieces = pieces_.count(op);
    // Counted in half pieces; one more piece than whole ones fit means that the first is half.
    const std::int64_t shift = pieces > whole ? 1 : 0;
    const auto border = [&](std::int64_t piece) {
      return length * std::clamp<std::int64_t>(2 * piece - shift, 0, 2 * whole) / (2 * whole);
    };
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

Program chunk(const Program& program, const Chunking& chunking) {
  CHECK(chunking.split >= 1 && chunking.piece_units >= 1);
  CHECK(chunking.split <= kMaxUnits / program.contract.units);
  const Pieces pieces(program, chunking);
  const bool whole =
      std::ranges::all_of(program.ops, [&](const Op& op) { return pieces.count(op) == 1; });
  if (whole && chunking.split == 1) return program;
  const std::vector<OpId> order = run_order(program, lane_chains(program));
  CHECK(order.size() == program.ops.size());
  Cutter cutter(program, chunking, pieces);
  for (const OpId op : order) cutter.cut(op);
  return cutter.finish();
}

}  // namespace espalier
