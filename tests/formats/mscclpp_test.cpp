// SPDX-License-Identifier: Apache-2.0
// The reader of MSCCL++ execution plans on plans of our own making: what each op means, what is
// found wrong, and what leaving out a wait, a signal or a nop of a good plan does.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "formats/format.h"
#include "ir/verify.h"
#include "tests/error_of.h"
#include "tests/formats/mscclpp_format.h"
#include "tests/formats/notes_of.h"

namespace espalier {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ForeignProgram read(const json& plan) {
  return mscclpp_format().read_program({plan.dump(), "plan.json"});
}

std::string said(const json& plan) {
  try {
    const ForeignProgram foreign = read(plan);
    std::string text;
    for (const Diagnostic& problem : foreign.verification.problems) text += render(problem) + "\n";
    for (const ForeignNote& note : foreign.notes) text += render(note) + "\n";
    return text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
}

json local(const char* type, int index, int size = 1) {
  return {{"type", type}, {"index", index}, {"size", size}};
}
json remote(int id, int index, int size = 1) {
  return {{"buffer_id", id}, {"index", index}, {"size", size}};
}
json data(const char* name, const std::vector<json>& sources, const std::vector<json>& targets,
          const char* channel = "memory") {
  return {{"name", name}, {"src_buff", sources}, {"dst_buff", targets}, {"channel_type", channel}};
}
json control(const char* name, const std::vector<int>& channels = {0},
             const char* type = "memory") {
  return {{"name", name}, {"channel_ids", channels}, {"channel_type", type}};
}
json nop() { return {{"name", "nop"}}; }

/// `blocks[gpu][threadblock]` are ops. Every pair of GPUs has a memory channel and every thread
/// block knows all of them; remote buffers are input, output and scratch of every other GPU in
/// turn.
json plan(const char* collective, bool in_place, const std::vector<int>& chunks,
          const std::vector<std::vector<std::vector<json>>>& blocks) {
  const int ranks = static_cast<int>(blocks.size());
  json made = {{"name", "made"},
               {"collective", collective},
               {"protocol", "Simple"},
               {"inplace", in_place},
               {"gpus", json::array()}};
  for (int g = 0; g < ranks; ++g) {
    json gpu = {{"id", g},
                {"input_chunks", chunks[0]},
                {"output_chunks", chunks[1]},
                {"scratch_chunks", chunks[2]},
                {"semaphores", {{{"init_value", 0}}}},
                {"threadblocks", json::array()}};
    json peers = json::array();
    json buffers = json::array();
    std::vector<int> channels;
    std::vector<int> ids;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == g) continue;
      channels.push_back(static_cast<int>(channels.size()));
      peers.push_back(peer);
      for (const char* type : {"i", "o", "s"}) {
        ids.push_back(static_cast<int>(ids.size()));
        buffers.push_back({{"rank", peer}, {"type", type}, {"access_channel_types", {"memory"}}});
      }
    }
    gpu["channels"] = {{{"channel_type", "memory"}, {"connected_to", peers}}};
    gpu["remote_buffers"] = buffers;
    for (const std::vector<json>& ops : blocks[static_cast<std::size_t>(g)]) {
      gpu["threadblocks"].push_back(
          {{"id", gpu["threadblocks"].size()},
           {"ops", ops},
           {"channels", {{{"channel_type", "memory"}, {"channel_ids", channels}}}},
           {"remote_buffer_refs",
            {{{"access_channel_type", "memory"}, {"remote_buffer_ids", ids}}}}});
    }
    made["gpus"].push_back(gpu);
  }
  return made;
}

constexpr int kOutput = 1;
constexpr int kScratch = 2;

/// Each of two GPUs puts its block into the other's output.
json pair(const char* collective = "allgather") {
  std::vector<std::vector<std::vector<json>>> blocks;
  for (int g = 0; g < 2; ++g) {
    blocks.push_back({{control("rlxsignal"), control("rlxwait"), nop(),
                       data("put", {local("o", g)}, {remote(kOutput, g)}), nop(), control("signal"),
                       control("wait")}});
  }
  return plan(collective, true, {1, 2, 0}, blocks);
}

