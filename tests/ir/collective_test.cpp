// SPDX-License-Identifier: Apache-2.0
#include "ir/collective.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

std::string show(const Region& region) {
  if (region.units == 0) return "none";
  return std::string(to_string(region.buffer)) + "[" + std::to_string(region.begin) + ":" +
         std::to_string(region.begin + region.units) + "]";
}

/// Buffers and regions of three ranks, six units, root 1: blocks are two units. One line a rank:
/// "in SIZE out SIZE: INPUT -> OUTPUT".
std::string layout(Collective collective, bool in_place) {
  const Contract contract{collective, 3, info(collective).rooted ? 1 : 0, 6, in_place};
  std::string text;
  for (int rank = 0; rank < 3; ++rank) {
    text += "in " + std::to_string(buffer_units(contract, rank, Buffer::in));
    text += " out " + std::to_string(buffer_units(contract, rank, Buffer::out));
    text += ": " + show(input_region(contract, rank)) + " -> " +
            show(output_region(contract, rank)) + "\n";
  }
  return text;
}

/// Where the units of every rank's result come from, a line a rank: "RANK:UNIT ...", "*" for all.
std::string origins(Collective collective, bool in_place = false) {
  const Contract contract{collective, 3, info(collective).rooted ? 1 : 0, 6, in_place};
  std::string text;
  for (int rank = 0; rank < 3; ++rank) {
    for (std::int64_t unit = 0; unit < output_region(contract, rank).units; ++unit) {
      const Origin origin = origin_of(contract, rank, unit);
      if (unit > 0) text += ' ';
      text += origin.rank < 0 ? "*" : std::to_string(origin.rank);
      text += ":";
      text += std::to_string(origin.unit);
    }
    text += "\n";
  }
  return text;
}

TEST(Contract, BroadcastOutOfPlace) {
  EXPECT_EQ(layout(Collective::broadcast, false),
            "in 0 out 6: none -> out[0:6]\n"
            "in 6 out 6: in[0:6] -> out[0:6]\n"
            "in 0 out 6: none -> out[0:6]\n");
}

TEST(Contract, BroadcastInPlace) {
  EXPECT_EQ(layout(Collective::broadcast, true),
            "in 0 out 6: none -> out[0:6]\n"
            "in 0 out 6: out[0:6] -> out[0:6]\n"
            "in 0 out 6: none -> out[0:6]\n");
}

TEST(Contract, ReduceOutOfPlace) {
  EXPECT_EQ(layout(Collective::reduce, false),
            "in 6 out 0: in[0:6] -> none\n"
            "in 6 out 6: in[0:6] -> out[0:6]\n"
            "in 6 out 0: in[0:6] -> none\n");
}

TEST(Contract, ReduceInPlace) {
  EXPECT_EQ(layout(Collective::reduce, true),
            "in 0 out 6: out[0:6] -> none\n"
            "in 0 out 6: out[0:6] -> out[0:6]\n"
            "in 0 out 6: out[0:6] -> none\n");
}

TEST(Contract, WholeMessagesOutOfPlace) {
  for (const Collective collective :
       {Collective::allreduce, Collective::alltoall, Collective::sendrecv}) {
    EXPECT_EQ(layout(collective, false),
              "in 6 out 6: in[0:6] -> out[0:6]\n"
              "in 6 out 6: in[0:6] -> out[0:6]\n"
              "in 6 out 6: in[0:6] -> out[0:6]\n")
        << to_string(collective);
  }
}

TEST(Contract, WholeMessagesInPlace) {
  for (const Collective collective :
       {Collective::allreduce, Collective::alltoall, Collective::sendrecv}) {
    EXPECT_EQ(layout(collective, true),
              "in 0 out 6: out[0:6] -> out[0:6]\n"
              "in 0 out 6: out[0:6] -> out[0:6]\n"
              "in 0 out 6: out[0:6] -> out[0:6]\n")
        << to_string(collective);
  }
}

