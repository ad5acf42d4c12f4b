// SPDX-License-Identifier: Apache-2.0
// Fits of profiles: to times that the simulator made up under a profile with other constants, which
// must be found again, and to published times, which must help to predict others.
#include "scenarios/profile_fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <variant>

#include "core/file.h"
#include "core/median.h"
#include "formats/format.h"
#include "formats/measured_tables.h"
#include "scenarios/fitted_file.h"
#include "scenarios/scenario.h"
#include "sim/simulator.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"
#include "topologies/load.h"
#include "topologies/profile_file.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kKib = 1024;
constexpr std::int64_t kMib = kKib * kKib;

Query rings(const std::string& topology, Collective collective, std::int64_t size_bytes) {
  Query query;
  query.topology = topology;
  query.profile = "nccl";
  query.collective = collective;
  query.algorithm = "nccl_rings";
  query.size_bytes = size_bytes;
  query.judge = false;
  return query;
}

/// What the simulator says of a machine, with noise, as if it had been measured.
struct MadeUp {
  FitRequest request;

  /// `change` makes the true profile of the one that the fit begins with.
  MadeUp(const std::string& topology, const std::string& profile,
         const std::function<void(Profile&)>& change, unsigned seed) {
    std::cout << "seed " << seed << '\n';
    random.seed(seed);
    request.machine = load_topology(topology);
    request.profile = profile;
    truth = request.machine;
    change(truth.profiles[profile_word(profile).runtime]);
  }

  void measure(Collective collective, std::int64_t from_bytes, std::int64_t to_bytes,
               double noise = 0.01) {
    Simulator simulator;
    Study study(simulator, &simulator);
    study.know_machine(request.machine.name, truth);
    std::normal_distribution<double> deviation(0, noise);
    for (std::int64_t bytes = from_bytes; bytes <= to_bytes; bytes *= 4) {
      Query query = rings(request.machine.name, collective, bytes);
      query.profile = request.profile;
      query.gpus = gpus;
      query.algorithm = algorithm;
      query.launch = launch;
      const double time_s = predicted_s(study.ask(query)) * std::exp(deviation(random));
      request.times.push_back({query, time_s, "made_up.log", 0});
    }
  }

  ProfileFit fit() const {
    Simulator simulator;
    return fit_profile(request, simulator);
  }

  Topology truth;
  std::vector<int> gpus;
  std::string algorithm = "nccl_rings";
  LaunchMode launch = LaunchMode::per_gpu;
  std::mt19937 random;
};

const FittedConstant& constant(const ProfileFit& fit, const std::string& name) {
  for (const FittedConstant& one : fit.constants) {
    if (one.constant.name() == name) return one;
  }
  ADD_FAILURE() << "no constant " << name;
  return fit.constants.front();
}

void expect_found(const ProfileFit& fit, const std::string& name, double truth) {
  const FittedConstant& one = constant(fit, name);
  EXPECT_EQ(one.fitted.determined, Determined::yes) << name;
  EXPECT_LE(one.fitted.low, truth) << name;
  EXPECT_GE(one.fitted.high, truth) << name;
  EXPECT_NEAR(one.fitted.value, truth, 0.1 * truth) << name;
}

void expect_kept(const ProfileFit& fit, const std::string& name) {
  const FittedConstant& one = constant(fit, name);
  EXPECT_FALSE(one.is_changed()) << name;
  EXPECT_EQ(one.fitted.value, one.before) << name;
  EXPECT_NE(why_kept(one, fit.constants), "") << name;
}

Protocol& protocol(Profile& profile, const std::string& name) {
  return *std::ranges::find(profile.protocols, name, &Protocol::name);
}

TEST(ProfileFit, FindsBandwidthCallAndHopsOfAMachineThatWasMadeUp) {
  MadeUp made(
      "dgx-a100", "nccl:simple",
      [](Profile& profile) {
        profile.links["nvlink3"].efficiency = 0.66;
        profile.call_overhead_s = 9e-6;
        protocol(profile, "simple").hop_s[LinkClass::gpu_fabric] = 4.5e-6;
      },
      11);
  // Hops and calls can be told apart because these have 14 hops and 7.
  made.measure(Collective::allreduce, kKib, 1024 * kMib);
  made.measure(Collective::allgather, kKib, 1024 * kMib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "links.nvlink3.efficiency", 0.66);
  expect_found(fit, "call_overhead_us", 9);
  expect_found(fit, "protocols.simple.hop_us.gpu_fabric", 4.5);
  for (const FittedTime& time : fit.times) EXPECT_LT(std::abs(time.error_after()), 0.05);
  EXPECT_LT(fit.scatter, 0.02);
}

