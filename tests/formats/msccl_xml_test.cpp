// SPDX-License-Identifier: Apache-2.0
// MSCCL's algorithm files, read: what they mean, what is wrong with wrong ones, and, where
// ESPALIER_CORPUS names a folder of public files with what is expected of each, those.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/file.h"
#include "formats/format.h"
#include "formats/msccl_run.h"
#include "ir/print.h"
#include "tests/error_of.h"
#include "tests/formats/msccl_machine.h"
#include "tests/formats/notes_of.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

ForeignProgram read(const std::string& text) {
  const Format* format = recognise(text);
  if (format == nullptr || format->read_program == nullptr) {
    throw Error(ErrorKind::input, "no known format");
  }
  return format->read_program({text, "algo.xml"});
}

std::string problems(const ForeignProgram& foreign) {
  std::string all;
  for (const Diagnostic& problem : foreign.verification.problems) all += render(problem) + "\n";
  return all;
}

std::string ops(const Program& program) {
  std::string all;
  for (OpId op = 0; op < program.ops.size(); ++op) all += to_string(program, op) + "\n";
  return all;
}

std::string step(int number, const std::string& type, const std::string& src,
                 const std::string& dst, int count = 1, int block = -1, int awaited = -1,
                 int is_awaited = 0) {
  return fmt::format(
      R"(<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" )"
      R"(depid="{}" deps="{}" hasdep="{}"/>)"
      "\n",
      number, type, src[0], src.substr(1), dst[0], dst.substr(1), count, block, awaited,
      is_awaited);
}

std::string block(int id, int send, int recv, int channel, const std::string& steps) {
  return fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n{}</tb>\n", id, send,
                     recv, channel, steps);
}

std::string algo(const std::string& label, int chunks, bool in_place,
                 const std::vector<std::string>& gpus, int scratch = 0, int channels = 1) {
  std::string text = fmt::format(
      R"(<algo name="own" proto="Simple" nchannels="{}" nchunksperloop="{}" ngpus="{}" coll="{}" )"
      R"(inplace="{}">)"
      "\n",
      channels, chunks, gpus.size(), label, in_place ? 1 : 0);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const int input = label == "allgather" ? chunks / static_cast<int>(gpus.size()) : chunks;
    text +=
        fmt::format("<gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n{}</gpu>\n",
                    i, input, chunks, scratch, gpus[i]);
  }
  return text + "</algo>\n";
}

/// Two ranks, in place: each sends the other half of its input, adds, and sends the sum back.
std::string halves(const std::string& last_type = "r") {
  const auto gpu = [&](int own) {
    const int other = 1 - own;
    const std::string mine = "i" + std::to_string(own), theirs = "i" + std::to_string(other);
    return block(0, other, other, 0,
                 step(0, "s", theirs, theirs) + step(1, "rrcs", mine, mine) +
                     step(2, last_type, theirs, theirs));
  };
  return algo("allreduce", 2, true, {gpu(0), gpu(1)});
}

TEST(MscclXml, MessagesBecomeOps) {
  const ForeignProgram foreign = read(halves());
  EXPECT_EQ(problems(foreign), "");
  ASSERT_TRUE(foreign.has_program);
  // Sums are fetched by who adds, copies pushed by who has them.
  EXPECT_EQ(ops(foreign.program),
            "r0.out[0] <- r0.out[0] + r1.out[0]\n"
            "r1.out[0] <- r0.out[0]\n"
            "r1.out[1] <- r1.out[1] + r0.out[1]\n"
            "r0.out[1] <- r1.out[1]\n");
  EXPECT_TRUE(verify(foreign.program).ok());
  EXPECT_EQ(foreign.program.lines.size(), 4U);
  EXPECT_THAT(notes_of(foreign), ElementsAre());
  MscclMachine machine(halves());
  EXPECT_TRUE(machine.is_right(2, 0, 7));
}

TEST(MscclXml, WrongResultsNameTheirSteps) {
  // The last message is added to what is there instead of replacing it.
  const ForeignProgram foreign = read(halves("rrc"));
  EXPECT_FALSE(foreign.has_program);
  EXPECT_THAT(problems(foreign), HasSubstr("gpu 0, thread block 0, step 2 (rrc)"));
  MscclMachine machine(halves("rrc"));
  EXPECT_FALSE(machine.is_right(2, 0, 7));
}

