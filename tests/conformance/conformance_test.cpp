// SPDX-License-Identifier: Apache-2.0
// Every algorithm, for every collective it serves, on every back end, for awkward rank counts and
// sizes, in and out of place, whole and cut into pieces. The interpreter is the judge: its results
// must be what the collective promises, and the host's memory must match it to the last bit (the
// host back end compares every element itself). What GPUs would do is lowered to streams and
// carried out in memory of this computer, in orders drawn by chance, and so is what processes would
// send each other.
//
// Algorithms of large programs and many parameters are asked for a sample of their variants where
// there are many ranks; ESPALIER_ALL_TESTS=1 (./dev test --all) asks for all of them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "backends.h"
#include "exec/host/host_backend.h"
#include "exec/lanes/message_plan.h"
#include "ir/chunk.h"
#include "ir/interpret.h"
#include "ir/verify.h"
#include "tests/exec/local_network.h"
#include "tests/exec/recording_device.h"
#include "tests/sample.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

struct Case {
  const Algorithm* algorithm;
  Collective collective;
  int ranks;
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_{}", info.param.algorithm->name, to_string(info.param.collective),
                     info.param.ranks);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const Collective collective : algorithm->collectives) {
      for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
        cases.push_back({algorithm, collective, ranks});
      }
    }
  }
  return cases;
}

/// The algorithm with its defaults, and with each parameter at a few other values.
std::vector<std::string> variants(const Algorithm& algorithm) {
  if (algorithm.call != nullptr) {  // the choice is tested elsewhere: these are its programs
    return {algorithm.name, algorithm.name + ":algo=tree,channels=2",
            algorithm.name + ":proto=simple,channels=3"};
  }
  std::vector<std::string> specs = {algorithm.name};
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    for (const std::int64_t value :
         {parameter.minimum, parameter.default_value + 1, std::int64_t{7}}) {
      if (value < parameter.minimum || value > parameter.maximum ||
          value == parameter.default_value)
        continue;
      specs.push_back(fmt::format("{}:{}={}", algorithm.name, parameter.name, value));
    }
  }
  return specs;
}

/// Every back end of the table that can be used on this computer.
const std::vector<std::unique_ptr<Backend>>& backends_here() {
  static const std::vector<std::unique_ptr<Backend>> all = [] {
    std::vector<std::unique_ptr<Backend>> made;
    for (const BackendEntry& entry : all_backends()) {
      try {
        made.push_back(entry.make({}));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unsupported) << entry.name << ": " << error.what();
      }
    }
    return made;
  }();
  return all;
}

/// One program of a case.
struct Variant {
  std::string spec;
  int root = 0;
  bool in_place = false;
};

/// Every variant of a case with every root and placement of results; a sample of them where all
/// would take minutes. The first is the algorithm with its defaults.
std::vector<Variant> variants_of(const Case& one) {
  std::vector<Variant> all;
  for (const std::string& spec : variants(*one.algorithm)) {
    for (const int root : info(one.collective).rooted
                              ? std::vector<int>{0, one.ranks - 1, one.ranks / 2}
                              : std::vector<int>{0}) {
      for (const bool in_place : {false, true}) all.push_back({spec, root, in_place});
    }
  }
  constexpr std::array<std::string_view, 2> kCostly = {"optimal", "multipath"};
  const bool is_costly = std::ranges::count(kCostly, one.algorithm->name) > 0;
  if (!is_costly || one.ranks <= 4) return all;
  return sample(all, 1, 4, static_cast<std::uint64_t>(one.ranks));
}

/// A machine and what judges programs on it.
class Judge {
 public:
  Judge(const std::string& machine, const std::string& profile, LinkScope scope,
        const std::vector<int>& gpus = {}, const std::vector<int>& relays = {})
      : topology_(load_topology(machine)),
        router_(topology_, topology_.profile(profile), scope),
        target_{&router_, place_ranks(router_, gpus, relays)} {}

