// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/stream_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/exec/recording_device.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Kind = StreamCommandKind;

/// Place p on device p modulo `devices`, all of which can map each other, or none; then `hosts`
/// host memories.
DeviceSet device_set(int places, int devices, bool can_access = true, int hosts = 0) {
  DeviceSet set;
  for (int place = 0; place < places; ++place) set.device_of_place.push_back(place % devices);
  for (int host = 0; host < hosts; ++host) set.device_of_place.push_back(DeviceSet::kHost);
  set.can_access.assign(static_cast<std::size_t>(devices),
                        std::vector<bool>(static_cast<std::size_t>(devices), can_access));
  for (std::size_t d = 0; d < set.can_access.size(); ++d) set.can_access[d][d] = true;
  return set;
}

StreamPlan plan_of(const Program& program, const DeviceSet& set, std::int64_t elements = 1000) {
  return plan_streams(program, lower(program, elements, 4), set, 4);
}

/// "wait 0 3" (stream, event), "record 0 3", "fold 0 op 2 of 3", "copy 1 op 2".
std::vector<std::string> listing(const StreamPlan& plan) {
  std::vector<std::string> lines;
  for (const StreamCommand& command : plan.commands) {
    const std::string stream = " " + std::to_string(command.stream) + " ";
    const std::string index = std::to_string(is_op(command) ? command.op : command.event);
    switch (command.kind) {
      case Kind::wait:
        lines.push_back("wait" + stream + index);
        break;
      case Kind::record:
        lines.push_back("record" + stream + index);
        break;
      case Kind::copy:
        lines.push_back("copy" + stream + "op " + index);
        break;
      case Kind::fold:
        lines.push_back("fold" + stream + "op " + index + " of " +
                        std::to_string(command.source_count));
        break;
      case Kind::compute:
        lines.push_back("compute" + stream + "op " + index);
        break;
    }
  }
  return lines;
}

/// r0 sums up both inputs (op 0), then r1 fetches the sum (op 1).
Program two_ranks() {
  Builder builder("two", test_contract(Collective::allreduce, 2, 1));
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.input(1, 0, 1)});
  builder.copy(builder.output(1, 0, 1), builder.output(0, 0, 1), {.at = 1});
  return builder.finish();
}

TEST(StreamPlan, LanesBecomeStreamsAndDependenciesEvents) {
  const StreamPlan plan = plan_of(two_ranks(), device_set(2, 2));
  // Stream 1 begins with a wait that also makes it part of the capture. Its event belongs to the
  // other device, so it needs another one to be waited for.
  EXPECT_THAT(listing(plan), ElementsAre("fold 0 op 0 of 2", "record 0 0", "wait 1 0",
                                         "fold 1 op 1 of 1", "record 1 1", "wait 0 1"));
  ASSERT_EQ(plan.streams.size(), 2U);
  EXPECT_EQ(plan.streams[1].device, 1);
  EXPECT_THAT(plan.event_devices, ElementsAre(0, 1));
  EXPECT_THAT(plan.peers, ElementsAre(Pair(0, 1), Pair(1, 0)));
}

TEST(StreamPlan, CopyEnginesCopyWithinTheSameOrder) {
  DeviceSet set = device_set(2, 1);
  set.copy_engines = CopyEngineUse::copies;
  const StreamPlan plan = plan_of(two_ranks(), set);
  // On one device the event is free once its only waiter was told, and is used again.
  EXPECT_THAT(listing(plan), ElementsAre("fold 0 op 0 of 2", "record 0 0", "wait 1 0",
                                         "copy 1 op 1", "record 1 0", "wait 0 0"));
  EXPECT_THAT(plan.peers, IsEmpty());
}

TEST(StreamPlan, CopyEnginesFetchTheOperandsOfCombines) {
  DeviceSet set = device_set(2, 2);
  set.copy_engines = CopyEngineUse::operands;
  const StreamPlan plan = plan_of(two_ranks(), set);
  EXPECT_THAT(listing(plan), ElementsAre("copy 0 op 0", "fold 0 op 0 of 2", "record 0 0",
                                         "wait 1 0", "copy 1 op 1", "record 1 1", "wait 0 1"));
  EXPECT_EQ(plan.streams[0].scratch_bytes, 4096);
  // Mapped all the same, so that copies go straight from one GPU to the other.
  EXPECT_THAT(plan.peers, ElementsAre(Pair(0, 1), Pair(1, 0)));
  EXPECT_THAT(plan.remote_streams, ElementsAre(0, 0));
}