TEST(MscclXml, SendsThatWaitForEachOtherAreDeadlocks) {
  const auto gpu = [&](int own) {
    const int other = 1 - own;
    return block(0, other, other, 0,
                 step(0, "r", "i0", "o" + std::to_string(other)) +
                     step(1, "s", "o" + std::to_string(own), "o0"));
  };
  const std::string text = algo("allgather", 2, true, {gpu(0), gpu(1)});
  EXPECT_THAT(problems(read(text)), HasSubstr("can never run"));
  EXPECT_THAT(problems(read(text)), HasSubstr("gpu 1, thread block 0, step 1 (s)"));
  MscclMachine machine(text);
  EXPECT_FALSE(machine.is_right(8, 0, 7));
}

/// Each sends `messages` chunks before it takes any.
std::string all_at_first(int messages, int count) {
  const auto gpu = [&](int own) {
    const int other = 1 - own;
    const int all = messages * count;
    std::string steps;
    for (int i = 0; i < messages; ++i) {
      steps += step(i, "s", fmt::format("o{}", own * all + i * count), "o0", count);
    }
    for (int i = 0; i < messages; ++i) {
      steps += step(messages + i, "r", "o0", fmt::format("o{}", other * all + i * count), count);
    }
    return block(0, other, other, 0, steps);
  };
  return algo("allgather", 2 * messages * count, true, {gpu(0), gpu(1)});
}

TEST(MscclXml, FifosThatAreTooShortAreNoted) {
  // Two slots of Simple hold two messages, not three; the machine of the test agrees.
  EXPECT_THAT(notes_of(read(all_at_first(2, 1))), ElementsAre());
  EXPECT_THAT(notes_of(read(all_at_first(3, 1))),
              ElementsAre(HasSubstr("warning: it needs FIFOs of 3 slots and hangs")));
  EXPECT_TRUE(MscclMachine(all_at_first(3, 1)).is_right(3, 0, 1));
  EXPECT_FALSE(MscclMachine(all_at_first(3, 1)).is_right(2, 0, 1));
  // Messages of four chunks go chunk by chunk once a chunk is more than half a slot: four pieces in
  // two slots. A slot is 2 MiB, so above 2 MiB / 2 for a chunk, of which there are eight.
  const ForeignProgram four = read(all_at_first(1, 4));
  EXPECT_TRUE(four.verification.ok());
  EXPECT_THAT(notes_of(four), ElementsAre(HasSubstr("warning: it hangs with messages above 8MiB")));
  // Nobody calls it for such messages where the file says that it is for none.
  std::string bounded = all_at_first(1, 4);
  bounded.insert(bounded.find(" coll="), " minBytes=\"0\" maxBytes=\"8388608\"");
  EXPECT_THAT(notes_of(read(bounded)),
              ElementsAre(HasSubstr("note: it hangs with messages above 8MiB")));
}

TEST(MscclXml, ProtocolsAreSpeltAsRuntimesReadThem) {
  std::string text = halves();
  const std::string proto = "proto=\"Simple\"";
  ASSERT_NE(text.find(proto), std::string::npos);
  text.replace(text.find(proto), proto.size(), "proto=\"simple\"");
  EXPECT_EQ(read(text).protocol, "Simple");
  EXPECT_THAT(notes_of(read(text)),
              ElementsAre("warning: 'proto' of <algo> is 'simple', read as Simple: runtimes know "
                          "Simple, LL and LL128 in this spelling only, and refuse the file"));
}

TEST(MscclXml, WrongLabelsAreFound) {
  const auto gpu = [&](int own) {
    const int other = 1 - own;
    return block(0, other, other, 0,
                 step(0, "s", fmt::format("i{}", other), "o0") +
                     step(1, "r", "i0", fmt::format("o{}", other))) +
           block(1, -1, -1, 0, step(0, "cpy", fmt::format("i{}", own), fmt::format("o{}", own)));
  };
  EXPECT_EQ(problems(read(algo("alltoall", 2, false, {gpu(0), gpu(1)}))), "");
  EXPECT_THAT(problems(read(algo("allreduce", 2, false, {gpu(0), gpu(1)}))),
              HasSubstr("labelled allreduce, but what it does is alltoall"));
  const ForeignProgram custom = read(algo("custom", 2, false, {gpu(0), gpu(1)}));
  EXPECT_THAT(notes_of(custom), ElementsAre("note: labelled custom; what it does is alltoall"));
  EXPECT_EQ(custom.program.contract.collective, Collective::alltoall);
}

/// An allreduce is a reduction to every root, too: what promises most is named.
TEST(MscclXml, CustomAlgorithmsAreWhatTheyDo) {
  std::string text = halves();
  text.replace(text.find("allreduce"), 9, "custom");
  const ForeignProgram foreign = read(text);
  EXPECT_EQ(foreign.program.contract.collective, Collective::allreduce);
  EXPECT_THAT(notes_of(foreign), ElementsAre("note: labelled custom; what it does is allreduce"));
}