TEST(ProfileFit, FindsTheBandwidthOfLinksFromLargeMessagesAndKeepsTheRest) {
  MadeUp made(
      "dgx-a100", "nccl:simple",
      [](Profile& profile) { profile.links["nvlink3"].efficiency = 0.66; }, 12);
  made.measure(Collective::allreduce, 128 * kMib, 8192 * kMib);
  made.measure(Collective::broadcast, 128 * kMib, 8192 * kMib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "links.nvlink3.efficiency", 0.66);
  expect_kept(fit, "call_overhead_us");
  expect_kept(fit, "protocols.simple.block_gbps.a100");
}

TEST(ProfileFit, FindsTheCallFromSmallMessagesAndSaysWhatItCannotBeToldFrom) {
  MadeUp made(
      "dgx-a100", "nccl:ll", [](Profile& profile) { profile.call_overhead_s = 12e-6; }, 13);
  made.measure(Collective::allreduce, 8, 32 * kKib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "call_overhead_us", 12);
  expect_kept(fit, "links.nvlink3.efficiency");
  const FittedConstant& hop = constant(fit, "protocols.ll.hop_us.gpu_fabric");
  expect_kept(fit, "protocols.ll.hop_us.gpu_fabric");
  EXPECT_EQ(why_kept(hop, fit.constants), "it cannot be told from call_overhead_us");
}

TEST(ProfileFit, FindsWhatALaunchCostsTheHostOfAllGpus) {
  MadeUp made(
      "dgx-a100", "nccl",
      [](Profile& profile) {
        LaunchCost& cost = profile.launch.single.back();  // since 2.18
        cost.call_s = 6e-6;
        cost.block_s = 0.4e-6;
      },
      20);
  // NCCL uses 1 channel for 8 bytes and 24 from some MiB on, which tells both figures apart; graphs
  // have no launches, which tells them apart from the call on the GPUs.
  made.algorithm = "nccl:version=2.21";
  made.launch = LaunchMode::single;
  made.measure(Collective::allreduce, 8, 32 * kMib);
  made.launch = LaunchMode::graph;
  made.measure(Collective::allreduce, 8, 32 * kMib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "launch.single.2.18.call_us", 6);
  expect_found(fit, "launch.single.2.18.block_us", 0.4);
  EXPECT_NEAR(constant(fit, "call_overhead_us").fitted.value, 5.5, 0.5);
  const std::string file = print_fitted_profile(fit, made.request, {"a log"});
  const Profile read = parse_profile(file, "fitted.yaml", made.request.machine);
  EXPECT_EQ(read.launch, fit.profile.launch);  // those of other versions, too
}

TEST(ProfileFit, FindsWhatALaunchCostsAHostThatIsSlowerThanItsGpu) {
  MadeUp made(
      "dgx-a100", "nccl", [](Profile& profile) { profile.launch.per_gpu->call_s = 60e-6; }, 21);
  // Below the 18 us of the shortest call on a GPU no time would depend on it at the start.
  made.request.machine.profiles["nccl"].launch.per_gpu->call_s = 30e-6;
  made.algorithm = "nccl:version=2.21";
  made.measure(Collective::allreduce, 8, 1024 * kMib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "launch.per_gpu.call_us", 60);
  expect_kept(fit, "launch.per_gpu.block_us");
  expect_kept(fit, "call_overhead_us");
}

TEST(ProfileFit, FindsTheRateOfABlock) {
  // 8 blocks at 5 GB/s are slower than the links of a GPU; the 32 of the profile would not be.
  MadeUp made(
      "dgx-a100", "nccl:ll128",
      [](Profile& profile) {
        protocol(profile, "ll128").block_gbps = {{"other", 5}};
      },
      14);
  made.request.machine.profiles["nccl"].blocks = made.truth.profiles["nccl"].blocks = 8;
  made.measure(Collective::allreduce, kMib, 1024 * kMib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "protocols.ll128.block_gbps.a100", 5);
  EXPECT_EQ(protocol(const_cast<Profile&>(fit.profile), "ll128").block_gbps.at("other"), 7.6);
}

