// SPDX-License-Identifier: Apache-2.0
// NCCL's graph files: read, as a program, and written from programs of rings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "algorithms/algorithm.h"
#include "core/file.h"
#include "formats/format.h"
#include "formats/nccl_graph_file.h"
#include "ir/chunk.h"
#include "tests/error_of.h"
#include "tests/formats/notes_of.h"
#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::AllOf, testing::Contains, testing::ElementsAre, testing::HasSubstr;

const Format& graph() {
  for (const Format* format : all_formats()) {
    if (format->name == "nccl-graph") return *format;
  }
  throw std::logic_error("no such format");
}

ForeignProgram read(const std::string& text) {
  EXPECT_EQ(recognise(text), &graph());
  return graph().read_program({text, "graph.xml"});
}

std::string errors(const std::string& text) {
  return error_of([&] { read(text); }, ErrorKind::input);
}

std::string refusals(const std::string& text) {
  const ForeignProgram foreign = read(text);
  EXPECT_FALSE(foreign.has_program);
  std::string said;
  for (const Diagnostic& problem : foreign.verification.problems) said += render(problem) + "\n";
  return said;
}

std::string ring(const std::string& channels, int count = 1) {
  return "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"" +
         std::to_string(count) +
         "\" speedintra=\"21\" speedinter=\"12.5\" typeintra=\"NVL\" typeinter=\"PIX\" "
         "samechannels=\"0\">\n" +
         channels + "</graph>\n</graphs>\n";
}

std::string channel(const std::vector<std::string>& gpus) {
  std::string text = "<channel>";
  for (const std::string& gpu : gpus) text += "<gpu dev=\"" + gpu + "\"/>";
  return text + "</channel>\n";
}

/// Who gets data from whom on a lane, as "0>2 2>1 1>0".
std::string hops(const Program& program, int lane) {
  std::map<int, int> next;
  for (const Op& op : program.ops) {
    if (op.lane != lane) continue;
    for_each_transfer(program, op, [&](PlaceId from, PlaceId to) { next[from] = to; });
  }
  std::string text;
  for (const auto& [from, to] : next) {
    text += (text.empty() ? "" : " ") + std::to_string(from) + ">" + std::to_string(to);
  }
  return text;
}

TEST(NcclGraph, RingsAreAnAllreduce) {
  const ForeignProgram foreign =
      read("<?xml version=\"1.0\"?>\n<!-- <system> by hand -->\n" +
           ring(channel({"0", "0x2", "1", "a"}) + channel({"0xA", "1", "2", "0x0"}), 2));
  EXPECT_TRUE(foreign.verification.ok());
  ASSERT_TRUE(foreign.has_program);
  EXPECT_TRUE(verify(foreign.program).ok());
  EXPECT_EQ(foreign.program.contract.collective, Collective::allreduce);
  EXPECT_EQ(foreign.program.ranks(), 4);  // devices 0, 1, 2, 10
  EXPECT_EQ(hops(foreign.program, 0), "0>2 1>3 2>1 3>0");
  EXPECT_EQ(hops(foreign.program, 1), "0>3 1>2 2>0 3>1");
  EXPECT_EQ(foreign.program.lines.size(), foreign.program.ops.size());
  EXPECT_EQ(foreign.program.lines.front(), 5);
  EXPECT_EQ(
      foreign.facts,
      "NCCL graphs: ring: 2 channels over 4 GPUs, 21 GB/s each (NVL), 12.5 between hosts (PIX)");
  EXPECT_THAT(notes_of(foreign),
              AllOf(Contains(HasSubstr("before NCCL doubled them: its logs show up to 4")),
                    Contains(HasSubstr("device numbers"))));
}

TEST(NcclGraph, RanksSystemsAndCards) {
  const ForeignProgram foreign = read(
      ring("<channel><net dev=\"0x5\"/><gpu dev=\"0x0\" rank=\"2\"/><gpu dev=\"0x100000000000000\" "
           "rank=\"0\"/><gpu dev=\"1\" rank=\"1\"/><net dev=\"5\"/></channel>\n"));
  EXPECT_EQ(hops(foreign.program, 0), "0>1 1>2 2>0");
  EXPECT_THAT(notes_of(foreign), AllOf(Contains("note: ranks are in the order of the file's"),
                                       Contains(HasSubstr("begin and end at network cards"))));
  const NcclGraphs graphs = read_nccl_graphs(ring(channel({"0x200000000000007", "3"})), "x");
  const NcclFileGraph::Device first = graphs.graphs[0].channels[0].devices[0];
  EXPECT_EQ(first.system, 2U);
  EXPECT_EQ(first.dev, 7U);
}