/// The reader compares labels as they are spelt.
TEST(MscclXml, LabelsThatRuntimesRefuseAreWarnedOf) {
  std::string text = halves();
  text.replace(text.find("allreduce"), 9, "AllReduce");
  EXPECT_THAT(notes_of(read(text)),
              ElementsAre("warning: labelled AllReduce; what it does is allreduce"));
}

/// To one rank a reduction is an allreduce, and right.
TEST(MscclXml, AReductionOfOneRankIsRight) {
  const ForeignProgram foreign =
      read(algo("reduce", 1, false, {block(0, -1, -1, 0, step(0, "cpy", "i0", "o0"))}));
  EXPECT_EQ(problems(foreign), "");
}

TEST(MscclXml, RootsAreFound) {
  const std::string text =
      algo("broadcast", 1, false,
           {block(0, -1, 1, 0, step(0, "r", "i0", "o0")),
            block(0, 0, -1, 0, step(0, "s", "i0", "o0") + step(1, "cpy", "i0", "o0"))});
  const ForeignProgram foreign = read(text);
  EXPECT_EQ(problems(foreign), "");
  EXPECT_EQ(foreign.program.contract.root, 1);
  EXPECT_TRUE(MscclMachine(text).is_right(1, 1, 3));
}

/// NCCL's callers may leave out the output of all ranks but the root.
TEST(MscclXml, ReductionsDoNotWriteWhatOnlyTheRootHas) {
  const auto gpu = [](int own, const std::string& steps) {
    return block(0, 1 - own, 1 - own, 0, steps);
  };
  const auto reduction = [&](const std::string& theirs) {
    return read(algo("reduce", 1, false, {gpu(0, step(0, "rrc", "i0", "o0")), gpu(1, theirs)}, 1));
  };
  EXPECT_EQ(problems(reduction(step(0, "s", "i0", "o0"))), "");
  EXPECT_EQ(problems(reduction(step(0, "cpy", "i0", "s0") + step(1, "s", "s0", "o0"))), "");
  EXPECT_THAT(problems(reduction(step(0, "cpy", "i0", "o0") + step(1, "s", "o0", "o0"))),
              HasSubstr("gpu 1, thread block 0, step 0 (cpy): writes 'o', but only rank 0 of a "
                        "reduce has an output [R1]"));
}

/// It overwrites inputs that a reduction in place leaves alone.
TEST(MscclXml, AnAllreduceIsNoReduction) {
  std::string text = halves();
  text.replace(text.find("allreduce"), 9, "reduce");
  EXPECT_THAT(problems(read(text)), HasSubstr("labelled reduce, but what it does is allreduce"));
}

/// The rank that only sends is where a broadcast comes from.
TEST(MscclXml, WhatIsWrongIsSaidForTheRootThatFitsBest) {
  const ForeignProgram foreign =
      read(algo("broadcast", 1, false,
                {block(0, -1, 1, 0, step(0, "r", "i0", "s0")),
                 block(0, 0, -1, 0, step(0, "s", "i0", "o0") + step(1, "cpy", "i0", "o0"))},
                1));
  EXPECT_EQ(problems(foreign),
            "error: rank 0's result unit 0 (o[0] of gpu 0) is never written [R7]\n"
            "  help: the file does not name its root: for rank 1, the least is wrong\n");
}

TEST(MscclXml, RacesAndSilentStepsAreFound) {
  // The copy does not wait until the chunk it copies has come.
  const auto gpu = [&](int own, bool waits, int is_awaited) {
    const int other = 1 - own;
    return block(0, other, other, 0,
                 step(0, "s", "i0", "o0") + step(1, "r", "i0", "s0", 1, -1, -1, is_awaited)) +
           block(1, -1, -1, 0,
                 step(0, "cpy", "i0", fmt::format("o{}", own)) +
                     step(1, "cpy", "s0", fmt::format("o{}", other), 1, waits ? 0 : -1,
                          waits ? 1 : -1));
  };
  const auto text = [&](bool waits, int is_awaited) {
    return algo("allgather", 2, false, {gpu(0, waits, is_awaited), gpu(1, waits, is_awaited)}, 1);
  };
  EXPECT_EQ(problems(read(text(true, 1))), "");
  EXPECT_THAT(problems(read(text(false, 0))),
              HasSubstr("which gpu 1, thread block 0, step 1 (r) writes, and nothing orders"));
  EXPECT_THAT(problems(read(text(true, 0))), HasSubstr("which never says that it is done"));
}

