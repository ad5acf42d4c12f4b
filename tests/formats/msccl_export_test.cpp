// SPDX-License-Identifier: Apache-2.0
// Programs written as MSCCL's algorithms: they can be read back, take the same time, keep the rules
// of the readers they are for, and mutilated ones are found out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <random>
#include <set>
#include <sstream>

#include "algorithms/algorithm.h"
#include "formats/format.h"
#include "formats/msccl_lowering.h"
#include "ir/builder.h"
#include "ir/chunk.h"
#include "ir/instances.h"
#include "ir/print.h"
#include "ir/text.h"
#include "run/blocks.h"
#include "run/routes.h"
#include "sim/simulator.h"
#include "tests/error_of.h"
#include "tests/formats/msccl_machine.h"
#include "tests/sample.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr std::uint64_t kSeed = 20250607;

const Format& msccl() {
  const auto found = std::ranges::find(all_formats(), "msccl-xml", &Format::name);
  return **found;
}

ForeignProgram read(const std::string& text) { return msccl().read_program({text, "algo.xml"}); }

int number(pugi::xml_node node, const char* name) { return node.attribute(name).as_int(-99); }

/// What the readers of MSCCL and RCCL refuse (src/graph/topo.cc, src/misc/msccl/msccl_parser.cc),
/// and what their interpreter has no room for, rule by rule.
class Rules {
 public:
  explicit Rules(const std::string& text) { document_.load_string(text.c_str()); }

  void check() {
    const pugi::xml_node algo = document_.child("algo");
    const std::set<std::string> protocols{"Simple", "LL", "LL128"};
    const std::set<std::string> labels{"allreduce", "allgather", "reduce_scatter",
                                       "alltoall",  "broadcast", "reduce"};
    EXPECT_LE(std::string(algo.attribute("name").value()).size(), 63U);
    EXPECT_TRUE(protocols.contains(algo.attribute("proto").value()));
    EXPECT_TRUE(labels.contains(algo.attribute("coll").value()));
    EXPECT_NE(number(algo, "inplace"), number(algo, "outofplace"));
    EXPECT_LE(number(algo, "minBytes"), algo.attribute("maxBytes").as_llong());
    const auto gpus = algo.children("gpu");
    ASSERT_EQ(std::distance(gpus.begin(), gpus.end()), number(algo, "ngpus"));
    int rank = 0;
    for (const pugi::xml_node gpu : gpus) {
      EXPECT_EQ(number(gpu, "id"), rank++);
      check_gpu(algo, gpu);
    }
  }

 private:
  void check_gpu(pugi::xml_node algo, pugi::xml_node gpu) {
    const int ranks = number(algo, "ngpus"), chunks = number(algo, "nchunksperloop");
    const std::string label = algo.attribute("coll").value();
    const int input = number(gpu, "i_chunks") * (label == "allgather" ? ranks : 1);
    const int output = number(gpu, "o_chunks") * (label == "reduce_scatter" ? ranks : 1);
    EXPECT_TRUE(input == 0 || input == chunks);
    EXPECT_TRUE(output == 0 || output == chunks);
    std::set<std::pair<int, int>> senders, receivers;
    std::map<int, int> sending, receiving;
    std::map<std::pair<int, int>, bool> awaited;  // by step: hasdep
    std::set<std::pair<int, int>> waited_for;
    int id = 0;
    for (const pugi::xml_node tb : gpu.children("tb")) {
      EXPECT_EQ(number(tb, "id"), id);
      const int send = number(tb, "send"), recv = number(tb, "recv"), channel = number(tb, "chan");
      EXPECT_TRUE(channel >= 0 && channel < number(algo, "nchannels"));
      for (const int peer : {send, recv}) {
        EXPECT_TRUE(peer >= -1 && peer < ranks && peer != number(gpu, "id"));
      }
      EXPECT_TRUE(send == -1 || senders.insert({send, channel}).second);
      EXPECT_TRUE(recv == -1 || receivers.insert({recv, channel}).second);
      if (send != -1) {
        EXPECT_LE(++sending[channel], 32);
      }
      if (recv != -1) {
        EXPECT_LE(++receiving[channel], 32);
      }
      int step_number = 0;
      for (const pugi::xml_node step : tb.children("step")) {
        EXPECT_EQ(number(step, "s"), step_number);
        awaited[{id, step_number++}] = number(step, "hasdep") == 1;
        check_step(gpu, tb, step, {chunks, ranks}, label);
        if (number(step, "depid") != -1) {
          EXPECT_LE(number(step, "depid"), 127);
          waited_for.insert({number(step, "depid"), number(step, "deps")});
        }
      }
      EXPECT_LE(step_number, 256);
      ++id;
    }
    EXPECT_LE(id, 216);
    for (const auto& [step, said] : awaited) EXPECT_EQ(said, waited_for.contains(step));
    for (const auto& step : waited_for) EXPECT_TRUE(awaited.contains(step));
  }

