// SPDX-License-Identifier: Apache-2.0
#include "formats/foreign_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "formats/format.h"

namespace espalier {
namespace {

using testing::Optional;

TEST(NotAmong, SaysForWhichMessagesARuntimeTakesAProgram) {
  ForeignProgram foreign;
  EXPECT_EQ(not_among(foreign, 100, 4), std::nullopt);
  foreign.multiple_of_elements = 8;
  EXPECT_EQ(not_among(foreign, 32, 4), std::nullopt);
  EXPECT_THAT(not_among(foreign, 100, 4), Optional(std::string("messages of a multiple of 8 "
                                                               "elements")));
  // 16 elements of half the size.
  EXPECT_EQ(not_among(foreign, 32, 2), std::nullopt);
  EXPECT_NE(not_among(foreign, 34, 2), std::nullopt);
  foreign.multiple_of_elements = 1;
  foreign.multiple_of_bytes = 48;
  EXPECT_EQ(not_among(foreign, 96, 4), std::nullopt);
  EXPECT_THAT(not_among(foreign, 64, 4), Optional(std::string("messages of a multiple of 48 "
                                                              "bytes")));
  foreign.min_bytes = 1024;
  EXPECT_THAT(not_among(foreign, 96, 4), Optional(std::string("messages from 1KiB")));
  foreign.max_bytes = 4096;
  EXPECT_THAT(not_among(foreign, 4800, 4), Optional(std::string("messages from 1KiB up to 4KiB")));
  EXPECT_EQ(not_among(foreign, 4080, 4), std::nullopt);
}

std::string silent_gpus(const std::string& collective, int count) {
  std::string text =
      "<algo name=\"silent\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" "
      "ngpus=\"" +
      std::to_string(count) + "\" coll=\"" + collective +
      "\" "
      "inplace=\"0\">\n";
  for (int gpu = 0; gpu < count; ++gpu) {
    text += "<gpu id=\"" + std::to_string(gpu) +
            "\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\"></gpu>\n";
  }
  return text + "</algo>\n";
}

/// Every GPU could be the root, and each of these takes a look at all: 4 million of them are
/// enough.
TEST(MscclRoots, OfVeryManyGpusAreNotAllTried) {
  const std::string text = silent_gpus("broadcast", 4000);
  const ForeignProgram foreign = recognise(text)->read_program({text, "silent.xml"});
  ASSERT_FALSE(foreign.verification.ok());
  EXPECT_THAT(foreign.verification.problems.front().suggestion,
              testing::HasSubstr("the least is wrong of 1000 that were tried"));
}

}  // namespace
}  // namespace espalier