TEST(NcclGraph, WhatIsNoRingIsDescribed) {
  const std::string tree =
      "<graphs version=\"1\"><graph id=\"1\" pattern=\"1\" nchannels=\"1\" speedintra=\"20\" "
      "speedinter=\"20\" typeintra=\"NVL\" typeinter=\"SYS\">" +
      channel({"0", "1"}) +
      "</graph><graph id=\"3\" pattern=\"5\" nchannels=\"0\" speedintra=\"0\" speedinter=\"0\" "
      "typeintra=\"LOC\" typeinter=\"LOC\"/></graphs>";
  EXPECT_THAT(refusals(tree), HasSubstr("graph.xml:1: error: the file has no ring"));
  EXPECT_EQ(
      read(tree).facts,
      "NCCL graphs: balanced tree: 1 channel over 2 GPUs, 20 GB/s each (NVL), 20 between hosts "
      "(SYS); nvls: none found");
  EXPECT_EQ(refusals(ring(channel({"0", "1", "2"}) + channel({"0", "2"}), 2)),
            "graph.xml:4: error: channel 1 is no ring through all GPUs: it lacks gpu 0x1\n");
  EXPECT_THAT(refusals(ring(channel({"0"}))), HasSubstr("have one GPU, which makes no ring"));
  EXPECT_THAT(refusals(ring("", 0)), HasSubstr("has no ring"));
}

TEST(NcclGraph, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(
      errors(ring("<channel>\n<gpu dev=\"g\"/>\n<gpu dev=\"1\"/><gpu dev=\"0x1\"/>\n"
                  "<net dev=\"0\"/><gpu/>\n<gpu dev=\"2\" rank=\"x\"/></channel>\n",
                  3)),
      "graph.xml:2: error: 'nchannels' of <graph> is 3, but it has 1 channel\n"
      "graph.xml:3: error: a <net> of the channel stands between GPUs, but belongs at its ends\n"
      "graph.xml:4: error: 'dev' of <gpu> must be a hexadecimal number, not 'g'\n"
      "  help: write it as 0x7\n"
      "graph.xml:5: error: gpu 0x1 is in the channel twice, first on line 5\n"
      "graph.xml:6: error: <gpu> has no 'dev'\n"
      "graph.xml:7: error: 'rank' of <gpu> must be a number, not 'x'");
  EXPECT_THAT(errors("<graphs version=\"2\"/>"),
              AllOf(HasSubstr("version of <graphs> is '2'"), HasSubstr("has no <graph>")));
  EXPECT_THAT(errors("<graphs version=\"1\"><graph/></graphs>"),
              AllOf(HasSubstr("<graph> has no 'id'"), HasSubstr("<graph> has no 'pattern'"),
                    HasSubstr("<graph> has no 'nchannels'"), HasSubstr("no 'speedintra'"),
                    HasSubstr("no 'typeinter'")));
  EXPECT_THAT(errors("<graphs version=\"1\"><graph id=\"0\" pattern=\"7\" nchannels=\"1e9\" "
                     "speedintra=\"-1\"/></graphs>"),
              AllOf(HasSubstr("'pattern' of <graph> is 7, but must be from 1 to 6"),
                    HasSubstr("'nchannels' of <graph> is 1e9"), HasSubstr("'speedintra'")));
}

/// As many GPUs as make too large a program, in a file of more than a megabyte.
TEST(NcclGraph, TooLargeAProgramIsRefused) {
  std::vector<std::string> gpus;
  for (int g = 0; g < 1000; ++g) gpus.push_back(std::to_string(g));
  std::string channels;
  for (int c = 0; c < 64; ++c) channels += channel(gpus);
  EXPECT_GT(channels.size(), 1'000'000U);
  EXPECT_THAT(refusals(ring(channels, 64)), HasSubstr("more than 4194304 ops"));
}

// Writing.

/// A program of the catalogue on all GPUs of a machine.
Program program_of(const std::string& algorithm, const std::string& machine_name,
                   Collective collective = Collective::allreduce) {
  const Topology machine = load_topology(machine_name);
  const Profile profile = machine.profile("kernel");
  const Router router(machine, profile);
  const Placement placement = place_ranks(router, {});
  return build(parse_algorithm(algorithm), request_for(collective, 0, false, router, placement));
}

Written write(const Program& program, const WritingOptions& options = {}) {
  return graph().write_program(program, options);
}

std::string unwritable(const Program& program, const WritingOptions& options = {}) {
  return error_of([&] { write(program, options); }, ErrorKind::unsupported);
}

TEST(NcclGraph, RingsOfTheCatalogueSurvive) {
  for (const char* machine : {"dgx1-v100", "p3.8xlarge", "dgx-a100", "mi300x", "cedar"}) {
    for (const char* algorithm : {"nccl_rings", "ring", "ring:directions=2"}) {
      SCOPED_TRACE(std::string(machine) + " " + algorithm);
      const Program program = program_of(algorithm, machine);
      const Written written = write(program);
      const ForeignProgram again = read(written.text);
      ASSERT_TRUE(again.has_program);
      EXPECT_EQ(again.program.contract.units, program.contract.units);
      const auto lanes = static_cast<int>(program.contract.units / program.ranks());
      for (int lane = 0; lane < lanes; ++lane) {
        EXPECT_EQ(hops(again.program, lane), hops(program, lane)) << lane;
      }
    }
    // What NCCL's rings are here is what the file says, op for op.
    Program same = program_of("nccl_rings", machine);
    same.name = "nccl_graph";
    EXPECT_TRUE(same_program(read(write(same).text).program, same)) << machine;
  }
}

