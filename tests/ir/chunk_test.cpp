// SPDX-License-Identifier: Apache-2.0
#include "ir/chunk.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/ir/built_again.h"
#include "tests/ir/random_program.h"

namespace espalier {
namespace {

/// A broadcast of `units` units along 0 -> 1 -> 2, each hop one op.
Program chain(std::int64_t units) {
  Builder b("chain", {Collective::broadcast, 3, 0, units, false});
  b.copy(b.output(0, 0, units), b.input(0, 0, units), {.lane = 1});
  b.copy(b.output(1, 0, units), b.input(0, 0, units));
  b.copy(b.output(2, 0, units), b.output(1, 0, units));
  return b.finish();
}

TEST(Chunk, WithoutCutsItIsTheSameProgram) {
  const Program program = chain(5);
  EXPECT_TRUE(same_program(chunk(program, {}), program));
  EXPECT_TRUE(same_program(chunk(program, {1, 5}), program));
}

TEST(Chunk, ChainsPipeline) {
  EXPECT_EQ(print_program(chunk(chain(3), {1, 1})),
            "program chain\n"
            "collective broadcast root 0\n"
            "ranks 3\n"
            "units 3\n"
            "0: r0.out[0] <- r0.in[0] lane 1\n"
            "1: r0.out[1] <- r0.in[1] lane 1\n"
            "2: r0.out[2] <- r0.in[2] lane 1\n"
            "3: r1.out[0] <- r0.in[0]\n"
            "4: r1.out[1] <- r0.in[1]\n"
            "5: r1.out[2] <- r0.in[2]\n"
            "6: r2.out[0] <- r1.out[0] after 3\n"
            "7: r2.out[1] <- r1.out[1] after 4\n"
            "8: r2.out[2] <- r1.out[2] after 5\n");
}

TEST(Chunk, SplitsUnits) {
  EXPECT_EQ(print_program(chunk(chain(1), {4, 2})),
            "program chain\n"
            "collective broadcast root 0\n"
            "ranks 3\n"
            "units 4\n"
            "0: r0.out[0:2] <- r0.in[0:2] lane 1\n"
            "1: r0.out[2:4] <- r0.in[2:4] lane 1\n"
            "2: r1.out[0:2] <- r0.in[0:2]\n"
            "3: r1.out[2:4] <- r0.in[2:4]\n"
            "4: r2.out[0:2] <- r1.out[0:2] after 2\n"
            "5: r2.out[2:4] <- r1.out[2:4] after 3\n");
}

TEST(Chunk, PiecesDifferByOneUnitAtMost) {
  // 10 units in pieces of at most 4 are three: 3, 3 and 4.
  const Program program = chunk(chain(10), {1, 4});
  ASSERT_EQ(program.ops.size(), 9u);
  for (OpId first : {0u, 3u, 6u}) {
    EXPECT_EQ(program.ops[first].length, 3u);
    EXPECT_EQ(program.ops[first + 1].length, 3u);
    EXPECT_EQ(program.ops[first + 2].length, 4u);
  }
}

TEST(Chunk, ExtraDependenciesHoldBetweenAllPieces) {
  Builder b("extra", {Collective::sendrecv, 3, 0, 2, false});
  const OpId a = b.copy(b.output(1, 0, 2), b.input(0, 0, 2));
  const OpId c = b.copy(b.output(2, 0, 2), b.input(1, 0, 2));
  const OpId work = b.compute(2, 0.5);
  b.copy(b.output(0, 0, 2), b.input(2, 0, 2));
  b.after(c, a);
  b.after(work, c);
  EXPECT_EQ(print_program(chunk(b.finish(), {1, 1})),
            "program extra\n"
            "collective sendrecv\n"
            "ranks 3\n"
            "units 2\n"
            "0: r1.out[0] <- r0.in[0]\n"
            "1: r1.out[1] <- r0.in[1]\n"
            "2: r2.out[0] <- r1.in[0] after 1\n"
            "3: r2.out[1] <- r1.in[1]\n"
            "4: compute 0.5 at r2 after 3\n"
            "5: r0.out[0] <- r2.in[0]\n"
            "6: r0.out[1] <- r2.in[1]\n");
}

TEST(Chunk, OpsThatDependOnLaterOnesComeInAnOrderThatRuns) {
  const Program program = parse_program(
      "program backwards\n"
      "collective broadcast root 0\n"
      "ranks 3\n"
      "units 2\n"
      "0: r2.out[0:2] <- r1.out[0:2] after 1\n"
      "1: r1.out[0:2] <- r0.in[0:2]\n"
      "2: r0.out[0:2] <- r0.in[0:2]\n",
      "backwards.esp");
  const Program cut = chunk(program, {1, 1});
  EXPECT_EQ(print_program(cut),
            "program backwards\n"
            "collective broadcast root 0\n"
            "ranks 3\n"
            "units 2\n"
            "0: r1.out[0] <- r0.in[0]\n"
            "1: r1.out[1] <- r0.in[1]\n"
            "2: r2.out[0] <- r1.out[0] after 0\n"
            "3: r2.out[1] <- r1.out[1] after 1\n"
            "4: r0.out[0] <- r0.in[0]\n"
            "5: r0.out[1] <- r0.in[1]\n");
  EXPECT_EQ(cut.lines, (std::vector<int>{6, 6, 5, 5, 7, 7}));
}

// Random programs: what pieces cover, how they are aligned, and in which order they run.

struct Cut {
  Program whole;
  Program pieces;
  Chunking chunking;
  std::vector<OpId> first;  ///< piece of each op, and one past the last
};

Cut random_cut(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Cut cut;
  cut.whole = random_program(random, {.max_units = 6, .max_ops = 20});
  cut.chunking.split = std::uniform_int_distribution<std::int64_t>(1, 3)(random);
  cut.chunking.piece_units = std::uniform_int_distribution<std::int64_t>(1, 5)(random);
  cut.pieces = chunk(cut.whole, cut.chunking);
  cut.first.push_back(0);
  for (const Op& op : cut.whole.ops) {
    std::int64_t pieces = 1;
    while (pieces * cut.chunking.piece_units < op.length * cut.chunking.split) ++pieces;
    cut.first.push_back(cut.first.back() + static_cast<OpId>(pieces));
  }
  return cut;
}

TEST(Chunk, PiecesCoverTheirOpAndStayAligned) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Cut cut = random_cut(seed);
    const std::int64_t split = cut.chunking.split;
    const std::int64_t block = block_units(cut.pieces.contract);
    EXPECT_EQ(block, block_units(cut.whole.contract) * split);
    ASSERT_EQ(cut.pieces.ops.size(), cut.first.back());
    for (std::size_t id = 0; id < cut.whole.ops.size(); ++id) {
      const Op& op = cut.whole.ops[id];
      std::int64_t covered = 0;
      for (OpId p = cut.first[id]; p < cut.first[id + 1]; ++p) {
        const Op& piece = cut.pieces.ops[p];
        EXPECT_EQ(piece.kind, op.kind);
        EXPECT_EQ(piece.at, op.at);
        EXPECT_EQ(piece.lane, op.lane);
        ASSERT_EQ(piece.via < 0, op.via < 0);
        if (op.via >= 0) {
          EXPECT_EQ(cut.pieces.vias[piece.via], cut.whole.vias[op.via]);
        }
        if (op.kind != OpKind::combine) {
          EXPECT_EQ(piece.kind, op.kind);
          EXPECT_EQ(cut.pieces.duration_s(piece), cut.whole.duration_s(op));
          continue;
        }
        EXPECT_LE(piece.length, cut.chunking.piece_units);
        EXPECT_EQ(piece.dst.place, op.dst.place);
        EXPECT_EQ(piece.dst.buffer, op.dst.buffer);
        EXPECT_EQ(piece.dst.begin, op.dst.begin * split + covered);
        ASSERT_EQ(piece.src_count, op.src_count);
        for (std::uint32_t k = 0; k < op.src_count; ++k) {
          const Operand& src = cut.pieces.sources_of(piece)[k];
          const Operand& whole_src = cut.whole.sources_of(op)[k];
          EXPECT_EQ(src.place, whole_src.place);
          EXPECT_EQ(src.buffer, whole_src.buffer);
          EXPECT_EQ(src.begin, whole_src.begin * split + covered);
          EXPECT_EQ(src.begin % block, piece.dst.begin % block);
        }
        covered += piece.length;
      }
      EXPECT_EQ(covered, op.length * split);
    }
  }
}

