// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace espalier {

/// How slices are cut into pieces: every unit becomes `split` finer ones, and a piece has at most
/// `piece_units` of those. {1, huge} leaves a program as it is.
struct Chunking {
  std::int64_t split = 1;
  std::int64_t piece_units = kMaxUnits;
  /// Every other of the lanes that divide a block of the message among them begins with half a
  /// piece: where it shares a link with its neighbour, its start-ups then fall into the middle of
  /// the neighbour's transfers.
  bool stagger = false;
  bool operator==(const Chunking&) const = default;
};

/// The coarsest chunking in which no op moves more than `chunk_bytes` of a message
/// of `size_bytes`. 0 means "do not cut". Pieces are larger if the program would
/// otherwise have more than `max_ops` ops, or more units than a program may have.
Chunking plan_chunking(const Program& program, double size_bytes, double chunk_bytes,
                       std::int64_t max_ops = 4'000'000, bool stagger = false);

/// Cuts every op into pieces that keep its lane and order, and derives the dependencies anew, piece
/// by piece, so that trees and chains pipeline. Dependencies between ops that share no data (see
/// Builder::after) hold between all their pieces. The pieces of an op follow each other and, but
/// for the half ones of staggered ops, differ by at most one unit. \pre `program` passed `verify`:
/// its ops can run, in an order that data flow agrees with, and its operands stay aligned (rule R4)
/// when cut alike.
Program chunk(const Program& program, const Chunking& chunking);

/// Whether in every group of a folded program the same lanes are staggered as in the first. Where
/// they are not, what it is cut into is not what all ops are cut into.
bool staggers_alike(const Program& program);

}  // namespace espalier