  static void check_step(pugi::xml_node gpu, pugi::xml_node tb, pugi::xml_node step,
                         std::pair<int, int> size, const std::string& label) {
    static const std::set<std::string> kTypes{"s",    "r",   "rcs", "rrs", "rrc",
                                              "rrcs", "cpy", "re",  "nop"};
    const std::string type = step.attribute("type").value();
    EXPECT_TRUE(kTypes.contains(type)) << type;
    const bool is_nop = type == "nop";
    EXPECT_TRUE(is_nop ? number(step, "cnt") == 0
                       : number(step, "cnt") >= 1 && number(step, "cnt") <= 71);
    // A chain of dependencies ends with a step that moves something.
    if (is_nop) {
      EXPECT_NE(number(step, "depid"), -1);
      EXPECT_TRUE(step.next_sibling("step"));
    }
    EXPECT_TRUE(type[0] != 'r' || type == "re" || number(tb, "recv") != -1);
    EXPECT_TRUE(type.back() != 's' || number(tb, "send") != -1);
    const int chunks = size.first, ranks = size.second;
    const auto inside = [&](const char* buffer, const char* offset) {
      const char which = *step.attribute(buffer).value();
      const int limit =
          which == 's' ? number(gpu, "s_chunks")
          : (which == 'i' && label == "allgather") || (which == 'o' && label == "reduce_scatter")
              ? chunks / ranks
              : chunks;
      return number(step, offset) >= 0 && number(step, offset) + number(step, "cnt") <= limit;
    };
    const bool reads = type == "s" || type == "cpy" || type == "re" || type.starts_with("rr");
    if (reads) {
      EXPECT_TRUE(inside("srcbuf", "srcoff")) << type;
    }
    if (!is_nop && type != "s" && type != "rrs") {
      EXPECT_TRUE(inside("dstbuf", "dstoff")) << type;
    }
  }

  pugi::xml_document document_;
};

struct Case {
  std::string algorithm;
  Collective collective;
  std::string machine;
  int ranks;
  bool in_place;
  int instances = 1;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const Collective collective : algorithm->collectives) {
      for (const auto& [machine, most] :
           {std::pair("dgx1-v100", 8), {"dgx-a100:nodes=2", 16}, {"mi300x", 8}}) {
        for (int ranks = 2; ranks <= most; ++ranks) {
          for (const bool in_place : {false, true}) {
            cases.push_back({algorithm->name, collective, machine, ranks, in_place});
          }
        }
      }
    }
  }
  return cases;
}

/// More lanes than the 32 blocks that a GPU has under profile `kernel`: they share some.
std::vector<Case> crowded_cases() {
  std::vector<Case> cases;
  for (const auto& [machine, ranks] : {std::pair("dgx1-v100", 8),
                                       {"dgx-a100", 5},
                                       {"dgx-a100", 8},
                                       {"dgx-a100:nodes=2", 16},
                                       {"mi300x", 7}}) {
    for (const Collective collective : {Collective::allreduce, Collective::allgather,
                                        Collective::reducescatter, Collective::broadcast}) {
      for (const int instances : {3, 5, 8}) {
        const bool in_place = instances == 5;
        cases.push_back(
            {"optimal:fabric=1,plan=1", collective, machine, ranks, in_place, instances});
      }
    }
  }
  return cases;
}