/// The same plan with port channels in place of memory channels.
json through_ports(const json& plan) {
  std::string text = plan.dump();
  for (std::size_t at = text.find("\"memory\""); at != std::string::npos;
       at = text.find("\"memory\"", at)) {
    text.replace(at, 8, "\"port\"");
  }
  return json::parse(text);
}

json& ops_of(json& plan, int gpu, int block = 0) {
  return plan["gpus"][static_cast<std::size_t>(gpu)]["threadblocks"]
             [static_cast<std::size_t>(block)]["ops"];
}

TEST(Mscclpp, BecomesAProgram) {
  const ForeignProgram foreign = read(pair());
  EXPECT_EQ(foreign.facts,
            "MSCCL++ execution plan 'made': allgather in place, 2 ranks, up to 1 thread block of a "
            "GPU, 14 ops, protocol Simple");
  EXPECT_TRUE(foreign.verification.ok());
  ASSERT_TRUE(foreign.has_program);
  EXPECT_EQ(foreign.program.ops.size(), 2U);
  EXPECT_TRUE(verify(foreign.program).ok());
  EXPECT_THAT(notes_of(foreign), ElementsAre());
}

TEST(Mscclpp, FindsADeadlock) {
  json wrong = pair();
  ops_of(wrong, 1).erase(5);
  EXPECT_THAT(said(wrong), HasSubstr("gpu 0, threadblock 0, op 6 (wait): waits for ever on memory "
                                     "channel 0 for a signal from gpu 1, which sends 1 in all"));
  EXPECT_FALSE(read(wrong).has_program);
}

TEST(Mscclpp, FindsWhatAPlanIsInsteadOfItsLabel) {
  // Both GPUs send their second block to the other's first, and the other way round.
  std::vector<std::vector<std::vector<json>>> blocks;
  for (int g = 0; g < 2; ++g) {
    blocks.push_back({{data("copy", {local("i", g)}, {local("o", g)}),
                       data("put", {local("i", 1 - g)}, {remote(kOutput, g)}), nop(),
                       control("signal"), control("wait")}});
  }
  EXPECT_THAT(said(plan("allreduce", false, {2, 2, 0}, blocks)),
              HasSubstr("the plan is labelled allreduce, but what it does is alltoall [R7]"));
  EXPECT_TRUE(read(plan("alltoall", false, {2, 2, 0}, blocks)).has_program);
}

TEST(Mscclpp, SaysThatChunkCountsDoNotFit) {
  EXPECT_THAT(said(pair("reducescatter")),
              HasSubstr("1 chunk of a message can't be divided among 2 ranks, as reducescatter "));
  json odd = pair("alltoall");
  EXPECT_THAT(said(odd), HasSubstr("gpu 0 has 1 and 2 chunks of input and output, but alltoall "
                                   "over 2 ranks has 2 and 2 [R1]"));
  EXPECT_FALSE(read(odd).has_program);
}

TEST(Mscclpp, PacketsOrderTheirReaders) {
  const auto blocks = [](bool packets) {
    std::vector<std::vector<std::vector<json>>> made;
    for (int g = 0; g < 2; ++g) {
      made.push_back(
          {{data(packets ? "ppkt" : "put", {local("i", 0)}, {remote(kScratch, 0)}),
            data(packets ? "repkt" : "re", {local("i", 0), local("s", 0)}, {local("i", 0)})}});
    }
    json all = plan("allreduce", true, {1, 1, 1}, made);
    all["protocol"] = "LL";
    return all;
  };
  EXPECT_TRUE(read(blocks(true)).has_program) << said(blocks(true));
  EXPECT_THAT(said(blocks(false)), HasSubstr("gpu 0, threadblock 0, op 1 (re): reads"));
  json never = blocks(true);
  ops_of(never, 1).erase(0);
  EXPECT_THAT(said(never), HasSubstr("op 1 (repkt): waits for ever for packets that no op writes"));
}