TEST(Contract, AllgatherOutOfPlace) {
  EXPECT_EQ(layout(Collective::allgather, false),
            "in 2 out 6: in[0:2] -> out[0:6]\n"
            "in 2 out 6: in[0:2] -> out[0:6]\n"
            "in 2 out 6: in[0:2] -> out[0:6]\n");
}

TEST(Contract, AllgatherInPlaceStartsFromTheOwnBlock) {
  EXPECT_EQ(layout(Collective::allgather, true),
            "in 0 out 6: out[0:2] -> out[0:6]\n"
            "in 0 out 6: out[2:4] -> out[0:6]\n"
            "in 0 out 6: out[4:6] -> out[0:6]\n");
}

TEST(Contract, ReducescatterOutOfPlace) {
  EXPECT_EQ(layout(Collective::reducescatter, false),
            "in 6 out 2: in[0:6] -> out[0:2]\n"
            "in 6 out 2: in[0:6] -> out[0:2]\n"
            "in 6 out 2: in[0:6] -> out[0:2]\n");
}

TEST(Contract, ReducescatterInPlaceEndsInTheOwnBlock) {
  EXPECT_EQ(layout(Collective::reducescatter, true),
            "in 0 out 6: out[0:6] -> out[0:2]\n"
            "in 0 out 6: out[0:6] -> out[2:4]\n"
            "in 0 out 6: out[0:6] -> out[4:6]\n");
}

TEST(Contract, GatherOutOfPlace) {
  EXPECT_EQ(layout(Collective::gather, false),
            "in 2 out 0: in[0:2] -> none\n"
            "in 2 out 6: in[0:2] -> out[0:6]\n"
            "in 2 out 0: in[0:2] -> none\n");
}

TEST(Contract, GatherInPlaceHasTheFullBufferAtTheRootOnly) {
  EXPECT_EQ(layout(Collective::gather, true),
            "in 0 out 2: out[0:2] -> none\n"
            "in 0 out 6: out[2:4] -> out[0:6]\n"
            "in 0 out 2: out[0:2] -> none\n");
}

TEST(Contract, ScatterOutOfPlace) {
  EXPECT_EQ(layout(Collective::scatter, false),
            "in 0 out 2: none -> out[0:2]\n"
            "in 6 out 2: in[0:6] -> out[0:2]\n"
            "in 0 out 2: none -> out[0:2]\n");
}

TEST(Contract, ScatterInPlaceHasTheFullBufferAtTheRootOnly) {
  EXPECT_EQ(layout(Collective::scatter, true),
            "in 0 out 2: none -> out[0:2]\n"
            "in 0 out 6: out[0:6] -> out[2:4]\n"
            "in 0 out 2: none -> out[0:2]\n");
}

TEST(Contract, Origins) {
  const std::string root_message = "1:0 1:1 1:2 1:3 1:4 1:5\n";
  const std::string combined = "*:0 *:1 *:2 *:3 *:4 *:5\n";
  const std::string blocks = "0:0 0:1 1:0 1:1 2:0 2:1\n";
  EXPECT_EQ(origins(Collective::broadcast), root_message + root_message + root_message);
  EXPECT_EQ(origins(Collective::reduce), "\n" + combined + "\n");
  EXPECT_EQ(origins(Collective::allreduce), combined + combined + combined);
  EXPECT_EQ(origins(Collective::allgather), blocks + blocks + blocks);
  EXPECT_EQ(origins(Collective::reducescatter), "*:0 *:1\n*:2 *:3\n*:4 *:5\n");
  EXPECT_EQ(origins(Collective::gather), "\n" + blocks + "\n");
  EXPECT_EQ(origins(Collective::scatter), "1:0 1:1\n1:2 1:3\n1:4 1:5\n");
  // Rank r receives block r of everybody.
  EXPECT_EQ(origins(Collective::alltoall),
            "0:0 0:1 1:0 1:1 2:0 2:1\n"
            "0:2 0:3 1:2 1:3 2:2 2:3\n"
            "0:4 0:5 1:4 1:5 2:4 2:5\n");
  // From the rank before, the first from the last.
  EXPECT_EQ(origins(Collective::sendrecv),
            "2:0 2:1 2:2 2:3 2:4 2:5\n"
            "0:0 0:1 0:2 0:3 0:4 0:5\n"
            "1:0 1:1 1:2 1:3 1:4 1:5\n");
}