/// Scratch holds chunks of any position; a program of ours has to put them where they belong.
TEST(MscclXml, ScratchMayHoldAnything) {
  const auto gpu = [&](int own) {
    const int other = 1 - own;
    const std::string theirs = fmt::format("i{}", 2 * other), mine = fmt::format("i{}", 2 * own);
    return block(0, other, other, 0,
                 step(0, "s", theirs, "s0", 2) + step(1, "r", "i0", "s0", 2, -1, -1, 1)) +
           block(1, other, other, 1,
                 step(0, "re", "s0", mine, 2, 0, 1) + step(1, "s", mine, mine, 2) +
                     step(2, "r", theirs, theirs, 2));
  };
  const std::string text = algo("allreduce", 4, true, {gpu(0), gpu(1)}, 2, 2);
  const ForeignProgram foreign = read(text);
  EXPECT_EQ(problems(foreign), "");
  ASSERT_TRUE(foreign.has_program);
  EXPECT_TRUE(verify(foreign.program).ok());
  EXPECT_THAT(ops(foreign.program), HasSubstr("r1.tmp[2:4] <- r0.out[2:4]"));
}

/// A label is one thing, what a reduction is made of another: reductions in one thread block become
/// one op of many operands, as the runtime carries them out.
TEST(MscclXml, ReductionsInARowAreOneOp) {
  std::string send, receive, add;
  for (int from = 1; from < 4; ++from) {
    receive += block(from - 1, -1, from, 0,
                     step(0, "r", "i0", fmt::format("s{}", from - 1), 1, -1, -1, 1));
  }
  add = block(3, -1, -1, 0,
              step(0, "cpy", "i0", "o0") + step(1, "nop", "i-1", "o-1", 0, 1, 0) +
                  step(2, "nop", "i-1", "o-1", 0, 2, 0) + step(3, "re", "s0", "o0", 1, 0, 0) +
                  step(4, "re", "s1", "o0") + step(5, "re", "s2", "o0"));
  std::vector<std::string> gpus{receive + add};
  for (int rank = 1; rank < 4; ++rank) gpus.push_back(block(0, 0, -1, 0, step(0, "s", "i0", "s0")));
  const std::string text = algo("reduce", 1, false, gpus, 3);
  const ForeignProgram foreign = read(text);
  EXPECT_EQ(problems(foreign), "");
  EXPECT_THAT(ops(foreign.program),
              HasSubstr("r0.out[0] <- r0.out[0] + r0.tmp[0] + r0.tmp[1] + r0.tmp[2]"));
  EXPECT_TRUE(MscclMachine(text).is_right(1, 0, 5));
}

// Public files, where they are.

TEST(MscclXml, PublicFilesAreReadAsExpected) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  for (const auto& entry : fs::directory_iterator(fs::path(corpus) / "msccl_xml")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto expected = nlohmann::json::parse(
        read_file((fs::path(corpus) / "expected" / "msccl_xml" / (name + ".json")).string()));
    const std::string text = read_file(entry.path().string());
    const std::string verdict = expected["verdict"];
    if (verdict == "malformed" || verdict == "structure") {
      EXPECT_NE(error_of([&] { read(text); }, ErrorKind::input), "");
      continue;
    }
    const ForeignProgram foreign = read(text);
    EXPECT_EQ(foreign.verification.ok(), verdict == "ok") << problems(foreign);
    const auto& mode = expected["modes"][expected["declared_modes"][0].get<std::string>()];
    if (verdict != "ok") continue;
    ASSERT_TRUE(foreign.has_program);
    EXPECT_TRUE(verify(foreign.program).ok());
    EXPECT_EQ(foreign.program.ranks(), expected["header"]["ngpus"].get<int>());
    std::vector<ForeignNote> ignored;
    const MscclAlgo algo = parse_msccl(text, name, ignored);
    EXPECT_EQ(fifos_of(MscclSteps(algo)).least_slots, mode["smallest_fifo_depth"].get<int>());
  }
}

TEST(MscclXml, MalformedPublicFilesGetTheMessagesTheyDeserve) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const fs::path folder = fs::path(corpus) / "malformed";
  for (const auto& one :
       nlohmann::json::parse(read_file((folder / "expected.json").string()))["cases"]) {
    const std::string name = one["file"];
    if (!name.starts_with("msccl_")) continue;
    SCOPED_TRACE(name);
    const std::string text = read_file((folder / name).string());
    std::string said;
    try {
      const Format* format = recognise_foreign(text, name);
      ASSERT_NE(format, nullptr);
      said = problems(format->read_program({text, name}));
    } catch (const Error& error) {
      said = error.what();
    }
    std::ranges::transform(said, said.begin(), [](unsigned char c) { return std::tolower(c); });
    EXPECT_TRUE(std::ranges::any_of(one["any_of"], [&](const nlohmann::json& word) {
      return said.find(word.get<std::string>()) != std::string::npos;
    })) << said;
  }
}

}  // namespace
}  // namespace espalier