std::vector<Case> cases_to_try() {
  std::vector<Case> cases = sample(all_cases(), 0, 120, kSeed);
  const std::vector<Case> crowded = crowded_cases();
  cases.insert(cases.end(), crowded.begin(), crowded.end());
  return cases;
}

class RoundTrip {
 public:
  explicit RoundTrip(const Case& asked) : topology_(load_topology(asked.machine)) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < asked.ranks; ++gpu) gpus.push_back(gpu);
    for (const char* name : {"kernel", "ideal"}) {
      routers_.push_back(std::make_unique<Router>(topology_, topology_.profile(name)));
    }
    target_ = {routers_[0].get(), place_ranks(*routers_[0], gpus)};
    const AlgorithmChoice choice = parse_algorithm(asked.algorithm);
    const auto& served = choice.algorithm->collectives;
    if (std::ranges::count(served, asked.collective) == 0) return;
    const BuildRequest request =
        request_for(asked.collective, 0, asked.in_place, *routers_[0], target_.placement);
    if (unsupported(choice, request)) return;
    is_pipelined_ = choice.algorithm->pipelined;
    program_ = instances(build(choice, request), asked.instances);
    if (!check_routes(*program_, target_).empty()) program_.reset();
  }

  const std::optional<Program>& program() const { return program_; }
  bool is_pipelined() const { return is_pipelined_; }
  /// Whether lanes share blocks of some GPU.
  bool is_crowded() const {
    return std::ranges::max(moving_lanes(*program_)) > routers_[0]->profile().blocks;
  }

  double time_s(const Program& program, std::size_t profile, std::int64_t bytes) {
    RunOptions options;
    options.size_bytes = bytes;
    options.engine = SimEngine::classes;
    return simulator_.run(program, {routers_[profile].get(), target_.placement}, options).time_s;
  }
  std::size_t profiles() const { return routers_.size(); }

 private:
  Topology topology_;
  std::vector<std::unique_ptr<Router>> routers_;
  Target target_;
  Simulator simulator_;
  std::optional<Program> program_;
  bool is_pipelined_ = false;
};

constexpr std::int64_t kMostPieces = 4'000'000;

TEST(MscclExport, WhatIsWrittenIsReadBackAndTakesTheSameTime) {
  int written = 0, unchanged = 0, crowded = 0;
  for (const Case& one : cases_to_try()) {
    SCOPED_TRACE(fmt::format("{} x{} {} {} {} ranks {}", one.algorithm, one.instances,
                             to_string(one.collective), one.machine, one.ranks,
                             one.in_place ? "in place" : "out of place"));
    RoundTrip trip(one);
    if (!trip.program()) continue;
    Written result;
    try {
      result = msccl().write_program(*trip.program(), {});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      continue;
    }
    ++written;
    const std::string& text = result.text;
    Rules(text).check();
    const ForeignProgram back = read(text);
    ASSERT_TRUE(back.has_program);
    EXPECT_TRUE(verify(back.program).ok());
    // Simple has two slots.
    EXPECT_TRUE(MscclMachine(text).is_right(2, 0, kSeed));
    // One of the two is what was written; where nothing had to be changed it is the program itself.
    double least_apart = 1;
    for (const bool one_way : {false, true}) {
      const MscclLowering tried = lower_to_msccl(*trip.program(), one_way);
      double apart = 0;
      for (std::size_t profile = 0; profile < trip.profiles(); ++profile) {
        for (const std::int64_t bytes : {1 << 14, 1 << 26}) {
          const double right = trip.time_s(tried.program, profile, bytes);
          const double ours = trip.time_s(back.program, profile, bytes);
          // Sums one after the other on the same chunk are one op when they are read.
          const bool is_joined = back.program.ops.size() < tried.program.ops.size();
          apart = std::max(apart, is_joined ? ours / right - 1 : std::abs(ours / right - 1));
        }
      }
      least_apart = std::min(least_apart, apart);
    }
    EXPECT_LE(least_apart, 1e-9);
    if (result.is_reshaped) continue;
    ++unchanged;
    if (trip.is_crowded()) ++crowded;
    // Cut into pieces, too: dependencies that data flow does not show would hold between all.
    for (const bool is_cut : {false, true}) {
      if (is_cut && !trip.is_pipelined()) continue;
      const auto cut = [&](const Program& whole) {
        return chunk(whole, plan_chunking(whole, 1 << 26, is_cut ? 1 << 20 : 0, kMostPieces,
                                          /*stagger=*/is_cut));
      };
      const double ratio = trip.time_s(cut(back.program), 0, 1 << 26) /
                           trip.time_s(cut(*trip.program()), 0, 1 << 26);
      EXPECT_NEAR(ratio, 1, 1e-9) << is_cut;
    }
  }
  EXPECT_GE(written, 40);
  EXPECT_GE(unchanged, 20);
  EXPECT_GE(crowded, 10);
}