TEST(Contract, OriginsDoNotDependOnThePlaceOfTheResult) {
  for (const CollectiveInfo& collective : all_collectives()) {
    EXPECT_EQ(origins(collective.id, true), origins(collective.id, false)) << collective.name;
  }
}

TEST(Contract, OneRankReceivesItsOwnMessage) {
  for (const CollectiveInfo& collective : all_collectives()) {
    for (const bool in_place : {false, true}) {
      const Contract contract{collective.id, 1, 0, 2, in_place};
      EXPECT_EQ(block_units(contract), 2) << collective.name;
      EXPECT_EQ(buffer_units(contract, 0, Buffer::in), in_place ? 0 : 2) << collective.name;
      EXPECT_EQ(buffer_units(contract, 0, Buffer::out), 2) << collective.name;
      EXPECT_EQ(show(input_region(contract, 0)), in_place ? "out[0:2]" : "in[0:2]");
      EXPECT_EQ(show(output_region(contract, 0)), "out[0:2]") << collective.name;
      for (const std::int64_t unit : {0, 1}) {
        const Origin origin = origin_of(contract, 0, unit);
        EXPECT_EQ(origin.rank, collective.reduces ? -1 : 0) << collective.name;
        EXPECT_EQ(origin.unit, unit) << collective.name;
      }
    }
  }
}

TEST(Contract, TmpHasNoSizeOfItsOwn) {
  EXPECT_EQ(buffer_units({Collective::allreduce, 2, 0, 4, false}, 0, Buffer::tmp), 0);
  EXPECT_EQ(buffer_units({Collective::allreduce, 2, 0, 4, true}, 0, Buffer::tmp), 0);
}

TEST(Collective, NamesRoundTrip) {
  EXPECT_EQ(all_collectives().size(), 9u);
  for (const CollectiveInfo& collective : all_collectives()) {
    EXPECT_EQ(parse_collective(collective.name), collective.id);
    EXPECT_EQ(to_string(collective.id), collective.name);
    EXPECT_EQ(&info(collective.id), &collective);
  }
  EXPECT_FALSE(parse_collective("all_reduce"));
  EXPECT_FALSE(parse_collective(""));
}

TEST(Collective, Kinds) {
  std::string rooted, reducing, blocked;
  for (const CollectiveInfo& collective : all_collectives()) {
    const std::string name = std::string(collective.name) + " ";
    if (collective.rooted) rooted += name;
    if (collective.reduces) reducing += name;
    if (collective.blocked) blocked += name;
  }
  EXPECT_EQ(rooted, "broadcast reduce gather scatter ");
  EXPECT_EQ(reducing, "reduce allreduce reducescatter ");
  EXPECT_EQ(blocked, "allgather reducescatter gather scatter alltoall ");
}

TEST(Collective, BusBandwidthFactorsOfNcclTests) {
  EXPECT_DOUBLE_EQ(busbw_factor(Collective::allreduce, 8), 1.75);  // 2 * 7 / 8
  for (const Collective blocked : {Collective::allgather, Collective::reducescatter,
                                   Collective::gather, Collective::scatter, Collective::alltoall}) {
    EXPECT_DOUBLE_EQ(busbw_factor(blocked, 8), 0.875) << to_string(blocked);  // 7 / 8
    EXPECT_DOUBLE_EQ(busbw_factor(blocked, 1), 0) << to_string(blocked);
  }
  for (const Collective whole : {Collective::broadcast, Collective::reduce, Collective::sendrecv}) {
    EXPECT_DOUBLE_EQ(busbw_factor(whole, 8), 1) << to_string(whole);
    EXPECT_DOUBLE_EQ(busbw_factor(whole, 1), 1) << to_string(whole);
  }
  EXPECT_DOUBLE_EQ(busbw_factor(Collective::allreduce, 1), 0);
}