TEST(StreamPlan, LanesThatShareAStreamNeedNoEvents) {
  DeviceSet set = device_set(2, 1);
  set.max_streams = 1;
  EXPECT_THAT(listing(plan_of(two_ranks(), set)),
              ElementsAre("fold 0 op 0 of 2", "fold 0 op 1 of 1"));
}

TEST(StreamPlan, ForksStreamsThatWaitForNothing) {
  Builder builder("apart", test_contract(Collective::allreduce, 2, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(1, 0, 1), builder.input(1, 0, 1));
  EXPECT_THAT(listing(plan_of(builder.finish(), device_set(2, 1))),
              ElementsAre("record 0 0", "fold 0 op 0 of 1", "wait 1 0", "fold 1 op 1 of 1",
                          "record 1 1", "wait 0 1"));
}

TEST(StreamPlan, LeavesOutWaitsThatOthersImply) {
  // r2 needs what r1 made, which r1 could only make after r0 was done: waiting for r1 suffices,
  // though op 2 reads what both of them wrote. Stream 0 has only r2 left to wait for.
  Builder builder("chain", test_contract(Collective::allreduce, 3, 1));
  builder.copy(builder.tmp(0, 0, 1), builder.input(0, 0, 1));
  builder.combine(builder.tmp(1, 0, 1), {builder.tmp(0, 0, 1), builder.input(1, 0, 1)});
  builder.combine(builder.tmp(2, 0, 1), {builder.tmp(0, 0, 1), builder.tmp(1, 0, 1)});
  EXPECT_THAT(listing(plan_of(builder.finish(), device_set(3, 3))),
              ElementsAre("fold 0 op 0 of 1", "record 0 0", "wait 1 0", "fold 1 op 1 of 2",
                          "record 1 1", "wait 2 1", "fold 2 op 2 of 2", "record 2 2", "wait 0 2"));
}

TEST(StreamPlan, StagesWhatADeviceCannotMap) {
  const StreamPlan plan = plan_of(two_ranks(), device_set(2, 2, false));
  EXPECT_THAT(listing(plan), ElementsAre("copy 0 op 0", "fold 0 op 0 of 2", "record 0 0",
                                         "wait 1 0", "copy 1 op 1", "record 1 1", "wait 0 1"));
  EXPECT_TRUE(plan.commands[0].begins_op);
  EXPECT_FALSE(plan.commands[0].ends_op);
  EXPECT_TRUE(plan.commands[1].ends_op);
  // 4000 bytes in a slot of a multiple of 256.
  EXPECT_EQ(plan.streams[0].scratch_bytes, 4096);
  EXPECT_EQ(plan.streams[1].scratch_bytes, 0);
  EXPECT_EQ(plan.commands[0].dst, (BufferOffset{kStreamScratch, Buffer::tmp, 0}));
  EXPECT_THAT(plan.peers, IsEmpty());
  EXPECT_THAT(plan.unmapped, ElementsAre(Pair(0, 1), Pair(1, 0)));
}

TEST(StreamPlan, KernelsOverLinksLeaveRoomForEachOther) {
  // Rank 0 reads from rank 1, from a host memory and from rank 2 on lanes of their own, and copies
  // within its own memory.
  Builder builder("links", test_contract(Collective::allreduce, 3, 8));
  const PlaceId host = builder.add_host();
  builder.copy(builder.tmp(0, 0, 1), builder.input(1, 0, 1), {.lane = 0, .at = 0});
  builder.copy(builder.tmp(host, 0, 1), builder.input(0, 0, 1), {.lane = 1, .at = 0});
  builder.copy(builder.tmp(0, 1, 1), builder.input(2, 1, 1), {.lane = 2, .at = 0});
  builder.copy(builder.tmp(0, 2, 1), builder.input(0, 2, 1), {.lane = 3, .at = 0});
  const StreamPlan plan = plan_of(builder.finish(), device_set(3, 3, true, 1));
  EXPECT_THAT(plan.remote_streams, ElementsAre(3, 0, 0));
  const auto blocks = [&](OpId op, int resident) {
    for (const StreamCommand& command : plan.commands) {
      if (command.kind == Kind::fold && command.op == op) {
        return max_blocks(plan, command, resident);
      }
    }
    return 0;
  };
  // On 132 multiprocessors of 4 blocks each: a third would be 176.
  EXPECT_EQ(blocks(0, 528), 64);
  EXPECT_EQ(blocks(1, 528), 64);
  EXPECT_EQ(blocks(2, 528), 64);
  EXPECT_EQ(blocks(3, 528), 528);
  EXPECT_EQ(blocks(0, 120), 40);
  EXPECT_EQ(blocks(0, 20), 8);  // not 6, which would not fill a link
  EXPECT_EQ(blocks(0, 4), 4);
}

TEST(StreamPlan, KernelsCopyBetweenHostMemories) {
  Builder builder("hosts", test_contract(Collective::allreduce, 1, 1));
  const PlaceId near = builder.add_host();
  const PlaceId far = builder.add_host();
  builder.copy(builder.tmp(near, 0, 1), builder.input(0, 0, 1), {.at = 0});
  builder.copy(builder.tmp(far, 0, 1), builder.tmp(near, 0, 1), {.at = far});
  DeviceSet set = device_set(1, 1, true, 2);
  set.copy_engines = CopyEngineUse::copies;
  EXPECT_THAT(listing(plan_of(builder.finish(), set)),
              ElementsAre("copy 0 op 0", "record 0 0", "wait 1 0", "fold 1 op 1 of 1", "record 1 0",
                          "wait 0 0"));
}

TEST(StreamPlan, CopiesAResultItCannotReach) {
  // r0 sums up straight into r1's buffer.
  Builder builder("push", test_contract(Collective::allreduce, 2, 1));
  builder.combine(builder.output(1, 0, 1), {builder.input(0, 0, 1), builder.input(1, 0, 1)},
                  {.at = 0});
  const StreamPlan plan = plan_of(builder.finish(), device_set(2, 2, false));
  EXPECT_THAT(listing(plan), ElementsAre("copy 0 op 0", "fold 0 op 0 of 2", "copy 0 op 0"));
  EXPECT_EQ(plan.streams[0].scratch_bytes, 2 * 4096);
}

TEST(StreamPlan, OpsAtHostMemoriesRunOnTheDeviceOfTheirRank) {
  Builder builder("host", test_contract(Collective::allreduce, 2, 1));
  const PlaceId host = builder.add_host();
  builder.copy(builder.tmp(host, 0, 1), builder.input(1, 0, 1), {.at = 1});
  builder.copy(builder.output(0, 0, 1), builder.tmp(host, 0, 1), {.at = host});
  builder.copy(builder.output(1, 0, 1), builder.tmp(host, 0, 1), {.at = host});
  const Program program = builder.finish();
  const DeviceSet set = device_set(2, 2, false, 1);
  EXPECT_THAT(devices_of_ops(program, set), ElementsAre(1, 0, 1));
  // The lane of the host is on two devices; its second op waits for its first all the same.
  const StreamPlan plan = plan_of(program, set);
  RecordingDevice device(program, plan, set, DataType::float32, ReduceOp::sum);
  issue(plan, device);
  EXPECT_THAT(device.problems(), IsEmpty());
  EXPECT_THAT(device.unordered(), IsEmpty());
}

TEST(StreamPlan, RelaysAreOnDevicesOfTheirOwn) {
  Builder builder("relay", test_contract(Collective::broadcast, 2, 1));
  const PlaceId relay = builder.add_relay();
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.tmp(relay, 0, 1), builder.input(0, 0, 1), {.at = relay});
  builder.copy(builder.output(1, 0, 1), builder.tmp(relay, 0, 1), {.at = relay});
  const Program program = builder.finish();
  const DeviceSet set = device_set(3, 3);
  EXPECT_THAT(devices_of_ops(program, set), ElementsAre(0, 2, 2));
  EXPECT_THAT(plan_of(program, set).peers, ElementsAre(Pair(2, 0), Pair(2, 1)));
  std::mt19937_64 random(5);
  expect_right(program, set, DataType::uint8, ReduceOp::sum, 55, random);
}