TEST(ProfileFit, FindsTheBandwidthOfANetwork) {
  MadeUp made(
      "dgx-a100:nodes=2", "nccl:simple",
      [](Profile& profile) { profile.links["ib_hdr"].efficiency = 0.6; }, 15);
  made.gpus = {0, 8};  // one of each node
  made.measure(Collective::allreduce, kMib, 4096 * kMib);
  made.measure(Collective::broadcast, kMib, 4096 * kMib);
  const ProfileFit fit = made.fit();
  expect_found(fit, "links.ib_hdr.efficiency", 0.6);
  expect_kept(fit, "links.pcie4x16.efficiency");
}

TEST(ProfileFit, FindsWhatOpsInSwitchesCost) {
  MadeUp made(
      "dgx-h100", "nccl",
      [](Profile& profile) {
        profile.in_switch["h100"].wire = 1.4;
        profile.in_switch["h100"].call_s = 50e-6;
      },
      16);
  Simulator simulator;
  Study study(simulator, &simulator);
  study.know_machine("dgx-h100", made.truth);
  for (std::int64_t bytes = kMib; bytes <= 2048 * kMib; bytes *= 2) {
    Query query = rings("dgx-h100", Collective::allreduce, bytes);
    query.algorithm = "nvls";
    made.request.times.push_back({query, predicted_s(study.ask(query)), "made_up.log", 0});
  }
  const ProfileFit fit = made.fit();
  for (const FittedTime& time : fit.times) EXPECT_LT(std::abs(time.error_after()), 0.03);
  // The sum of both calls is what shows: 50 + 5.5 us.
  EXPECT_NEAR(constant(fit, "in_switch.h100.call_us").fitted.value +
                  constant(fit, "call_overhead_us").fitted.value,
              55.5, 5);
}

/// Kernels over symmetric memory have a profile of their own, and a file of it is used for them.
TEST(ProfileFit, FitsKernelsOverSymmetricMemory) {
  for (const auto& [machine, profile] :
       {std::pair{"dgx-h100", "nccl_symmetric"}, std::pair{"gb200-nvl72", "nccl_symmetric_b200"}}) {
    MadeUp made(
        machine, profile, [](Profile& changed) { changed.call_overhead_s = 12e-6; }, 23);
    made.gpus = {0, 1, 2, 3};
    made.algorithm = "nccl:registered=symmetric";
    made.measure(Collective::allreduce, kKib, 64 * kMib);
    made.request.profile = "nccl_symmetric";  // whatever stands in for it
    const ProfileFit fit = made.fit();
    expect_found(fit, "call_overhead_us", 12);
    const std::string path = temp_file("symmetric.yaml");
    const std::string file = print_fitted_profile(fit, made.request, {"log"});
    EXPECT_THAT(file, HasSubstr(fmt::format("like: {}\n", profile)));
    write_file(path, file);
    Simulator simulator;
    Study study(simulator, &simulator);
    for (const FittedTime& time : fit.times) {
      Query query = time.measured.query;
      query.profile = path;
      EXPECT_NEAR(predicted_s(study.ask(query)), time.after_s, 1e-9 * time.after_s);
    }
    made.request.profile = "nccl";
    EXPECT_THAT(error_of([&] { made.fit(); }, ErrorKind::unsupported),
                HasSubstr("these messages run under profile nccl_symmetric, which no fit of nccl "
                          "changes"));
  }
}

