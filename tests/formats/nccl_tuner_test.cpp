// SPDX-License-Identifier: Apache-2.0
// Files of NCCL's example tuner plugin.
#include "formats/nccl_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "core/file.h"
#include "core/words.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

using testing::AllOf, testing::Contains, testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

TunerRow row(Collective collective, std::int64_t min_bytes, std::int64_t max_bytes,
             const std::string& algorithm, const std::string& protocol = "simple") {
  TunerRow made;
  made.collective = collective;
  made.min_bytes = min_bytes;
  made.max_bytes = max_bytes;
  made.algorithm = algorithm;
  made.protocol = protocol;
  made.channels = 8;
  return made;
}

std::string refusal(const std::vector<TunerRow>& rows, const std::string& version = "2.27.3") {
  return error_of([&] { tuner_csv(rows, version); }, ErrorKind::unsupported);
}

std::string errors(const std::string& text) {
  return error_of([&] { parse_tuner_csv(text, "tuner.conf"); }, ErrorKind::input);
}

TEST(NcclTuner, WritesWhatThePluginReads) {
  TunerRow large = row(Collective::allreduce, 65537, -1, "nvls");
  large.nodes = 1;
  large.ranks = 8;
  TunerRow small = row(Collective::allreduce, 0, 65536, "tree", "ll");
  small.channels = -1;
  small.registered = 1;
  const std::string text = tuner_csv({large, small}, "2.27.3");
  EXPECT_THAT(text, AllOf(HasSubstr("# For NCCL 2.27.3"), HasSubstr("# -1 channels"),
                          HasSubstr("\nallreduce,0,65536,tree,ll,-1,-1,-1,-1,1\n"
                                    "allreduce,65537,9223372036854775807,nvls,simple,8,1,8\n")));
  EXPECT_EQ(text.find("-1 channels", text.find("nvls")), std::string::npos);
  EXPECT_THAT(parse_tuner_csv(text, "x").rows, ElementsAre(small, large));
  EXPECT_EQ(tuner_csv({large}, "2.27.3").find("-1 channels"), std::string::npos);
}

/// Whatever is written is read again, row by row, without a word about rows that meet.
TEST(NcclTuner, RowsSurvive) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<TunerRow> rows;
    std::int64_t begin = 0;
    for (int r = 0; r < 20; ++r) {
      const std::int64_t end = begin + static_cast<std::int64_t>(random() % 1000);
      TunerRow made = row(Collective::allgather, begin, end, random() % 2 ? "ring" : "pat");
      made.channels = 1 + static_cast<int>(random() % 64);
      made.pipe_ops = random() % 2 ? -1 : 1 + static_cast<int>(random() % 4);
      made.registered = static_cast<int>(random() % 3) - 1;
      rows.push_back(made);
      begin = end + 1;
    }
    const TunerFile again = parse_tuner_csv(tuner_csv(rows, "2.28"), "x");
    EXPECT_THAT(again.rows, testing::UnorderedElementsAreArray(rows));
    EXPECT_THAT(again.notes, IsEmpty());
  }
}

TEST(NcclTuner, KnowsWhatAVersionHas) {
  EXPECT_NO_THROW(tuner_csv({row(Collective::allreduce, 0, 9, "nvls")}, "2.17.1"));
  EXPECT_THAT(refusal({row(Collective::allreduce, 0, 9, "nvls")}, "2.16.5"),
              HasSubstr("row 1: nvls came with NCCL 2.17, and 2.16.5 is older"));
  EXPECT_NO_THROW(tuner_csv({row(Collective::allreduce, 0, 9, "nvls_tree")}, "2.18.1"));
  EXPECT_THAT(refusal({row(Collective::allreduce, 0, 9, "nvls_tree")}, "2.17.1"),
              HasSubstr("nvls_tree came with NCCL 2.18"));
  EXPECT_NO_THROW(tuner_csv({row(Collective::reducescatter, 0, 9, "pat")}, "2.23.4"));
  EXPECT_THAT(refusal({row(Collective::reducescatter, 0, 9, "pat")}, "2.22.3"),
              HasSubstr("pat came with NCCL 2.23"));
  EXPECT_THAT(refusal({row(Collective::broadcast, 0, 9, "tree")}),
              HasSubstr("NCCL has no tree for broadcast"));
  EXPECT_THAT(refusal({row(Collective::allreduce, 0, 9, "pat")}),
              HasSubstr("no pat for allreduce"));
  EXPECT_THAT(refusal({row(Collective::allreduce, 0, 9, "nvls", "ll")}),
              HasSubstr("nvls uses the protocol simple, not ll"));
  for (const char* version : {"", "3.0.1", "2", "2.x", "2.27.3.1", "-2.3", "2.99999999999999"}) {
    EXPECT_THAT(error_of([&] { tuner_csv({}, version); }, ErrorKind::usage),
                HasSubstr("is no version of NCCL 2"))
        << version;
  }
}