TEST(StreamPlan, MapsTheBusiestPeersWhenThereAreTooMany) {
  // Rank 0 reads one unit of rank 1, two of rank 2, three of rank 3.
  Builder builder("star", test_contract(Collective::allreduce, 4, 8));
  for (int other = 1; other < 4; ++other) {
    builder.copy(builder.tmp(0, 0, other), builder.input(other, 0, other), {.at = 0});
  }
  DeviceSet set = device_set(4, 4);
  set.max_peers = 2;
  const StreamPlan plan = plan_of(builder.finish(), set);
  EXPECT_THAT(plan.peers, ElementsAre(Pair(0, 2), Pair(0, 3)));
  EXPECT_THAT(plan.unmapped, ElementsAre(Pair(0, 1)));
  EXPECT_THAT(listing(plan), ElementsAre("copy 0 op 0", "fold 0 op 1 of 1", "fold 0 op 2 of 1"));
}

TEST(StreamPlan, BoundsTheStreamsOfADevice) {
  DeviceSet set = device_set(16, 2);
  set.max_streams = 3;
  const StreamPlan plan = plan_of(ring_program(16, false), set);
  EXPECT_EQ(plan.streams.size(), 6U);
}

TEST(StreamPlan, NoOps) {
  const Program program = Builder("test", test_contract(Collective::allreduce, 1, 1)).finish();
  const StreamPlan plan = plan_of(program, device_set(1, 1));
  EXPECT_EQ(plan.streams.size(), 1U);
  EXPECT_THAT(plan.commands, IsEmpty());
}