Program parse(const std::string& ops, const std::string& header) {
  return parse_program("program own\n" + header + ops, "own.esp");
}

TEST(MscclExport, RefusesWhatMscclCannotSay) {
  const auto refusal = [](const Program& program) {
    return error_of([&] { msccl().write_program(program, {}); }, ErrorKind::unsupported);
  };
  EXPECT_THAT(refusal(parse("0: r1.out[0] <- r0.in[0]\n", "collective gather\nranks 2\nunits 2\n")),
              testing::HasSubstr("MSCCL has no gather"));
  EXPECT_THAT(refusal(parse("0: h0.tmp[0] <- r0.in[0]\n1: r1.out[0] <- h0.tmp[0] after 0\n",
                            "collective broadcast\nranks 2\nunits 1\nhosts 1\n")),
              testing::HasSubstr("host memory"));
  EXPECT_THAT(refusal(parse(
                  "0: r0.out[0], r1.out[0] <- r0.in[0] + r1.in[0] in switch\n1: wait 1e-6 at r0\n",
                  "collective allreduce\nranks 2\nunits 1\n")),
              testing::AllOf(testing::HasSubstr("op 0"), testing::HasSubstr("don't use switches"),
                             testing::HasSubstr("op 1")));
  std::string many = "program own\ncollective alltoall\nranks 300\nunits 90000\n";
  int op = 0;
  for (int from = 0; from < 300; ++from) {
    for (int to = 0; to < 300; ++to) {
      many += fmt::format("{}: r{}.out[{}] <- r{}.in[{}] lane {}\n", op++, to, from * 300, from,
                          to * 300, to);
    }
  }
  EXPECT_THAT(refusal(parse_program(many, "many.esp")), testing::HasSubstr("MSCCL takes"));
}

/// Of 64 results one is wrong: a slip, and no reducescatter, which the steps do as well.
TEST(MscclExport, ASlipIsNoOtherCollective) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("ideal"));
  const Placement placement = place_ranks(router, {});
  const BuildRequest request = request_for(Collective::allreduce, 0, true, router, placement);
  std::string text = msccl().write_program(build(parse_algorithm("ring"), request), {}).text;
  const std::size_t at = text.find("\"rrcs\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 6, "\"rrs\"");
  const std::vector<Diagnostic> problems = read(text).verification.problems;
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front().message, testing::Not(testing::HasSubstr("what it does is")));
}

/// A lane is a thread block at least: what others wait for need not be found out.
TEST(MscclExport, RefusesVeryManyLanesAtOnce) {
  constexpr int kLanes = 50'000;
  Builder b("many", {Collective::broadcast, 2, 0, 1, false});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(0, 0, 1), b.input(0, 0, 1));
  for (int lane = 1; lane < kLanes; ++lane) {
    b.copy(b.tmp(0, lane, 1), b.input(0, 0, 1), {.lane = lane});
  }
  const Program program = b.finish();
  EXPECT_THAT(error_of([&] { msccl().write_program(program, {}); }, ErrorKind::unsupported),
              testing::HasSubstr("thread blocks of gpu 0: 50000, MSCCL takes 216 at most"));
}