TEST(NcclTuner, RefusesRowsThatMeetAndWrongOnes) {
  TunerRow one_node = row(Collective::allreduce, 50, 200, "ring");
  one_node.nodes = 1;
  EXPECT_EQ(refusal({row(Collective::allreduce, 0, 100, "ring"), one_node}),
            "error: row 2: it applies to calls that row 1 applies to");
  TunerRow two_nodes = one_node;
  two_nodes.nodes = 2;
  EXPECT_NO_THROW(tuner_csv({one_node, two_nodes}, "2.27"));
  TunerRow wrong = row(Collective::allreduce, 10, 5, "rings", "LL");
  wrong.channels = 0;
  wrong.nodes = 4;
  wrong.ranks = 2;
  wrong.registered = 2;
  EXPECT_THAT(
      refusal({wrong, row(Collective::alltoall, 0, 1, "ring")}),
      AllOf(HasSubstr("row 1: sizes from 10 to 5 are no range"),
            HasSubstr("row 1: the number of channels is 0, but must be -1 or from 1 to 64"),
            HasSubstr("row 1: 4 nodes have no 2 ranks"), HasSubstr("registered is 2"),
            HasSubstr("row 1: 'LL' is no protocol of NCCL"),
            HasSubstr("row 1: 'rings' is no algorithm of NCCL"), HasSubstr("did you mean 'ring'"),
            HasSubstr("row 2: the plugin has no rows for alltoall")));
}

TEST(NcclTuner, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(
      errors("# fine\nallreduce,0,1,ring\nalreduce,x,-1,rings,ll,0.5,1,1\n"
             " # late\nreduce,5,2,ring,simple,99,1,,\n"),
      "tuner.conf:2: error: a row has 8 to 10 fields, and this one 4\n"
      "tuner.conf:3: error: 'alreduce' is no collective of the plugin\n"
      "  help: did you mean 'allreduce'?\n"
      "tuner.conf:3: error: 'rings' is no algorithm of NCCL\n"
      "  help: did you mean 'ring'?\n"
      "tuner.conf:3: error: the smallest size must be a whole number, not 'x'\n"
      "tuner.conf:3: error: the largest size is -1, but must be from 0 to 9223372036854775807\n"
      "tuner.conf:3: error: the number of channels must be a whole number, not '0.5'\n"
      "tuner.conf:4: error: a comment begins with # in the first column, or the plugin takes "
      "it for a row\n"
      "tuner.conf:5: error: the smallest size, 5, is above the largest, 2\n"
      "tuner.conf:5: error: the number of channels is 99, but must be from -1 to 64\n"
      "tuner.conf:5: error: the number of ranks must be a whole number, not ''\n"
      "tuner.conf:5: error: numPipeOps must be a whole number, not ''");
  EXPECT_THAT(errors("allreduce,0,1,ring,ll,1,1,1" + std::string(300, ' ')),
              HasSubstr("the plugin reads 254 at once"));
  EXPECT_THAT(errors("collective,size_bytes,algorithm\nallreduce,1,ring\n"),
              HasSubstr("these are measurements"));
  const TunerFile file = parse_tuner_csv(
      "collective_type,min_bytes\r\nallreduce, 0, 10, ring, ll, -1, 1, -1\r\n"
      "allreduce,10,20,tree,ll,2,-1,-1\nbroadcast,0,1,tree,ll,1,1,1",
      "t");
  EXPECT_EQ(file.rows.size(), 3U);
  EXPECT_THAT(file.notes, ElementsAre(HasSubstr("t:1: the plugin takes the names of columns"),
                                      HasSubstr("t:2: the plugin asks for one channel"),
                                      HasSubstr("t:4: NCCL has no tree for broadcast"),
                                      HasSubstr("t:3: line 2 applies to some of the same calls")));
}

TEST(NcclTuner, ManyRowsAreRefused) {
  std::string text;
  for (int r = 0; r < 50'000; ++r) text += "allreduce,0,1,ring,ll,1,1,1\n";
  EXPECT_THAT(errors(text),
              HasSubstr("tuner.conf:10001: error: the file has more than 10000 rows"));
  const std::vector<TunerRow> rows(20'000, row(Collective::reduce, 0, 1, "ring"));
  EXPECT_THAT(refusal(rows), HasSubstr("20000 rows are more than the 10000"));
}

TEST(NcclTuner, PublicFilesAreRead) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  int files = 0;
  const auto folder = std::filesystem::path(corpus) / "nccl_graph";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename());
    const std::string text = read_file(entry.path().string());
    if (entry.path().extension() == ".csv") {
      EXPECT_THAT(errors(text), HasSubstr("measurements"));
    }
    if (entry.path().extension() != ".conf") continue;
    const TunerFile file = parse_tuner_csv(text, "nccl_tuner.conf");
    // A row for every line that is no comment.
    std::size_t lines = 0;
    for (const std::string& line : split(text, '\n')) lines += !line.empty() && line[0] != '#';
    EXPECT_EQ(file.rows.size(), lines);
    EXPECT_GT(lines, 0U);
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace espalier