/// An allreduce of two GPUs whose second thread block adds what the first was sent.
json two_blocks(const json& after, const json& before) {
  std::vector<std::vector<std::vector<json>>> blocks;
  for (int g = 0; g < 2; ++g) {
    std::vector<json> first = {data("put", {local("i", 0)}, {remote(kScratch, 0)}), nop(),
                               control("signal"), control("wait"), nop()};
    first.push_back(after);
    blocks.push_back(
        {first, {before, nop(), data("re", {local("i", 0), local("s", 0)}, {local("o", 0)})}});
  }
  return plan("allreduce", false, {1, 1, 1}, blocks);
}

TEST(Mscclpp, SemaphoresAndBarriersOrderThreadBlocks) {
  const json release = {{"name", "sem_release"}, {"semaphore_ids", {0}}};
  const json acquire = {{"name", "sem_acquire"}, {"semaphore_ids", {0}}};
  const json barrier = {{"name", "barrier"}, {"barrier_id", 0}, {"num_threadblocks", 2}};
  EXPECT_TRUE(read(two_blocks(release, acquire)).has_program);
  EXPECT_TRUE(read(two_blocks(barrier, barrier)).has_program);
  EXPECT_THAT(said(two_blocks(release, nop())), HasSubstr("[R6]"));
  EXPECT_THAT(said(two_blocks(nop(), acquire)),
              HasSubstr("waits for ever for semaphore 0, which nobody releases any more"));
  EXPECT_THAT(said(two_blocks(nop(), barrier)),
              HasSubstr("waits for ever at barrier 0: 1 of 2 threadblocks come"));
}

TEST(Mscclpp, ASemaphoreThatStartsOpenOrdersNothing) {
  json open = two_blocks({{"name", "sem_release"}, {"semaphore_ids", {0}}},
                         {{"name", "sem_acquire"}, {"semaphore_ids", {0}}});
  open["gpus"][0]["semaphores"][0]["init_value"] = 1;
  EXPECT_THAT(said(open), HasSubstr("[R6]"));
}

TEST(Mscclpp, ThreadBlocksShareAnOpInSlices) {
  std::vector<std::vector<std::vector<json>>> blocks;
  for (int g = 0; g < 2; ++g) {
    std::vector<std::vector<json>> of_gpu;
    for (int slice = 0; slice < 3; ++slice) {
      json put = data("put", {local("o", g)}, {remote(kOutput, g)});
      put["tbg_info"] = {{"tb_id", slice}, {"tbg_size", 3}};
      of_gpu.push_back({put, nop(), control("signal"), control("wait")});
    }
    blocks.push_back(of_gpu);
  }
  const ForeignProgram foreign = read(plan("allgather", true, {1, 2, 0}, blocks));
  ASSERT_TRUE(foreign.has_program);
  EXPECT_EQ(foreign.program.contract.units, 6);
  EXPECT_EQ(foreign.program.ops[0].length, 1U);
}

TEST(Mscclpp, ABodyOfAPipelineIsTakenOnce) {
  json piped = pair();
  json put = ops_of(piped, 0)[3];
  ops_of(piped, 0)[3] = {{"name", "pipeline"},
                         {"iter_context", {{"unit_size", 1048576}, {"num_chunks", 1}}},
                         {"ops", json::array({put})}};
  const ForeignProgram foreign = read(piped);
  EXPECT_TRUE(foreign.has_program);
  EXPECT_THAT(notes_of(foreign),
              ElementsAre(HasSubstr("note: the body of 1 pipeline is taken once")));
}