TEST(Chunk, PiecesKeepTheOrderOfTheirOps) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Cut cut = random_cut(seed);
    const auto before = happens_before(cut.pieces);
    for (OpId b = 0; b < cut.whole.ops.size(); ++b) {
      for (OpId a = 0; a < b; ++a) {
        const bool by_data = touch_same_units(cut.whole, cut.whole.ops[a], cut.whole.ops[b]);
        const auto dependencies = cut.whole.dependencies_of(cut.whole.ops[b]);
        const bool extra = !by_data && std::find(dependencies.begin(), dependencies.end(), a) !=
                                           dependencies.end();
        for (OpId y = cut.first[b]; y < cut.first[b + 1]; ++y) {
          for (OpId x = cut.first[a]; x < cut.first[a + 1]; ++x) {
            if (extra || touch_same_units(cut.pieces, cut.pieces.ops[x], cut.pieces.ops[y])) {
              EXPECT_TRUE(before[y][x]) << "piece " << y << " is not ordered after piece " << x;
            }
          }
        }
      }
    }
  }
}

/// Copies and sums of blocks among places, all of which are told apart in the same way or, if
/// `overlaps`, in two ways.
Program random_blocks(std::mt19937_64& random, bool overlaps) {
  const auto pick = [&](int minimum, int maximum) {
    return std::uniform_int_distribution<int>(minimum, maximum)(random);
  };
  const int ranks = 3;
  const std::int64_t block = 4;
  const int blocks = 3;
  Builder b("blocks", {Collective::allreduce, ranks, 0, block * blocks, pick(0, 1) == 1});
  const int count = pick(1, 30);
  for (int i = 0; i < count; ++i) {
    const std::int64_t length = overlaps && pick(0, 5) == 0 ? block / 2 : block;
    const std::int64_t begin = block * pick(0, blocks - 1);
    const auto scratch = [&] { return b.tmp(pick(0, ranks - 1), begin, length); };
    const Slice to = pick(0, 1) == 0 ? scratch() : b.output(pick(0, ranks - 1), begin, length);
    std::vector<Slice> from;
    for (int sources = pick(1, 3); sources > 0; --sources) {
      from.push_back(pick(0, 1) == 0 ? scratch() : b.input(pick(0, ranks - 1), begin, length));
    }
    b.combine(to, from, {.lane = pick(0, 2)});
  }
  return b.finish();
}