TEST(ProfileFit, WritesAProfileThatPredictsTheSame) {
  MadeUp made(
      "dgx-a100", "nccl",
      [](Profile& profile) {
        profile.links["nvlink3"].efficiency = 0.66;
        profile.call_overhead_s = 9e-6;
      },
      17);
  made.measure(Collective::allreduce, kKib, 1024 * kMib);
  made.measure(Collective::allgather, kKib, 1024 * kMib);
  const ProfileFit fit = made.fit();
  const std::string file = print_fitted_profile(fit, made.request, {"a \"log\""});
  EXPECT_THAT(file, HasSubstr("like: nccl\n"));
  EXPECT_THAT(file, HasSubstr("\n    # fitted on made_up.log, interval "));
  EXPECT_THAT(file, HasSubstr("\n      # efficiency "));
  const Profile read = parse_profile(file, "fitted.yaml", made.request.machine);
  const Profile before = made.request.machine.profiles.at("nccl");
  EXPECT_NE(read.call_overhead_s, before.call_overhead_s);
  EXPECT_NE(read.links.at("nvlink3").efficiency, before.links.at("nvlink3").efficiency);
  EXPECT_DOUBLE_EQ(read.call_overhead_s, fit.profile.call_overhead_s);
  // Sizes from 1 KiB to 1 GiB are of all bands; all these times are of one kind.
  const std::vector<BandDeviations> bands = fitted_bands(fit.times, &FittedTime::error_after);
  ASSERT_EQ(read.errors.size(), size_bands().size());
  for (std::size_t i = 0; i < bands.size(); ++i) {
    const ComparedError& row = read.errors[i];
    EXPECT_EQ(row.models, std::vector<std::string>{"a100-sxm4"});
    EXPECT_TRUE(row.in_fabric);
    // No less than the larger of the medians of both collectives, nor than what logs repeat.
    double largest = 0.02;
    for (const Collective collective : {Collective::allreduce, Collective::allgather}) {
      std::vector<FittedTime> of_one = fit.times;
      std::erase_if(of_one, [&](const FittedTime& time) {
        return time.measured.query.collective != collective;
      });
      largest = std::max(largest, fitted_bands(of_one, &FittedTime::error_after)[i].median);
    }
    EXPECT_GE(row.relative, largest);
    EXPECT_LE(row.relative, largest + 0.005);
    EXPECT_EQ(row.launches.empty(), i + 1 == bands.size());
    EXPECT_EQ(row.min_ranks, 8);
    EXPECT_EQ(row.max_ranks, 8);
    EXPECT_THAT(row.compared, HasSubstr("fitted: made_up.log"));
  }
  Topology machine = made.request.machine;
  machine.profiles["nccl"] = read;
  Simulator simulator;
  Study study(simulator, &simulator);
  study.know_machine("dgx-a100", machine);
  for (const FittedTime& time : fit.times) {
    EXPECT_NEAR(predicted_s(study.ask(time.measured.query)), time.after_s, 1e-9 * time.after_s);
  }
}

/// 15 times with noise of 2 %, one of which runs under LL128: it says nothing of that protocol's
/// rate that noise could not say, and two times of a band nothing of its error.
TEST(ProfileFit, StatesNoLessThanFewTimesKnow) {
  MadeUp made(
      "dgx-a100", "nccl", [](Profile&) {}, 31);
  made.algorithm = "nccl:version=2.21";
  made.measure(Collective::allreduce, 4, 1024 * kMib, 0.02);
  std::vector<MeasuredTimeOf>& times = made.request.times;
  std::erase_if(times, [](const MeasuredTimeOf& time) {
    return time.query.size_bytes == 16 * kMib;  // leaves 4 MiB to LL128
  });
  const ProfileFit fit = made.fit();
  std::size_t under_ll128 = 0;
  for (const FittedTime& time : fit.times) under_ll128 += time.protocol == "ll128" ? 1 : 0;
  ASSERT_EQ(under_ll128, 1U);
  expect_kept(fit, "protocols.ll128.block_gbps.a100");
  std::vector<double> all;
  for (const FittedTime& time : fit.times) {
    EXPECT_GE(std::abs(time.error_left_out()), std::abs(time.error_after()));
    all.push_back(std::abs(time.error_left_out()));
  }
  const std::string file = print_fitted_profile(fit, made.request, {"a log"});
  const Profile read = parse_profile(file, "fitted.yaml", made.request.machine);
  ASSERT_FALSE(read.errors.empty());
  for (const ComparedError& row : read.errors) {
    EXPECT_GE(row.relative, 0.02);
    EXPECT_GE(row.relative, median(all));
  }
}

TEST(ProfileFit, IsTheSameEveryTime) {
  MadeUp made(
      "dgx-a100", "nccl", [](Profile& profile) { profile.call_overhead_s = 9e-6; }, 18);
  made.measure(Collective::allreduce, kKib, 64 * kMib);
  const auto file = [&] { return print_fitted_profile(made.fit(), made.request, {}); };
  EXPECT_EQ(file(), file());
}