TEST(MscclExport, SumsAreCutAndOperandsKeepTheirOrder) {
  const Program whole = parse(
      "0: r0.out[0:100] <- r1.in[0:100] + r2.in[0:100] + r0.in[0:100]\n"
      "1: r0.out[100:200] <- r0.in[100:200] + r1.in[100:200] + r2.in[100:200]\n",
      "collective reduce root 0\nranks 3\nunits 200\n");
  const Written written = msccl().write_program(whole, {});
  EXPECT_THAT(written.notes, testing::Contains(testing::HasSubstr("come to scratch first")));
  // 100 units are one chunk.
  EXPECT_THAT(written.text, testing::HasSubstr("nchunksperloop=\"2\""));
  EXPECT_TRUE(MscclMachine(written.text).is_right(2, 0, 11));
}

/// Changes one attribute of one step or thread block, takes a step out, or changes two over.
std::string mutate(const std::string& text, std::mt19937_64& random) {
  pugi::xml_document document;
  document.load_string(text.c_str());
  std::vector<pugi::xml_node> steps;
  for (const auto& found : document.select_nodes("//step")) steps.push_back(found.node());
  pugi::xml_node step = steps[random() % steps.size()];
  switch (random() % 5) {
    case 0:
      step.attribute("depid").set_value(-1);
      step.attribute("deps").set_value(-1);
      break;
    case 1:
      step.attribute("srcoff").set_value(static_cast<int>(random() % 4));
      break;
    case 2:
      step.attribute("dstoff").set_value(static_cast<int>(random() % 4));
      break;
    case 3: {
      static const char* const kTypes[] = {"r", "rrc", "rcs", "rrcs", "rrs", "s", "cpy"};
      step.attribute("type").set_value(kTypes[random() % 7]);
      break;
    }
    default: {
      pugi::xml_node other = step.next_sibling("step");
      if (other) step.parent().insert_move_after(step, other);
    }
  }
  for (const auto& tb : document.select_nodes("//tb")) {
    int next = 0;
    for (pugi::xml_node one : tb.node().children("step")) one.attribute("s").set_value(next++);
  }
  std::ostringstream out;
  document.save(out, "", pugi::format_raw | pugi::format_no_declaration);
  return out.str();
}

/// A machine that shares no code with the verifier carries out mutilated algorithms in random
/// orders. What the verifier accepts is right in all of them; most of what it refuses goes wrong in
/// some.
TEST(MscclExport, MutilatedAlgorithmsAreFoundOut) {
  std::vector<std::string> texts;
  for (const auto& [name, ranks] : {std::pair("ring", 3), {"halving_doubling", 4}, {"direct", 3}}) {
    const Topology topology = load_topology(fmt::format("full:n={},gbps=10", ranks));
    const Router router(topology, topology.profile("ideal"));
    const Placement placement = place_ranks(router, {});
    for (const Collective collective : {Collective::allreduce, Collective::allgather}) {
      const AlgorithmChoice choice = parse_algorithm(name);
      const BuildRequest request = request_for(collective, 0, true, router, placement);
      if (std::ranges::count(choice.algorithm->collectives, collective) == 0) continue;
      if (unsupported(choice, request)) continue;
      texts.push_back(msccl().write_program(build(choice, request), {}).text);
    }
  }
  std::mt19937_64 random(kSeed);
  int accepted = 0, refused = 0, wrong = 0;
  const int mutants = all_cases_wanted() ? 20000 : 1500;
  for (int i = 0; i < mutants; ++i) {
    const std::string text = mutate(texts[random() % texts.size()], random);
    SCOPED_TRACE(fmt::format("mutant {} of seed {}:\n{}", i, kSeed, text));
    bool is_accepted = false;
    try {
      is_accepted = read(text).verification.ok();
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::input);
      continue;
    }
    bool goes_wrong = false;
    for (int order = 0; order < 20 && !goes_wrong; ++order) {
      goes_wrong = !MscclMachine(text).is_right(64, 0, random());
    }
    ++(is_accepted ? accepted : refused);
    if (goes_wrong) ++wrong;
    ASSERT_FALSE(is_accepted && goes_wrong);
  }
  std::printf("seed %llu: %d accepted, %d refused, of which %d went wrong\n",
              static_cast<unsigned long long>(kSeed), accepted, refused, wrong);
  EXPECT_GT(accepted, mutants / 50);
  EXPECT_GT(wrong, refused / 2);
}

}  // namespace
}  // namespace espalier