/// Those that greet, before any data has moved, announce nothing.
TEST(Mscclpp, RelaxedSignalsThatDataDependOnAreWarnedOf) {
  json relaxed = pair();
  for (int g = 0; g < 2; ++g) {
    ops_of(relaxed, g)[5] = control("rlxsignal");
    ops_of(relaxed, g)[6] = control("rlxwait");
  }
  const ForeignProgram foreign = read(relaxed);
  EXPECT_TRUE(foreign.has_program);
  EXPECT_THAT(notes_of(foreign),
              ElementsAre("warning: relaxed signals are taken to order data, which they do not "
                          "promise; without that: gpu 0 may end before gpu 1, threadblock 0, op 3 "
                          "has written its result: none of its thread blocks waits for that, and "
                          "1 more"));
  // A wait that is not relaxed gains nothing from a signal that is.
  json half = pair();
  for (int g = 0; g < 2; ++g) ops_of(half, g)[5] = control("rlxsignal");
  EXPECT_EQ(notes_of(read(half)), notes_of(foreign));
  // What a GPU passes on after a relaxed wait races with what comes.
  const auto third = [](const char* signal, const char* wait) {
    return plan(
        "allreduce", false, {1, 1, 1},
        {{{data("put", {local("i", 0)}, {remote(kScratch, 0)}), nop(), control(signal),
           control(wait), nop(), data("re", {local("i", 0), local("s", 0)}, {local("o", 0)})}},
         {{data("put", {local("i", 0)}, {remote(kScratch, 0)}), nop(), control(signal),
           control(wait), nop(), data("re", {local("i", 0), local("s", 0)}, {local("o", 0)})}}});
  };
  EXPECT_THAT(notes_of(read(third("signal", "wait"))), ElementsAre());
  EXPECT_THAT(notes_of(read(third("rlxsignal", "rlxwait"))),
              ElementsAre(HasSubstr("threadblock 0, op 5 (re): reads s[0] of gpu 1")));
}

/// A GPU that has not begun may still be making its input, or be using its output.
TEST(Mscclpp, BuffersOfGpusThatMayNotHaveBegunAreWarnedOf) {
  json early = pair();
  for (int g = 0; g < 2; ++g)
    ops_of(early, g).erase(ops_of(early, g).begin(), ops_of(early, g).begin() + 3);
  EXPECT_TRUE(read(early).has_program);
  EXPECT_THAT(notes_of(read(early)),
              ElementsAre("warning: gpu 0, threadblock 0, op 0 (put) writes to the output of gpu 1 "
                          "before anything has come from there, so that gpu 1 may not have begun "
                          "and may still be using it, and 1 more op like it"));
  // One side that greets is not enough for the other.
  json half = pair();
  ops_of(half, 0).erase(1);
  ops_of(half, 1).erase(0);
  EXPECT_THAT(notes_of(read(half)),
              ElementsAre(HasSubstr("warning: gpu 0, threadblock 0, op 2 (put) writes to the ")));
}

TEST(Mscclpp, WhatHasComeFromAGpuShowsThatItHasBegun) {
  // Packets in scratch, which is the plan's own, and then the other's output.
  std::vector<std::vector<std::vector<json>>> packets;
  for (int g = 0; g < 2; ++g) {
    packets.push_back({{data("ppkt", {local("i", 0)}, {remote(kScratch, 0)}),
                        data("upkt", {local("s", 0)}, {local("o", 1 - g)}), nop(),
                        data("put", {local("i", 0)}, {remote(kOutput, g)}), nop(),
                        control("signal"), control("wait")}});
    packets.back()[0].insert(packets.back()[0].begin(),
                             data("copy", {local("i", 0)}, {local("o", g)}));
  }
  json all = plan("allgather", false, {1, 2, 1}, packets);
  all["protocol"] = "LL";
  EXPECT_THAT(said(all), Not(HasSubstr("before anything has come")));
  // What one thread block has seen, the next one knows behind a barrier.
  const json barrier = {{"name", "barrier"}, {"barrier_id", 0}, {"num_threadblocks", 2}};
  const auto two = [&](const json& between) {
    std::vector<std::vector<std::vector<json>>> blocks;
    for (int g = 0; g < 2; ++g) {
      blocks.push_back({{control("rlxsignal"), control("rlxwait"), between},
                        {between, data("put", {local("o", g)}, {remote(kOutput, g)}), nop(),
                         control("signal"), control("wait")}});
    }
    return plan("allgather", true, {1, 2, 0}, blocks);
  };
  EXPECT_THAT(said(two(barrier)), Not(HasSubstr("before anything has come")));
}