TEST(ElementLayout, WholeMessagesAreSplitEvenly) {
  // 10 elements in 4 units: floor(10 u / 4) = 0, 2, 5, 7, 10.
  const ElementLayout layout({Collective::allreduce, 3, 0, 4, false}, 10);
  EXPECT_EQ(layout.message_elements(), 10);
  EXPECT_EQ(layout.offset(0), 0);
  EXPECT_EQ(layout.offset(1), 2);
  EXPECT_EQ(layout.offset(2), 5);
  EXPECT_EQ(layout.offset(3), 7);
  EXPECT_EQ(layout.offset(4), 10);
  EXPECT_EQ(layout.count(1, 2), 5);
  // tmp may be longer than the message: boundaries repeat every 4 units.
  EXPECT_EQ(layout.offset(9), 22);
}

TEST(ElementLayout, BlocksAreRoundedUpAndEqual) {
  // 10 elements in 3 blocks: 4 each, 12 in all; 6 units are 2 a block, 2 elements each.
  const ElementLayout layout({Collective::allgather, 3, 0, 6, false}, 10);
  EXPECT_EQ(layout.message_elements(), 12);
  EXPECT_EQ(layout.count(0, 2), 4);
  EXPECT_EQ(layout.count(2, 2), 4);
  EXPECT_EQ(layout.count(4, 2), 4);
  // 7 elements a block in 2 units: 3 and 4, alike in every block.
  const ElementLayout odd({Collective::reducescatter, 3, 0, 6, false}, 21);
  for (const std::int64_t block : {0, 2, 4}) {
    EXPECT_EQ(odd.count(block, 1), 3);
    EXPECT_EQ(odd.count(block + 1, 1), 4);
  }
}

TEST(ElementLayout, EveryRankCountAndSizeAddsUp) {
  for (const Collective collective : {Collective::allreduce, Collective::alltoall}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      for (const std::int64_t elements : {0, 1, 2, 3, 7, 31, 32}) {
        const Contract contract{collective, ranks, 0, 6 * ranks, false};
        const ElementLayout layout(contract, elements);
        const std::int64_t blocks = info(collective).blocked ? ranks : 1;
        EXPECT_EQ(layout.message_elements(), (elements + blocks - 1) / blocks * blocks);
        EXPECT_EQ(layout.offset(contract.units), layout.message_elements());
        for (std::int64_t unit = 0; unit < contract.units; ++unit) {
          // Balanced: no unit differs by more than one element from another of the block.
          const std::int64_t fair = layout.message_elements() / contract.units;
          EXPECT_GE(layout.count(unit, 1), fair);
          EXPECT_LE(layout.count(unit, 1), fair + 1);
        }
      }
    }
  }
}

TEST(ElementLayout, LargestMessagesDoNotOverflow) {
  const std::int64_t units = std::int64_t{1} << 24;
  const std::int64_t elements = (std::int64_t{1} << 40) + 1;
  const ElementLayout layout({Collective::allreduce, 2, 0, units, false}, elements);
  // 2^40 + 1 elements are 2^16 a unit and one more, which the last unit gets.
  EXPECT_EQ(layout.offset(1), std::int64_t{1} << 16);
  EXPECT_EQ(layout.offset(units - 1), (units - 1) << 16);
  EXPECT_EQ(layout.offset(units), elements);
  // The largest message of any type: offsets near 2^62.
  const std::int64_t huge = std::int64_t{1} << 62;
  const ElementLayout largest({Collective::alltoall, 1 << 20, 0, units, false}, huge);
  EXPECT_EQ(largest.message_elements(), huge);
  EXPECT_EQ(largest.offset(units), huge);
  EXPECT_EQ(largest.offset(units / 2 + 1), huge / 2 + huge / units);
}

}  // namespace
}  // namespace espalier