/// Pieces that need not be looked at one by one wait for the same as if they had been.
TEST(Chunk, PiecesWaitForWhatTheirDataSays) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Program whole = random_blocks(random, seed % 2 == 0);
    for (const Chunking& chunking :
         {Chunking{1, 1}, Chunking{1, 3}, Chunking{3, 2}, Chunking{2, 2, true}}) {
      const Program cut = chunk(whole, chunking);
      EXPECT_TRUE(same_program(cut, built_again(cut)));
    }
  }
}

// Plans.

std::string plan(const Program& program, double size_bytes, double chunk_bytes,
                 std::int64_t max_ops = 4'000'000) {
  const Chunking chunking = plan_chunking(program, size_bytes, chunk_bytes, max_ops);
  return std::to_string(chunking.split) + " x " + std::to_string(chunking.piece_units);
}

TEST(PlanChunking, NothingToCut) {
  const std::string whole = "1 x " + std::to_string(kMaxUnits);
  EXPECT_EQ(plan(chain(4), 1024, 0), whole);
  EXPECT_EQ(plan(chain(4), 0, 1024), whole);
  EXPECT_EQ(plan(chain(4), 1, 1e15), whole);
}

TEST(PlanChunking, PiecesOfWholeUnits) {
  EXPECT_EQ(plan(chain(8), 1024, 1024), "1 x 8");  // a unit is 128 bytes
  EXPECT_EQ(plan(chain(8), 1024, 512), "1 x 4");
  EXPECT_EQ(plan(chain(8), 1024, 511), "1 x 3");
  EXPECT_EQ(plan(chain(8), 1024, 128), "1 x 1");
}

TEST(PlanChunking, UnitsLargerThanAChunkAreSplit) {
  EXPECT_EQ(plan(chain(8), 1024, 127), "2 x 1");
  EXPECT_EQ(plan(chain(8), 1024, 64), "2 x 1");
  EXPECT_EQ(plan(chain(8), 1024, 63), "3 x 1");
  EXPECT_EQ(plan(chain(1), 1 << 30, 1 << 20), "1024 x 1");
}

std::string lengths(const Program& program, int lane) {
  std::string text;
  for (const Op& op : program.ops) {
    if (op.lane == lane) text += (text.empty() ? "" : " ") + std::to_string(op.length);
  }
  return text;
}