TEST(Mscclpp, ScratchMayHoldAnyChunkInTurn) {
  // Both chunks of the sum pass through the one chunk of scratch.
  const auto blocks = [](bool ordered) {
    std::vector<std::vector<std::vector<json>>> made;
    for (int g = 0; g < 2; ++g) {
      std::vector<json> ops;
      for (int k = 0; k < 2; ++k) {
        ops.push_back(data("put", {local("i", k)}, {remote(kScratch, 0)}));
        ops.push_back(nop());
        ops.push_back(control("signal"));
        ops.push_back(control("wait"));
        ops.push_back(nop());
        ops.push_back(data("re", {local("i", k), local("s", 0)}, {local("o", k)}));
        ops.push_back(nop());
        if (!ordered) continue;
        ops.push_back(control("signal"));
        ops.push_back(control("wait"));
        ops.push_back(nop());
      }
      made.push_back({ops});
    }
    return plan("allreduce", false, {2, 2, 1}, made);
  };
  EXPECT_TRUE(read(blocks(true)).has_program) << said(blocks(true));
  EXPECT_THAT(said(blocks(false)), HasSubstr("[R6]"));
}

/// Chunks are equally large, so a sum may be made at another place of the message.
TEST(Mscclpp, ChunksMayMoveWithinTheMessage) {
  const auto blocks = [](int last) {
    std::vector<std::vector<std::vector<json>>> made;
    for (int g = 0; g < 2; ++g) {
      const int peer = 1 - g;
      made.push_back(
          {{control("rlxsignal"), control("rlxwait"), nop(),
            // What the other is to add goes to where its own sum will be in the end.
            data("put", {local("i", peer)}, {remote(kOutput, g)}), nop(), control("signal"),
            control("wait"), nop(), data("re", {local("i", g), local("o", peer)}, {local("o", g)}),
            nop(), control("signal"), control("wait"), nop(),
            data("put", {local("o", g)}, {remote(kOutput, last == 0 ? g : peer)}), nop(),
            control("signal"), control("wait")}});
    }
    return plan("allreduce", false, {2, 2, 0}, made);
  };
  const ForeignProgram right = read(blocks(0));
  EXPECT_TRUE(right.verification.ok()) << said(blocks(0));
  EXPECT_FALSE(right.has_program);
  EXPECT_THAT(notes_of(right),
              ElementsAre(HasSubstr("note: it takes chunks to other positions of the message")));
  // Where the sum is wrong, that is what is said.
  EXPECT_THAT(said(blocks(1)), HasSubstr("[R6]"));
  EXPECT_THAT(said(blocks(1)), Not(HasSubstr("[R4]")));
}

/// An allreduce overwrites what a reduction leaves alone.
TEST(Mscclpp, AnAllreduceIsNoReduction) {
  json all = pair("reduce");
  for (int g = 0; g < 2; ++g) {
    all["gpus"][static_cast<std::size_t>(g)]["input_chunks"] = 2;
    ops_of(all, g)[3] =
        data("rres", {local("o", g), remote(kOutput, g)}, {local("o", g), remote(kOutput, g)});
  }
  EXPECT_THAT(said(all), HasSubstr("labelled reduce, but what it does is allreduce"));
}

TEST(Mscclpp, WhatIsWrongIsSaidForTheRootThatFitsBest) {
  json broadcast =
      plan("broadcast", false, {2, 2, 0},
           {{{control("rlxsignal"), control("wait")}},
            {{control("rlxwait"), nop(), data("copy", {local("i", 0, 2)}, {local("o", 0, 2)}),
              data("put", {local("i", 0)}, {remote(kOutput, 0)}), nop(), control("signal")}}});
  const std::string text = said(broadcast);
  EXPECT_THAT(text, HasSubstr("rank 0's result unit 1 (o[1] of gpu 0) is never written [R7]"));
  EXPECT_THAT(text, HasSubstr("the file does not name its root: for rank 1, the least is wrong"));
  EXPECT_THAT(text, Not(HasSubstr("[R1]")));
}