TEST(ProfileFit, BeginsWithAProfileFromAFile) {
  MadeUp made(
      "dgx-a100", "nccl:simple",
      [](Profile& profile) {
        profile.links["nvlink3"].efficiency = 0.66;
        profile.fifo_steps = 6;
        protocol(profile, "ll").slice_bytes = 16 * kKib;
      },
      22);
  made.measure(Collective::allreduce, 128 * kMib, 8192 * kMib);
  made.measure(Collective::broadcast, 128 * kMib, 8192 * kMib);
  const std::string start = temp_file("start.yaml");
  write_file(start,
             "{schema: espalier.profiles/1, profiles: {x: {like: nccl, fifo_steps: 6, protocols: "
             "{ll: {slice_kib: 16}}, links: {nvlink3: {efficiency: 0.5}}}}}\n");
  made.request.profile = start + ":simple";
  const ProfileFit fit = made.fit();
  EXPECT_EQ(constant(fit, "links.nvlink3.efficiency").before, 0.5);
  expect_found(fit, "links.nvlink3.efficiency", 0.66);
  // What the file changes is written again, and the file itself is not needed to read it.
  const std::string file = print_fitted_profile(fit, made.request, {});
  EXPECT_THAT(file, HasSubstr("like: nccl\n"));
  EXPECT_THAT(file, HasSubstr(start + ": 0.5\n"));
  const Profile read = parse_profile(file, "fitted.yaml", made.request.machine);
  EXPECT_EQ(read.fifo_steps, 6);
  EXPECT_EQ(protocol(const_cast<Profile&>(read), "ll").slice_bytes, 16 * kKib);
  EXPECT_DOUBLE_EQ(read.links.at("nvlink3").efficiency, fit.profile.links.at("nvlink3").efficiency);
}

TEST(ProfileFit, RefusesAlgorithmsThatDoNotApply) {
  MadeUp made(
      "dgx-a100", "nccl", [](Profile&) {}, 19);
  made.measure(Collective::allreduce, kKib, 64 * kKib);
  for (MeasuredTimeOf& time : made.request.times) time.query.algorithm = "nvls";
  EXPECT_THAT(error_of([&] { made.fit(); }, ErrorKind::unsupported),
              HasSubstr("nvls is not possible here"));
}

/// Published times of 8 A100: see the head of each file.
std::vector<MeasuredTimeOf> published(const std::string& test, Collective collective) {
  const std::string file = fmt::format("{}/a100x8_{}.txt", ESPALIER_MEASURED, test);
  const std::string text = read_file(file);
  const MeasuredTables log = recognise(text)->read_tables({text, file});
  std::vector<MeasuredTimeOf> times;
  for (const MeasuredRow& row : log.tables.at(0).rows) {
    Query query = rings("dgx-a100", collective, row.bytes);
    query.algorithm = "nccl:version=2.10";
    query.launch = LaunchMode::single;
    times.push_back({query, row.out_of_place->time_s, file, row.line});
  }
  return times;
}

/// The mean size of the errors' logarithms: 0.1 is about 10 %.
double mean_error(const std::vector<MeasuredTimeOf>& times, const Profile& profile) {
  Topology machine = load_topology("dgx-a100");
  machine.profiles["nccl"] = profile;
  Simulator simulator;
  Study study(simulator, &simulator);
  study.know_machine("dgx-a100", machine);
  double sum = 0;
  for (const MeasuredTimeOf& time : times) {
    sum += std::abs(std::log(predicted_s(study.ask(time.query)) / time.time_s));
  }
  return sum / static_cast<double>(times.size());
}

/// The times of another host with 8 A100, as the study `validation` has them: other memory, a
/// process for every GPU, a later NCCL, measured by somebody else.
std::vector<MeasuredTimeOf> of_another_host() {
  const auto& all = builtin_scenarios();
  const auto found = std::ranges::find(all, "validation", &ScenarioEntry::name);
  const Scenario scenario = parse_scenario(found->yaml, "validation.yaml");
  const auto block = std::ranges::find(scenario.blocks, "allreduce, 8 A100, a process per GPU",
                                       &ScenarioBlock::title);
  const auto& study = std::get<CollectiveStudy>(block->study);
  std::vector<MeasuredTimeOf> times;
  for (const Query& query : study.tables.at(0)) {
    times.push_back({query, study.measured->time_s.at(query.size_bytes), "validation.yaml", 0});
  }
  return times;
}

