// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/print.h"

namespace espalier {
namespace {

constexpr Contract kAllreduce{Collective::allreduce, 2, 0, 4, false};

/// out(1) <- in(1) + in(0) by way of a host memory.
Program staged(const char* name = "staged", std::int64_t units = 4, int lane = 0,
               double seconds = 0.25, const char* via = "plx0", bool extra = false) {
  Contract contract = kAllreduce;
  contract.units = units;
  Builder builder(name, contract);
  const PlaceId host = builder.add_host();
  const OpId push = builder.copy(builder.tmp(host, 8, 2), builder.input(0, 0, 2),
                                 {.lane = lane, .at = OpOptions::kAuto, .via = via});
  const OpId work = builder.compute(0, seconds, {.lane = 3});
  builder.combine(builder.output(1, 0, 2), {builder.input(1, 0, 2), builder.tmp(host, 8, 2)});
  if (extra) builder.after(work, push);
  return builder.finish();
}

TEST(Program, TmpReachesAsFarAsAnyOp) {
  Builder builder("tmp", kAllreduce);
  const PlaceId host = builder.add_host();
  builder.copy(builder.tmp(host, 4, 2), builder.input(0, 0, 2));
  builder.copy(builder.tmp(1, 8, 1), builder.tmp(host, 4, 1));
  builder.compute(0, 1);
  EXPECT_EQ(tmp_units(builder.finish()), (std::vector<std::int64_t>{0, 9, 6}));
}

/// "r0->h0 h0->r1" of one op: dst <- srcs at `at`, on four units of scratch.
std::string transfers(PlaceId dst, const std::vector<PlaceId>& srcs, PlaceId at) {
  Builder builder("one", {Collective::allreduce, 3, 0, 4, false});
  builder.add_host();
  std::vector<Slice> slices;
  for (const PlaceId src : srcs) slices.push_back(builder.tmp(src, 4, 4));
  builder.combine(builder.tmp(dst, 0, 4), slices, {.at = at});
  const Program program = builder.finish();
  std::string text;
  for_each_transfer(program, program.ops[0], [&](PlaceId from, PlaceId to) {
    text += (text.empty() ? "" : " ") + place_name(program, from) + "->" + place_name(program, to);
  });
  EXPECT_EQ(count_transfers(program), std::ranges::count(text, '>'));
  return text;
}

TEST(Program, TransfersGoToThePlaceThatCarriesTheOpOutAndFromIt) {
  // A copy is one transfer, pushed or pulled.
  EXPECT_EQ(transfers(1, {0}, 0), "r0->r1");
  EXPECT_EQ(transfers(1, {0}, 1), "r0->r1");
  EXPECT_EQ(transfers(3, {0}, 3), "r0->h0");
  EXPECT_EQ(transfers(1, {1}, 1), "");
  // At its destination, a combine fetches what is elsewhere.
  EXPECT_EQ(transfers(1, {0, 1, 2}, 1), "r0->r1 r2->r1");
  EXPECT_EQ(transfers(1, {0, 0}, 1), "r0->r1 r0->r1");
  // At a source, it fetches the others and sends the result.
  EXPECT_EQ(transfers(1, {0, 1, 2}, 0), "r1->r0 r2->r0 r0->r1");
  EXPECT_EQ(transfers(3, {0, 0}, 0), "r0->h0");
}

TEST(Program, ComputingMovesNothing) {
  Builder builder("compute", kAllreduce);
  builder.compute(1, 1);
  EXPECT_EQ(count_transfers(builder.finish()), 0);
}

TEST(Program, PlacesAreNamedAsInTheTextForm) {
  const Program program = staged();
  EXPECT_EQ(place_name(program, 0), "r0");
  EXPECT_EQ(place_name(program, 1), "r1");
  EXPECT_EQ(place_name(program, 2), "h0");
}

TEST(Program, SlicesAndOpsReadAsInTheTextForm) {
  const Program program = staged();
  EXPECT_EQ(to_string(program, Slice{0, Buffer::in, 0, 1}), "r0.in[0]");
  EXPECT_EQ(to_string(program, Slice{1, Buffer::out, 2, 2}), "r1.out[2:4]");
  EXPECT_EQ(to_string(program, Slice{2, Buffer::tmp, 7, 1}), "h0.tmp[7]");
  EXPECT_EQ(to_string(program, OpId{0}), "h0.tmp[8:10] <- r0.in[0:2] via plx0");
  EXPECT_EQ(to_string(program, OpId{1}), "compute 0.25 at r0 lane 3");
  EXPECT_EQ(to_string(program, OpId{2}), "r1.out[0:2] <- r1.in[0:2] + h0.tmp[8:10] after 0");
}

TEST(Program, SameProgramComparesWhatOpsSay) {
  const Program program = staged();
  EXPECT_TRUE(same_program(program, staged()));
  EXPECT_FALSE(same_program(program, staged("other")));
  EXPECT_FALSE(same_program(program, staged("staged", 8)));
  EXPECT_FALSE(same_program(program, staged("staged", 4, 1)));
  EXPECT_FALSE(same_program(program, staged("staged", 4, 0, 0.5)));
  EXPECT_FALSE(same_program(program, staged("staged", 4, 0, 0.25, "plx1")));
  EXPECT_FALSE(same_program(program, staged("staged", 4, 0, 0.25, "")));
  EXPECT_FALSE(same_program(program, staged("staged", 4, 0, 0.25, "plx0", true)));

  Program shorter = program;
  shorter.ops.pop_back();
  EXPECT_FALSE(same_program(program, shorter));
  Program other_source = program;
  other_source.sources[0].begin = 1;
  EXPECT_FALSE(same_program(program, other_source));
}

TEST(Program, SameProgramDoesNotLookAtPoolsOrLines) {
  const Program program = staged();
  Program moved = program;
  moved.sources.insert(moved.sources.begin(), Operand{});
  for (Op& op : moved.ops) ++op.src_begin;
  moved.vias.insert(moved.vias.begin(), "unused");
  moved.ops[0].via = 1;
  moved.lines = {3, 4, 5};
  EXPECT_TRUE(same_program(program, moved));
}

}  // namespace
}  // namespace espalier