TEST(StreamPlan, RefusesWhatCannotFinish) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 1, 1);
  add_marker(program, 0, {1});
  add_marker(program, 0, {0});
  try {
    plan_of(program, device_set(1, 1));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    EXPECT_THAT(error.what(),
                HasSubstr("r0 lane 0: op 0 'compute 0 at r0 after 1' waits for op 1"));
  }
}

TEST(StreamPlan, RightOnAnyDevices) {
  constexpr unsigned kSeed = 11;
  std::mt19937_64 random(kSeed);
  for (const int ranks : {1, 2, 5, 12}) {
    for (const Program& program :
         {ring_program(ranks, true), tree_program(ranks, false), flat_program(ranks, false)}) {
      for (const int devices : {1, 2, 5}) {
        for (const bool can_access : {false, true}) {
          for (const int max_streams : {1, 3, 32}) {
            DeviceSet set = device_set(ranks, devices, can_access, program.hosts);
            set.max_streams = max_streams;
            set.max_peers = 2;
            set.copy_engines = static_cast<CopyEngineUse>(ranks % 3);
            SCOPED_TRACE(program.name + ", " + std::to_string(ranks) + " ranks on " +
                         std::to_string(devices) + " devices, seed " + std::to_string(kSeed));
            expect_right(program, set, DataType::int32, ReduceOp::sum, 103, random);
          }
        }
      }
    }
  }
}

// The recording device itself: it must notice when an order is not enforced.
TEST(RecordingDevice, NoticesAWaitThatIsMissing) {
  const Program program = ring_program(4, false);
  const DeviceSet set = device_set(4, 4);
  const StreamPlan whole = plan_of(program, set);
  int noticed = 0;
  int waits = 0;
  for (std::size_t i = 0; i < whole.commands.size(); ++i) {
    if (whole.commands[i].kind != Kind::wait) continue;
    ++waits;
    StreamPlan broken = whole;
    broken.commands.erase(broken.commands.begin() + static_cast<std::ptrdiff_t>(i));
    RecordingDevice device(program, broken, set, DataType::int32, ReduceOp::sum);
    issue(broken, device);
    if (!device.problems().empty() || !device.unordered().empty()) ++noticed;
  }
  EXPECT_GT(waits, 10);
  EXPECT_EQ(noticed, waits) << "none is redundant";
}

TEST(RecordingDevice, NoticesMemoryThatIsNotMapped) {
  const Program program = two_ranks();
  const DeviceSet set = device_set(2, 2);
  StreamPlan plan = plan_of(program, set);
  plan.peers.clear();
  RecordingDevice device(program, plan, set, DataType::float32, ReduceOp::sum);
  issue(plan, device);
  EXPECT_THAT(device.problems(),
              ElementsAre("op 0 reaches for foreign memory", "op 1 reaches for foreign memory"));
}

}  // namespace
}  // namespace espalier