  const Router& router() const { return router_; }
  const Placement& placement() const { return target_.placement; }

  void check(const Program& program, const std::string& what) {
    const Verification verification = verify(program);
    ASSERT_TRUE(verification.ok()) << what << "\n" << render(verification.problems.front());
    // Planned programs have thousands of ops; fewer sizes keep the suite within minutes.
    const bool is_large = program.ops.size() > 1000;
    for (const std::int64_t elements : is_large ? std::vector<std::int64_t>{0, 1, 1031}
                                                : std::vector<std::int64_t>{0, 1, 13, 1000, 1031}) {
      SCOPED_TRACE(fmt::format("{}, {} elements", what, elements));
      Memory memory = initial_memory(program, DataType::int32, ReduceOp::sum, elements);
      interpret(program, DataType::int32, ReduceOp::sum, elements, memory);
      EXPECT_EQ(count_wrong(program, DataType::int32, ReduceOp::sum, elements, memory), 0);

      RunOptions options;
      options.size_bytes = elements * 4;
      std::optional<std::int64_t> transfers;
      for (const std::unique_ptr<Backend>& backend : backends_here()) {
        SCOPED_TRACE(backend->name());
        if (backend->unsupported(program, target_)) continue;
        const RunReport report = backend->run(program, target_, options);
        if (report.executed) {
          EXPECT_EQ(report.executed->wrong, 0);
        }
        if (!transfers) transfers = report.transfers;
        EXPECT_EQ(report.transfers, transfers);
        // Local copies take time too, and no bytes over links without latency take none.
        if (report.simulated && elements > 0 && report.transfers > 0) {
          EXPECT_GT(report.time_s, 0);
        }
      }
      const bool in_switches = std::ranges::any_of(program.ops, &Op::in_switch);
      if (!in_switches && (elements == 13 || elements == 1031)) check_streams(program, elements);
      check_messages(program, elements);
    }
  }

 private:
  /// On some number of devices that have some of what devices may have.
  void check_streams(const Program& program, std::int64_t elements) {
    const std::uint64_t drawn = random_();
    const auto devices = 1 + drawn % static_cast<std::uint64_t>(program.ranks());
    DeviceSet set;
    for (PlaceId place = 0; place < program.places(); ++place) {
      const bool on_host = place_number(program, place).kind == PlaceKind::host;
      const auto device = static_cast<int>(static_cast<std::uint64_t>(place) % devices);
      set.device_of_place.push_back(on_host ? DeviceSet::kHost : device);
    }
    set.can_access.assign(devices, std::vector<bool>(devices, (drawn >> 8) % 4 != 0));
    set.copy_engines = static_cast<CopyEngineUse>((drawn >> 16) % 3);
    set.max_peers = 1 + static_cast<int>((drawn >> 24) % 8);
    set.max_streams = 1 << (drawn >> 32) % 5;
    SCOPED_TRACE(fmt::format("{} devices, draw {:x}", devices, drawn));
    expect_right(program, set, DataType::int32, ReduceOp::sum, elements, random_);
  }

  /// In as many processes, with whatever buffering and scratch memory; of a few programs where not
  /// all are wanted.
  void check_messages(const Program& program, std::int64_t elements) {
    const std::uint64_t drawn = random_();
    if (!all_cases_wanted() && drawn % 16 != 0) return;
    const auto buffering = (drawn >> 8) % 2 == 0 ? Buffering::none : Buffering::all;
    const Scratch scratch{.bytes = (drawn >> 16) % 2 == 0   ? 0
                                   : (drawn >> 17) % 2 == 0 ? 256
                                                            : Scratch{}.bytes,
                          .piece_bytes = (drawn >> 24) % 2 == 0 ? 0 : 20};
    expect_messages_right(program, DataType::int32, ReduceOp::sum, elements, buffering, drawn,
                          scratch);
  }

  std::mt19937_64 random_{7};
  Topology topology_;
  Router router_;
  Target target_;
};