TEST(Mscclpp, PutsThroughPortChannelsGoOnUntilTheyAreFlushed) {
  const auto blocks = [](bool flushes) {
    std::vector<std::vector<std::vector<json>>> made;
    for (int g = 0; g < 2; ++g) {
      json put = data("pws", {local("i", 0)}, {remote(kScratch, 0)}, "port");
      put["channel_ids"] = {0};
      std::vector<json> ops = {put};
      if (flushes) ops.push_back(control("flush", {0}, "port"));
      for (const json& op : {control("wait", {0}, "port"), nop(),
                             data("re", {local("i", 0), local("s", 0)}, {local("i", 0)})}) {
        ops.push_back(op);
      }
      made.push_back({ops});
    }
    json all = plan("allreduce", true, {1, 1, 1}, made);
    all = through_ports(all);
    for (int g = 0; g < 2; ++g) ops_of(all, g).back().erase("channel_type");
    return all;
  };
  EXPECT_TRUE(read(blocks(true)).has_program) << said(blocks(true));
  // Which the executor does not do (execution_kernel.hpp, handleFlush).
  EXPECT_EQ(
      said(blocks(true)),
      "warning: 2 flushes through port channels, which MSCCL++ 0.9 takes for nothing: what was "
      "put may be overwritten before it has gone\n");
  EXPECT_THAT(said(blocks(false)),
              HasSubstr("op 3 (re) may overtake a pws of its threadblock, which may go on: a flush "
                        "must stand between them"));
}

/// What handlePut of the executor (execution_kernel.hpp) does through a memory channel: it signals
/// nobody, and takes all from the buffer of the first source.
TEST(Mscclpp, PutsThroughMemoryChannelsOnlyPut) {
  json signals = pair();
  for (int g = 0; g < 2; ++g) ops_of(signals, g)[3]["name"] = "pws";
  EXPECT_THAT(error_of([&] { read(signals); }, ErrorKind::input),
              HasSubstr("op 3: pws signals through port channels only"));
  json mixed = pair();
  mixed["gpus"][0]["scratch_chunks"] = 1;
  json& put = ops_of(mixed, 0)[3];
  put["src_buff"] = {local("o", 0), local("s", 0)};
  put["dst_buff"] = {remote(kOutput, 0), remote(kOutput, 1)};
  EXPECT_THAT(error_of([&] { read(mixed); }, ErrorKind::input),
              HasSubstr("src_buff names buffers 'o' and 's', but through a memory channel"));
}

TEST(Mscclpp, PortChannelsLeadToOtherComputers) {
  json all = pair();
  EXPECT_THAT(read(all).host_of_rank, ElementsAre());
  json ports = through_ports(all);
  for (int g = 0; g < 2; ++g) ops_of(ports, g)[3]["channel_ids"] = {0};
  const ForeignProgram apart = read(ports);
  EXPECT_THAT(apart.host_of_rank, ElementsAre(0, 1));
  // Written again, they are the same.
  WritingOptions options;
  options.host_of_rank = apart.host_of_rank;
  const Written written = mscclpp_format().write_program(apart.program, options);
  EXPECT_THAT(written.text, Not(HasSubstr("\"memory\"")));
  // Both to one GPU: it is near.
  all["gpus"][0]["channels"].push_back({{"channel_type", "port"}, {"connected_to", {1}}});
  all["gpus"][1]["channels"].push_back({{"channel_type", "port"}, {"connected_to", {0}}});
  EXPECT_THAT(read(all).host_of_rank, ElementsAre());
  EXPECT_THAT(notes_of(read(all)),
              ElementsAre(HasSubstr("note: a port channel joins gpus 0 and 1, which memory ")));
}

TEST(Mscclpp, ProtocolAndSizesAreKept) {
  json all = pair();
  all["min_message_size"] = 1024;
  all["max_message_size"] = 1048576;
  const ForeignProgram foreign = read(all);
  EXPECT_EQ(foreign.protocol, "Simple");
  EXPECT_EQ(foreign.min_bytes, 1024);
  EXPECT_EQ(foreign.max_bytes, 1048576);
  EXPECT_EQ(read(pair()).max_bytes, -1);
  // Two chunks, each of a multiple of 16 bytes (execution_plan.cc, checkMessageSize).
  EXPECT_EQ(read(pair()).multiple_of_bytes, 32);
}

TEST(Mscclpp, LimitsOfTheExecutorAreNamed) {
  json large = pair();
  for (int k = 0; k < 60; ++k) ops_of(large, 0).push_back(nop());
  EXPECT_THAT(said(large), HasSubstr("gpu 0, threadblock 0: it has 67 ops, but the executor of "
                                     "MSCCL++ takes at most 64 [limit]"));
}

