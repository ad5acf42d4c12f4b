// SPDX-License-Identifier: Apache-2.0
// Algorithm files of MSCCL under profile msccl.
#include "scenarios/interpreted.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "algorithms/program_file.h"
#include "core/file.h"
#include "tests/msccl_ring.h"
#include "tests/scenarios/study_fixture.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

class InterpretedTest : public StudyFixture {
 protected:
  /// An allgather in place on 8 MI300X.
  Query ring(const std::string& protocol, std::int64_t size_bytes, int channels = 1) {
    const std::string path = temp_file(fmt::format("ring_{}_{}.xml", protocol, channels));
    write_file(path, msccl_allgather_ring(protocol, 8, channels, 1));
    Query asked = with(question("mi300x", Collective::allgather, "msccl"), path, size_bytes);
    asked.in_place = true;
    return asked;
  }
};

TEST_F(InterpretedTest, TakesTheProtocolOfTheFile) {
  EXPECT_EQ(study_.ask(ring("LL", 1 << 20)).protocol, "ll");
  EXPECT_EQ(study_.ask(ring("Simple", 1 << 10)).protocol, "simple");
  Query other = ring("LL", 1 << 20);
  other.profile = "msccl:simple";
  const Outcome outcome = study_.ask(other);
  EXPECT_EQ(outcome.protocol, "simple");
  EXPECT_EQ(outcome.program_note, "the file asks for protocol LL, the question for simple");
  EXPECT_EQ(outcome.report.time_s, study_.ask(ring("Simple", 1 << 20)).report.time_s);
}

TEST_F(InterpretedTest, PredictsWhatItAnswers) {
  for (const std::int64_t size_bytes : {1 << 10, 1 << 20, 100}) {
    const Query asked = ring("LL", size_bytes, 2);
    const double time_s = study_.ask(asked).report.time_s;
    EXPECT_NEAR(study_.predict(asked).best.time_s, time_s, 1e-9 * time_s) << size_bytes;
  }
}

TEST_F(InterpretedTest, RunsTheLibrarysOwnAlgorithmWhereTheFileDoesNotServe) {
  // 100 bytes are 25 elements of 4 bytes.
  const Query asked = ring("LL", 100);
  const Outcome outcome = study_.ask(asked);
  EXPECT_EQ(
      outcome.program_note,
      "not used for 100B, without a word from the runtime: it is for messages of a multiple of 8 "
      "elements. The library's own algorithm runs instead, here nccl "
      "under profile nccl");
  const Outcome own = study_.ask(by_library(asked));
  EXPECT_TRUE(own.ran());
  EXPECT_EQ(outcome.report.time_s, own.report.time_s);
  EXPECT_EQ(outcome.query.profile, "msccl");
}

TEST_F(InterpretedTest, SaysWhyAFileIsNotUsed) {
  const Query asked = ring("LL", 4096);
  const Machine& machine = study_.machine(asked);
  ForeignProgram file = *study_.choice(asked.algorithm).file->foreign;
  EXPECT_EQ(why_not_used(file, machine, asked), std::nullopt);
  file.min_bytes = 8192;
  EXPECT_EQ(why_not_used(file, machine, asked), "it is for messages from 8KiB");
  file.min_bytes = 0;
  file.max_bytes = 2048;
  EXPECT_EQ(why_not_used(file, machine, asked), "it is for messages up to 2KiB");
  file.max_bytes = 4096;
  EXPECT_EQ(why_not_used(file, machine, asked), std::nullopt);
  Query apart = asked;
  apart.in_place = false;
  EXPECT_EQ(why_not_used(file, machine, apart), "it is for calls in place");
  BlockProgram fewer = *file.blocks;
  fewer.gpus.pop_back();
  file.blocks = std::make_shared<BlockProgram>(fewer);
  EXPECT_EQ(why_not_used(file, machine, asked), "it is for 7 ranks, not for 8");
}

TEST_F(InterpretedTest, OtherProfilesAndAlgorithmsKnowNoBlocks) {
  const Query asked = ring("LL", 4096);
  const AlgorithmChoice& file = study_.choice(asked.algorithm);
  const auto topology = study_.topology(asked);
  EXPECT_NE(interpreted(topology->profile("msccl"), file), nullptr);
  EXPECT_EQ(interpreted(topology->profile("nccl"), file), nullptr);
  EXPECT_EQ(interpreted(topology->profile("msccl"), study_.choice("ring")), nullptr);
}

/// Two GPUs that send each other `count` chunks before they receive any.
std::string exchange(const std::string& protocol, int count) {
  std::string text = fmt::format(
      "<algo name=\"exchange\" proto=\"{}\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"2\" "
      "coll=\"alltoall\" inplace=\"0\">\n",
      protocol, 2 * count);
  for (int gpu = 0; gpu < 2; ++gpu) {
    const int own = gpu * count, other = (1 - gpu) * count;
    text += fmt::format(
        "<gpu id=\"{0}\" i_chunks=\"{1}\" o_chunks=\"{1}\" s_chunks=\"0\">\n"
        "<tb id=\"0\" send=\"{2}\" recv=\"{2}\" chan=\"0\">\n",
        gpu, 2 * count, 1 - gpu);
    int number = 0;
    const auto step = [&](const char* type, const char* from, int src, const char* to, int dst) {
      text += fmt::format(
          "<step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
          "cnt=\"{}\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
          number++, type, from, src, to, dst, count);
    };
    step("cpy", "i", own, "o", own);
    step("s", "i", other, "o", own);
    step("r", "i", own, "o", other);
    text += "</tb>\n</gpu>\n";
  }
  return text + "</algo>\n";
}

TEST_F(InterpretedTest, NamesBlocksThatHang) {
  const auto ask = [&](const std::string& protocol, std::int64_t size_bytes) {
    const std::string path = temp_file("exchange_" + protocol + ".xml");
    write_file(path, exchange(protocol, 3));
    Query asked = with(question("mi300x", Collective::alltoall, "msccl"), path, size_bytes);
    asked.gpus = {0, 1};
    return study_.ask(asked);
  };
  // Three chunks of 1 MiB are two pieces, and a FIFO of Simple has room for two.
  EXPECT_TRUE(ask("Simple", 6 << 20).ran());
  // Three chunks of 2 MiB are three.
  try {
    ask("Simple", 12 << 20);
    FAIL() << "it does not hang";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    ASSERT_EQ(error.diagnostics().size(), 3U);
    EXPECT_EQ(error.diagnostics()[1].message,
              "gpu 0, thread block 0, step 1 (s) waits for room in its FIFO to gpu 1, which nobody "
              "empties before gpu 1, thread block 0, step 1 (s) is done");
    EXPECT_EQ(error.diagnostics()[1].where.line, 5);
  }
  // A FIFO of LL has room for eight.
  EXPECT_TRUE(ask("LL", 12 << 20).ran());
}

}  // namespace
}  // namespace espalier