class Conformance : public testing::TestWithParam<Case> {
 protected:
  /// Every pair is joined, and every GPU has a way to host memory.
  Conformance()
      : judge_(fmt::format("full:n={},gbps=25,latency_us=1,host_gbps=16", GetParam().ranks),
               "kernel", LinkScope::all) {}

  Judge judge_;
};

TEST_P(Conformance, RightOnEveryBackEnd) {
  const auto& [algorithm, collective, ranks] = GetParam();
  int served = 0;
  for (const auto& [spec, root, in_place] : variants_of(GetParam())) {
    const AlgorithmChoice choice = parse_algorithm(spec);
    const BuildRequest request =
        request_for(collective, root, in_place, judge_.router(), judge_.placement());
    if (unsupported(choice, request)) continue;
    ++served;
    const std::string what = fmt::format("{} root {}{}", spec, root, in_place ? " in place" : "");
    const Program program = build(choice, request);
    judge_.check(program, what);
    judge_.check(chunk(program, {3, 1}), what + ", cut in three");
  }
  if (served == 0) {
    // Only a stated constraint may turn a rank count away.
    const BuildRequest request =
        request_for(collective, 0, false, judge_.router(), judge_.placement());
    EXPECT_NE(unsupported(parse_algorithm(algorithm->name), request).value_or(""), "");
    GTEST_SKIP() << *unsupported(parse_algorithm(algorithm->name), request);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Conformance, testing::ValuesIn(all_cases()), case_name);

/// GPUs that links join unevenly: without some NVLinks, below several PCIe switches, on two nodes.
/// Plans, rings and groups have their hard cases here, and the ranks are in no order.
struct MachineCase {
  const Algorithm* algorithm;
  std::string machine;
  std::vector<int> gpus;
};

std::vector<MachineCase> machine_cases() {
  std::vector<MachineCase> cases;
  for (const Algorithm* algorithm : all_algorithms()) {
    cases.push_back({algorithm, "dgx1-v100", {5, 0, 3, 6, 7}});
    cases.push_back({algorithm, "p2.8xlarge", {1, 0, 2, 7, 5, 6}});
    cases.push_back({algorithm, "mist:nodes=2", {6, 1, 0, 3, 4}});
  }
  return cases;
}

class ConformanceOfMachines : public testing::TestWithParam<MachineCase> {};

TEST_P(ConformanceOfMachines, RightOnEveryBackEnd) {
  const auto& [algorithm, machine, gpus] = GetParam();
  Judge judge(machine, "copy_engine", LinkScope::all, gpus);
  const AlgorithmChoice choice = parse_algorithm(algorithm->name);
  std::string why_not;
  int served = 0;
  for (const Collective collective : algorithm->collectives) {
    const int root = info(collective).rooted ? 3 : 0;
    const BuildRequest request =
        request_for(collective, root, false, judge.router(), judge.placement());
    if (const auto reason = unsupported(choice, request)) {
      why_not = *reason;
      continue;
    }
    ++served;
    const Program program = build(choice, request);
    judge.check(program, std::string(to_string(collective)));
    judge.check(chunk(program, {3, 1}), fmt::format("{}, cut in three", to_string(collective)));
  }
  if (served == 0) GTEST_SKIP() << why_not;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ConformanceOfMachines, testing::ValuesIn(machine_cases()),
                         [](const testing::TestParamInfo<MachineCase>& one) {
                           return one.param.machine.substr(0, 2) + "_" + one.param.algorithm->name;
                         });

/// Ranks of a DGX-1 that NVLink joins badly or not at all, and idle GPUs that relay between them.
TEST(ConformanceOfRelays, RightOnEveryBackEnd) {
  struct Relayed {
    std::vector<int> gpus, relays;
  };
  for (const auto& [gpus, relays] :
       {Relayed{{0, 5}, {1}}, Relayed{{5, 0}, {1, 2, 3, 4, 6, 7}}, Relayed{{1, 4, 6}, {0, 5}},
        Relayed{{0, 1, 4}, {3, 2}}, Relayed{{2, 7, 1, 4}, {0, 3, 5, 6}}}) {
    Judge judge("dgx1-v100", "kernel", LinkScope::fabric, gpus, relays);
    for (const Collective collective :
         {Collective::broadcast, Collective::reduce, Collective::allreduce, Collective::allgather,
          Collective::reducescatter}) {
      const int root = info(collective).rooted ? static_cast<int>(gpus.size()) - 1 : 0;
      for (const bool in_place : {false, true}) {
        const BuildRequest request =
            request_for(collective, root, in_place, judge.router(), judge.placement());
        const Program program = build(parse_algorithm("optimal"), request);
        const std::string what = fmt::format(
            "{} on {} relayed by {}{}", to_string(collective), testing::PrintToString(gpus),
            testing::PrintToString(relays), in_place ? " in place" : "");
        EXPECT_GT(program.relays, 0) << what;
        judge.check(program, what);
        judge.check(chunk(program, {3, 1}), what + ", cut in three");
      }
    }
  }
}

/// Switches that add up and multicast: one for all GPUs, and one in each of three machines, or of
/// four, where they work unit by unit.
TEST(ConformanceInSwitches, RightOnEveryBackEnd) {
  struct Switched {
    const char* machine;
    std::vector<int> gpus;
  };
  for (const auto& [machine, gpus] :
       {Switched{"dgx-h100", {6, 1, 3}}, Switched{"gb200-nvl72", {70, 4, 0, 33, 5}},
        Switched{"dgx-h100:nodes=3", {9, 17, 3, 1, 23, 8}},
        Switched{"dgx-h100:nodes=4", {9, 17, 3, 25, 1, 23, 8, 30}}}) {
    Judge judge(machine, "kernel", LinkScope::all, gpus);
    int served = 0;
    for (const Collective collective : find_algorithm("nvls")->collectives) {
      const int root = info(collective).rooted ? 1 : 0;
      for (const bool in_place : {false, true}) {
        const BuildRequest request =
            request_for(collective, root, in_place, judge.router(), judge.placement());
        const AlgorithmChoice choice = parse_algorithm("nvls:channels=2");
        if (unsupported(choice, request)) continue;
        const Program program = build(choice, request);
        const std::string what = fmt::format("{} on {}", to_string(collective), machine);
        EXPECT_TRUE(std::ranges::any_of(program.ops, &Op::in_switch)) << what;
        judge.check(program, what);
        judge.check(chunk(program, {3, 1}), what + ", cut in three");
        ++served;
      }
    }
    EXPECT_EQ(served, std::string_view(machine).find("nodes=") != std::string_view::npos ? 2 : 10);
  }
}

/// Every element type with every operator, on programs whose combines have two and many sources.
TEST(ConformanceOfTypes, EveryTypeAndOperator) {
  const int ranks = 5;
  const Topology topology = load_topology("full:n=5");
  Router router(topology, topology.profile("ideal"));
  const Target target{&router, place_ranks(router, {})};
  HostBackend host;
  for (const char* name : {"ring", "flat_two_stage"}) {
    const BuildRequest request =
        request_for(Collective::allreduce, 0, false, router, target.placement);
    const Program program = build(parse_algorithm(name), request);
    ASSERT_EQ(program.ranks(), ranks);
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : all_reduce_ops()) {
        SCOPED_TRACE(fmt::format("{} {} {}", name, to_string(type), to_string(op)));
        Memory memory = initial_memory(program, type, op, 1031);
        interpret(program, type, op, 1031, memory);
        EXPECT_EQ(count_wrong(program, type, op, 1031, memory), 0);
        RunOptions options;
        options.type = type;
        options.op = op;
        options.size_bytes = static_cast<std::int64_t>(1031 * size_of(type));
        EXPECT_EQ(host.run(program, target, options).executed->wrong, 0);
      }
    }
  }
}

}  // namespace
}  // namespace espalier