TEST(NcclGraph, OtherCollectivesHaveRingsToo) {
  const std::string order = "dev=\"0x0\"/>\n      <gpu dev=\"0x1\"/>\n      <gpu dev=\"0x2\"";
  for (const Collective collective :
       {Collective::allgather, Collective::reducescatter, Collective::broadcast}) {
    EXPECT_THAT(write(program_of("ring", "cedar", collective)).text, HasSubstr(order));
  }
  const Written broadcast = write(program_of("ring", "cedar", Collective::broadcast));
  EXPECT_THAT(broadcast.notes, Contains(HasSubstr("one that the program does not use")));
  EXPECT_THAT(broadcast.notes, Contains(HasSubstr("experimental")));
  EXPECT_THAT(broadcast.text, HasSubstr("<!-- Experimental"));
  const Written cut = write(chunk(program_of("ring", "cedar"), {4, 1, false}));
  EXPECT_EQ(cut.text, write(program_of("ring", "cedar")).text);
}

TEST(NcclGraph, RefusesWhatIsNoRing) {
  EXPECT_THAT(unwritable(program_of("double_binary_tree", "dgx1-v100")),
              AllOf(HasSubstr("is no part of one: r"), HasSubstr("on lane 0, and")));
  EXPECT_THAT(unwritable(program_of("nvls", "dgx-h100")), HasSubstr("a switch does it"));
  EXPECT_THAT(unwritable(program_of("direct", "cedar", Collective::alltoall)),
              HasSubstr("not for alltoall"));
  EXPECT_THAT(unwritable(program_of("pipelined_chain", "cedar")), HasSubstr("op "));
  WritingOptions two_hosts;
  two_hosts.host_of_rank = {0, 0, 1, 1};
  EXPECT_THAT(unwritable(program_of("ring", "cedar"), two_hosts),
              HasSubstr("one host, and the ranks are on 2"));
}

// Public files, where they are.

TEST(NcclGraph, PublicFilesAreReadAsExpected) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::filesystem::path folder(corpus);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "nccl_graph")) {
    if (entry.path().extension() != ".xml") continue;
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const auto expected = nlohmann::json::parse(
        read_file((folder / "expected" / "nccl_graph" / (name + ".json")).string()));
    const std::string text = read_file(entry.path().string());
    const NcclGraphs graphs = read_nccl_graphs(text, name);
    ASSERT_EQ(graphs.graphs.size(), expected["graphs"].size());
    std::size_t ring_gpus = 0;
    for (std::size_t g = 0; g < graphs.graphs.size(); ++g) {
      const NcclFileGraph& mine = graphs.graphs[g];
      const auto& theirs = expected["graphs"][g];
      EXPECT_EQ(std::to_string(mine.id), theirs["id"]);
      EXPECT_EQ(pattern_name(mine.pattern), theirs["pattern"]);
      EXPECT_EQ(mine.gbps_intra, std::stod(theirs["speed_intra"].get<std::string>()));
      EXPECT_EQ(mine.gbps_inter, std::stod(theirs["speed_inter"].get<std::string>()));
      EXPECT_EQ(mine.type_intra, theirs["type_intra"]);
      EXPECT_EQ(mine.type_inter, theirs["type_inter"]);
      EXPECT_EQ(mine.crosses_nics ? "1" : "0", theirs["crossnic"]);
      EXPECT_EQ(mine.has_same_channels ? "1" : "0", theirs["samechannels"]);
      std::vector<std::vector<std::string>> channels;
      for (const NcclFileGraph::Channel& one : mine.channels) {
        auto& devices = channels.emplace_back();
        for (const NcclFileGraph::Device& device : one.devices) {
          std::ostringstream word;
          word << (device.is_net ? "net " : "gpu ") << std::hex << device.dev;
          devices.push_back(word.str());
        }
      }
      EXPECT_EQ(channels, theirs["channels"].get<std::vector<std::vector<std::string>>>());
      if (mine.pattern == kRingPattern) ring_gpus = theirs["gpus"].get<std::size_t>();
    }
    const ForeignProgram foreign = read(text);
    EXPECT_TRUE(foreign.verification.ok());
    ASSERT_TRUE(foreign.has_program);
    EXPECT_EQ(static_cast<std::size_t>(foreign.program.ranks()), ring_gpus);
    ++files;
  }
  EXPECT_GT(files, 3);
}

}  // namespace
}  // namespace espalier