TEST(Mscclpp, FieldsAreNamedWithTheirOp) {
  json wrong = pair();
  json& put = ops_of(wrong, 1)[3];
  put["src_buff"][0]["index"] = 2;
  put["dst_buff"][0]["buffer_id"] = 7;
  ops_of(wrong, 0)[0]["channel_ids"] = {1};
  wrong["gpus"][0]["threadblocks"][0]["id"] = 1;
  const std::string text = said(wrong);
  EXPECT_THAT(text, HasSubstr("gpu 0, threadblock 0: its 'id' is 1, but must be 0"));
  EXPECT_THAT(text, HasSubstr("gpu 0, threadblock 0, op 0: 'channel_ids' is 1, which is out of "
                              "range: 0 to 0 is allowed"));
  EXPECT_THAT(text, HasSubstr("gpu 1, threadblock 0, op 3, src_buff 0: 'index' and 'size' reach up "
                              "to chunk 3, but buffer 'o' of gpu 1 has 2 chunks"));
  EXPECT_THAT(text, HasSubstr("gpu 1, threadblock 0, op 3, dst_buff 0: 'buffer_id' is 7, but "));
}

TEST(Mscclpp, KeysGivenTwiceAreRefused) {
  std::string text = pair().dump();
  text.insert(text.find("\"src_buff\""), "\"name\":\"get\",");
  EXPECT_THAT(error_of(
                  [&] {
                    mscclpp_format().read_program({text, "plan.json"});
                  },
                  ErrorKind::input),
              HasSubstr("gpu 0, threadblock 0, op 3: the key 'name' is given twice"));
}

/// What leaving out one op of a good plan does: found wrong, or noted.
void leave_out_one(const json& good) {
  for (std::size_t g = 0; g < good["gpus"].size(); ++g) {
    for (std::size_t b = 0; b < good["gpus"][g]["threadblocks"].size(); ++b) {
      const std::size_t count = good["gpus"][g]["threadblocks"][b]["ops"].size();
      for (std::size_t k = 0; k < count; ++k) {
        json other = good;
        json& ops = ops_of(other, static_cast<int>(g), static_cast<int>(b));
        const auto name = ops[k]["name"].get<std::string>();
        if (ops[k].contains("src_buff")) continue;
        SCOPED_TRACE(fmt::format("gpu {}, threadblock {}, op {} ({})", g, b, k, name));
        ops.erase(k);
        const std::string text = said(other);
        if (name.ends_with("signal") || name == "sem_release") {
          EXPECT_THAT(text, HasSubstr("[deadlock]"));
        } else if (name == "nop") {
          EXPECT_THAT(text, HasSubstr("a nop must stand between them"));
        } else if (name.ends_with("wait")) {
          // A race or, where only the begin or end of a GPU was waited for, a signal left over.
          EXPECT_THAT(text, testing::AnyOf(HasSubstr("[R"), HasSubstr("never awaited")));
        } else if (name == "sem_acquire") {
          EXPECT_THAT(text, HasSubstr("[R6]"));
        }
      }
    }
  }
}

TEST(Mscclpp, NoSignalWaitOrNopOfAWrittenPlanCanBeLeftOut) {
  for (const char* spec : {"ring", "all_pairs", "double_binary_tree", "halving_doubling"}) {
    SCOPED_TRACE(spec);
    BuildRequest request;
    request.ranks = 4;
    request.host_of_rank = {0, 0, 0, 0};
    const AlgorithmChoice choice = parse_algorithm(spec);
    if (unsupported(choice, request)) continue;
    for (const std::vector<int>& hosts : {std::vector<int>{}, std::vector<int>{0, 0, 1, 1}}) {
      WritingOptions options;
      options.host_of_rank = hosts;
      try {
        const Written written = mscclpp_format().write_program(build(choice, request), options);
        leave_out_one(json::parse(written.text));
      } catch (const Error& error) {
        // Algorithms that read from other hosts can't be written for several.
        EXPECT_EQ(error.kind(), ErrorKind::unsupported);
        EXPECT_FALSE(hosts.empty());
      }
    }
  }
}

}  // namespace
}  // namespace espalier