/// The constants as they are were fitted on these logs, so that there is little to learn.
Profile wrong_profile() {
  Profile wrong = load_topology("dgx-a100").profiles.at("nccl");
  wrong.links["nvlink3"].efficiency = 0.5;
  wrong.call_overhead_s = 2e-6;
  return wrong;
}

/// What a fit to the all-reduce of one host makes of that.
Profile fitted_to_all_reduce() {
  Topology machine = load_topology("dgx-a100");
  machine.profiles["nccl"] = wrong_profile();
  const FitRequest request{machine, "nccl", published("all_reduce", Collective::allreduce)};
  Simulator simulator;
  return fit_profile(request, simulator).profile;
}

/// The median size of relative errors.
double median_error(const std::vector<MeasuredTimeOf>& times, const Profile& profile,
                    std::int64_t above_bytes) {
  std::vector<double> errors;
  for (const MeasuredTimeOf& time : times) {
    if (time.query.size_bytes < above_bytes) continue;
    errors.push_back(std::expm1(mean_error({time}, profile)));
  }
  return median(errors);
}

/// Of times that a fit was not made to.
void expect_better(const std::string& what, const std::vector<MeasuredTimeOf>& times,
                   const Profile& fitted, double at_most) {
  const double before = mean_error(times, wrong_profile()), after = mean_error(times, fitted);
  std::cout << fmt::format("{}: mean error {:.3f} before, {:.3f} after the fit, {:.3f} built in\n",
                           what, before, after,
                           mean_error(times, load_topology("dgx-a100").profiles.at("nccl")));
  EXPECT_LT(after, at_most * before) << what;
}

TEST(ProfileFit, LearnsFromOneCollectiveHowLongOthersTake) {
  const Profile fitted = fitted_to_all_reduce();
  expect_better("all_gather", published("all_gather", Collective::allgather), fitted, 0.8);
  expect_better("broadcast", published("broadcast", Collective::broadcast), fitted, 0.8);
}

/// Constants that are well known move only as far as the times demand beyond their scatter, so that
/// others are met as well as before.
TEST(ProfileFit, LeavesWhatIsKnownAsItIs) {
  const FitRequest request{load_topology("dgx-a100"), "nccl",
                           published("all_reduce", Collective::allreduce)};
  Simulator simulator;
  const Profile fitted = fit_profile(request, simulator).profile;
  const Profile& known = request.machine.profiles.at("nccl");
  for (const auto& [test, collective] : {std::pair{"all_gather", Collective::allgather},
                                         std::pair{"broadcast", Collective::broadcast}}) {
    const std::vector<MeasuredTimeOf> times = published(test, collective);
    for (const std::int64_t above : {std::int64_t{0}, 16 * kMib}) {
      const double before = median_error(times, known, above);
      const double after = median_error(times, fitted, above);
      std::cout << fmt::format("{} from {} MiB: {:.3f} before, {:.3f} after the fit\n", test,
                               above / kMib, before, after);
      EXPECT_LE(after, before + 0.01) << test;
    }
  }
}

/// The machine that they are fitted to may really be another one.
TEST(ProfileFit, LearnsFromOneCollectiveThatAMachineIsSlower) {
  MadeUp made(
      "dgx-a100", "nccl",
      [](Profile& profile) {
        profile.links["nvlink3"].efficiency *= 0.8;
        for (LaunchCost& cost : profile.launch.single) cost.call_s *= 1.3;
      },
      32);
  made.algorithm = "nccl:version=2.21";
  made.launch = LaunchMode::single;
  made.measure(Collective::allreduce, 8, 4096 * kMib, 0.02);
  const ProfileFit fit = made.fit();
  expect_found(fit, "links.nvlink3.efficiency", 0.8 * 0.77);
  expect_found(fit, "launch.single.2.18.call_us", 1.3 * 4);
  made.request.times.clear();
  made.measure(Collective::allgather, 8, 4096 * kMib, 0.02);
  made.measure(Collective::broadcast, 8, 4096 * kMib, 0.02);
  const double before = mean_error(made.request.times, made.request.machine.profiles.at("nccl"));
  EXPECT_LT(mean_error(made.request.times, fit.profile), 0.4 * before);
}

TEST(ProfileFit, LearnsFromOneHostHowLongAnotherTakes) {
  expect_better("another host", of_another_host(), fitted_to_all_reduce(), 0.5);
}

}  // namespace
}  // namespace espalier