/// Rank 0 sends both units of a message, and keeps them, on these lanes.
Program two_strips(const std::array<int, 3>& lanes) {
  Builder b("two", {Collective::broadcast, 2, 0, 2, false});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1), {.lane = lanes[0]});
  b.copy(b.output(1, 1, 1), b.input(0, 1, 1), {.lane = lanes[1]});
  b.copy(b.output(0, 0, 2), b.input(0, 0, 2), {.lane = lanes[2]});
  return b.finish();
}

/// By where its unit is in the message, whatever number the lane has: formats number lanes anew.
TEST(Chunk, EveryOtherLaneBeginsWithHalfAPiece) {
  for (const std::array<int, 3> lanes : {std::array{0, 1, 2}, {1, 0, 2}, {4, 2, 1}, {3, 7, 5}}) {
    const Program program = two_strips(lanes);
    // 8 bytes a unit, 2 a piece: four pieces, each of two units, so that there are halves.
    const Chunking chunking = plan_chunking(program, 16, 2, 1000, /*stagger=*/true);
    const Program cut = chunk(program, chunking);
    EXPECT_TRUE(verify(cut).ok());
    EXPECT_EQ(lengths(cut, lanes[0]), "2 2 2 2");
    EXPECT_EQ(lengths(cut, lanes[1]), "1 2 2 2 1");
    EXPECT_EQ(lengths(cut, lanes[2]), "2 2 2 2 2 2 2 2");
    // What is not cut is not staggered, and pieces of one unit have no halves.
    EXPECT_EQ(lengths(chunk(program, {4, 4, true}), lanes[1]), "4");
    EXPECT_EQ(lengths(chunk(program, {4, 1, true}), lanes[1]), "1 1 1 1");
  }
}

/// A lane that moves several slices one after the other is staggered as a whole.
TEST(Chunk, TheSlicesOfALaneBeginAlike) {
  Builder b("two lanes", {Collective::broadcast, 2, 0, 4, false});
  for (int unit = 0; unit < 4; ++unit) {
    b.copy(b.output(1, unit, 1), b.input(0, unit, 1), {.lane = unit / 2});
  }
  const Program program = b.finish();
  const Program cut = chunk(program, plan_chunking(program, 32, 4, 1000, /*stagger=*/true));
  EXPECT_EQ(lengths(cut, 0), "2 2 2 2");
  EXPECT_EQ(lengths(cut, 1), "1 2 1 1 2 1");
}

TEST(PlanChunking, RoundingErrorsAddNoPiece) {
  for (int units = 1; units <= 50; ++units) {
    for (int pieces = 1; pieces <= 50; ++pieces) {
      // A chunk that is an exact part of a unit, however it was computed.
      const double size_bytes = 1e9 / 3;
      const double chunk_bytes = size_bytes / units / pieces;
      EXPECT_EQ(plan(chain(units), size_bytes, chunk_bytes), std::to_string(pieces) + " x 1");
      EXPECT_EQ(plan(chain(units * pieces), size_bytes, size_bytes / units),
                "1 x " + std::to_string(pieces));
    }
  }
}

TEST(PlanChunking, StaysUnderTheLargestNumberOfOps) {
  // Three ops of one unit: 1000 ops are 333 pieces each.
  EXPECT_EQ(plan(chain(1), 1 << 20, 1, 1000), "333 x 1");
  // Three ops of 100 units: pieces of 4 are 75, pieces of 3 would be 102.
  EXPECT_EQ(plan(chain(100), 100, 1, 100), "1 x 4");
  // Already more ops than that.
  EXPECT_EQ(plan(chain(100), 100, 1, 2), "1 x " + std::to_string(kMaxUnits));
}

TEST(PlanChunking, StaysUnderTheLargestNumberOfUnits) {
  Builder b("few", {Collective::broadcast, 2, 0, 3, false});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  const Program program = b.finish();
  // floor(2^24 / 3) = 5592405.
  EXPECT_EQ(plan(program, 1e12, 1, std::int64_t{1} << 40), "5592405 x 1");
  Builder far("far", {Collective::broadcast, 2, 0, 1, false});
  far.copy(far.tmp(1, 1 << 20, 1), far.input(0, 0, 1));
  // tmp reaches to unit 2^20 + 1, and must stay below 2^32: floor((2^32 - 1) / (2^20 + 1)) = 4095.
  EXPECT_EQ(plan(far.finish(), 1e12, 1, std::int64_t{1} << 40), "4095 x 1");
}

}  // namespace
}  // namespace espalier
