// SPDX-License-Identifier: Apache-2.0
// NCCL's kernels over symmetric memory: which it takes (src/sym_kernels.cc, worked out by hand
// where arithmetic is shown), and that their programs are right.
#include "nccl/symmetric.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "algorithms/algorithm.h"
#include "ir/verify.h"
#include "nccl/choice.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

using testing::HasSubstr;

constexpr double kKib = 1024;
constexpr double kMib = 1024 * kKib;
constexpr double kGib = 1024 * kMib;

class Ranks {
 public:
  explicit Ranks(const std::string& machine, int ranks = 0, const std::string& profile = "nccl")
      : topology_(load_topology(machine)), router_(topology_, topology_.profile(profile)) {
    std::vector<int> gpus(static_cast<std::size_t>(ranks));
    std::iota(gpus.begin(), gpus.end(), 0);
    placement_ = place_ranks(router_, gpus);
  }

  NcclChoice choose(Collective collective, double bytes, int version = 30) const {
    NcclCall call{collective, bytes, version};
    call.is_registered = true;
    return choose(call);
  }
  NcclChoice choose(const NcclCall& call) const { return nccl_choice(call, router_, placement_); }

  /// "agxll_r 2": the kernel and its blocks.
  std::string word(Collective collective, double bytes, int version = 30) const {
    const NcclChoice choice = choose(collective, bytes, version);
    if (choice.algorithm != NcclAlgorithm::symmetric) return "none";
    return fmt::format("{} {}", to_string(choice.kernel), choice.work.channels);
  }

  struct Built {
    Program program;
    LibraryCall call;
  };
  /// Nothing where NCCL can't.
  std::optional<Built> build_for(const std::string& spec, Collective collective, std::int64_t bytes,
                                 bool in_place = false) const {
    const AlgorithmChoice choice = parse_algorithm(spec);
    BuildRequest request = request_for(collective, 0, in_place, router_, placement_);
    request.size_bytes = bytes;
    if (unsupported(choice, request)) return std::nullopt;
    const LibraryCall call = library_call(choice, request);
    return Built{build(decided(choice, call), request), call};
  }

  double time_us(const std::string& kernel, Collective collective, std::int64_t bytes) const {
    const auto built = build_for("nccl:kernel=" + kernel, collective, bytes);
    const Profile profile = topology_.profile(built->call.runtime + ":" + built->call.protocol);
    const Router router(topology_, profile);
    RunOptions options;
    options.size_bytes = bytes;
    options.blocks = built->call.blocks;
    return Simulator().run(built->program, {&router, placement_}, options).time_s * 1e6;
  }

 private:
  Topology topology_;
  Router router_;
  Placement placement_;
};

/// 1 KiB on 8 H100. Packets: 8 x 1024 x 9 = 73 728 bytes; at the peak of 320 GiB/s, 343 597 a us:
/// 4.5 + ln(1 + e^(73728 / 343597 - 1)) = 4.5 + ln(1 + e^-0.7854) = 4.876 us. Two blocks: 2 x 65
/// are softened to 127.1 GiB/s, 136 500 bytes a us: 4.5 + ln(1 + e^-0.4598) = 4.989, which is
/// within 2.5 %; one block has 64.6 GiB/s: 4.5 + ln(1 + e^0.0630) = 5.225, is not. Each block
/// counts 2.5 %: 4.989 x 1.05 = 5.239. Multicast has a tenth more for a block, up to the same peak.
TEST(NcclSymmetric, WeighsKernelsByItsModelOnHopper) {
  const NcclChoice choice = Ranks("dgx-h100").choose(Collective::allreduce, kKib);
  ASSERT_EQ(choice.symmetric.size(), 4u);
  EXPECT_EQ(choice.symmetric[0].kernel, NcclSymmetricKernel::agxll_r);
  EXPECT_EQ(choice.symmetric[0].blocks, 2);
  EXPECT_NEAR(choice.symmetric[0].time_s * 1e6, 4.989, 1e-3);
  EXPECT_NEAR(choice.symmetric[0].weighed_s * 1e6, 5.239, 1e-3);
  EXPECT_NEAR(choice.symmetric[1].time_s * 1e6, 4.971, 1e-3);
  // 7.8 + ln(1 + e^(1792 / 69793 - 1)) = 7.8 + ln(1 + e^-0.974) = 8.121, with one block of 65
  // GiB/s.
  EXPECT_EQ(choice.symmetric[2].blocks, 1);
  EXPECT_NEAR(choice.symmetric[2].time_s * 1e6, 8.121, 2e-3);
  EXPECT_EQ(choice.algorithm, NcclAlgorithm::symmetric);
  EXPECT_EQ(choice.kernel, NcclSymmetricKernel::agxllmc_r);
  EXPECT_EQ(choice.protocol, NcclProtocol::ll);
  // One cell of 1 KiB is for one block.
  EXPECT_EQ(choice.work.channels, 1);
}

TEST(NcclSymmetric, TakesWhatItsModelSaysBySize) {
  const Ranks hopper("dgx-h100");
  // 16 / 8 blocks at most.
  EXPECT_EQ(hopper.word(Collective::allreduce, 64 * kKib), "rsxldmc_agxstmc 1");
  EXPECT_EQ(hopper.word(Collective::allreduce, kGib), "rsxldmc_agxstmc 2");
  const Ranks blackwell("gb200-nvl72", 4);
  EXPECT_EQ(blackwell.word(Collective::allreduce, kKib), "agxllmc_r 1");
  EXPECT_EQ(blackwell.word(Collective::allreduce, 32 * kKib), "agxllmc_r 8");  // of 9: 4 cells each
  EXPECT_EQ(blackwell.word(Collective::allreduce, 64 * kKib), "agxllmc_r 10");
  EXPECT_EQ(blackwell.word(Collective::allreduce, 128 * kKib), "rsxldmc_agxstmc 1");
  EXPECT_EQ(blackwell.word(Collective::allreduce, kMib), "rsxldmc_agxstmc 3");
  // Without switches that multicast.
  const Ranks ampere("dgx-a100");
  EXPECT_THAT(ampere.word(Collective::allreduce, kKib), HasSubstr("agxll_r"));
  EXPECT_THAT(ampere.word(Collective::allreduce, 16 * kMib), HasSubstr("rsxld_agxst"));
  EXPECT_THAT(ampere.word(Collective::allgather, 16 * kMib), HasSubstr("st "));
  EXPECT_THAT(ampere.word(Collective::reducescatter, 16 * kMib), HasSubstr("ld "));
}

/// What is counted of an allgather or reducescatter is a rank's block: 8 MiB of 64 on 8 H100.
/// 7 x 8 MiB = 58 720 256 bytes. By stores at most at 320 GiB/s: 7.8 + 58720256 / 343597 - 1 =
/// 177.70 us. Multicast by 2 blocks of 44 GiB/s, each counting 0.55 x 8 times: 387.2, softened by
/// 44 to 311.37 GiB/s: 7.8 + 58720256 / 334331 - 1 = 182.44 us.
TEST(NcclSymmetric, CountsARanksBlock) {
  const NcclChoice gathered = Ranks("dgx-h100").choose(Collective::allgather, 64 * kMib);
  ASSERT_EQ(gathered.symmetric.size(), 4u);
  const NcclSymmetricCell& stores = gathered.symmetric[2];
  EXPECT_EQ(stores.kernel, NcclSymmetricKernel::st);
  EXPECT_NEAR(stores.time_s * 1e6, 177.70, 0.025 * 177.70);
  EXPECT_LT(stores.blocks, 64);
  EXPECT_NEAR(gathered.symmetric[3].time_s * 1e6, 182.44, 0.05);
  EXPECT_EQ(gathered.symmetric[3].blocks, 2);
  const NcclChoice scattered = Ranks("dgx-h100").choose(Collective::reducescatter, 64 * kMib);
  ASSERT_EQ(scattered.symmetric.size(), 3u);
  EXPECT_NEAR(scattered.symmetric[2].time_s * 1e6, 182.44, 0.05);
}

/// 4 KiB are 4 cells, of which three blocks cannot have equally many.
TEST(NcclSymmetric, DividesMessagesInCellsFrom228On) {
  const Ranks blackwell("gb200-nvl72", 4);
  const NcclChoice old = blackwell.choose(Collective::allreduce, 4 * kKib, 27);
  const NcclChoice now = blackwell.choose(Collective::allreduce, 4 * kKib, 28);
  EXPECT_EQ(old.symmetric[1].blocks, 3);
  EXPECT_EQ(old.work.channels, 3);
  EXPECT_EQ(now.symmetric[1].blocks, 3);
  EXPECT_EQ(now.work.channels, 2);  // two cells each
}

TEST(NcclSymmetric, IsNotTakenWhereNcclHasNone) {
  const auto why = [](const Ranks& ranks, Collective collective, int version = 30) {
    const NcclChoice choice = ranks.choose(collective, kMib, version);
    EXPECT_TRUE(choice.why_not.empty()) << choice.why_not;  // its tuner decides then
    EXPECT_NE(choice.algorithm, NcclAlgorithm::symmetric);
    return choice.why_not_symmetric;
  };
  const Ranks hopper("dgx-h100");
  EXPECT_EQ(why(hopper, Collective::allreduce, 26),
            "kernels over symmetric memory came with NCCL 2.27");
  EXPECT_EQ(why(hopper, Collective::broadcast),
            "NCCL has no kernel over symmetric memory for broadcast");
  EXPECT_THAT(why(hopper, Collective::alltoall), HasSubstr("for alltoall"));
  EXPECT_THAT(why(Ranks("dgx1-v100"), Collective::allreduce), HasSubstr("between all ranks"));
  EXPECT_THAT(why(Ranks("mi300x"), Collective::allreduce), HasSubstr("RCCL"));
  EXPECT_THAT(why(Ranks("dgx-h100:nodes=2"), Collective::allreduce), HasSubstr("across nodes"));
  // Its neighbors in the cube mesh are joined directly.
  EXPECT_THAT(Ranks("dgx1-v100", 4).word(Collective::allreduce, kKib), HasSubstr("agxll_r"));
}

TEST(NcclSymmetric, RulesKernelsOut) {
  const auto why = [](const Ranks& ranks, double bytes, std::size_t cell) {
    return ranks.choose(Collective::allreduce, bytes).symmetric.at(cell).why_not;
  };
  EXPECT_EQ(why(Ranks("dgx-a100"), kKib, 1), "no switch multicasts");
  EXPECT_EQ(why(Ranks("dgx-h100", 2), kKib, 1), "multicast is for more than two ranks");
  EXPECT_EQ(why(Ranks("dgx-h100"), 2 * kGib, 0), "more than packets can count");
  EXPECT_EQ(why(Ranks("dgx-h100"), 2 * kGib - kKib, 0), "");
  const NcclChoice most = Ranks("dgx-h100").choose(Collective::allreduce, 64 * kGib);
  EXPECT_EQ(most.why_not_symmetric, "agxll_r: more than it can count");
  EXPECT_NE(most.algorithm, NcclAlgorithm::symmetric);
}

TEST(NcclSymmetric, MayBeForced) {
  const Ranks hopper("dgx-h100");
  const auto choice = [&](const std::string& spec) {
    const AlgorithmChoice asked = parse_algorithm(spec);
    NcclCall call{Collective::allreduce, 64 * kKib, 30};
    const auto given = [&](const char* name) {
      const auto found = asked.parameters.find(name);
      return found == asked.parameters.end() ? std::optional<std::int64_t>() : found->second;
    };
    if (const auto algo = given("algo")) call.algorithm = static_cast<NcclAlgorithm>(*algo);
    if (const auto proto = given("proto")) call.protocol = static_cast<NcclProtocol>(*proto);
    if (const auto kernel = given("kernel")) {
      call.kernel = static_cast<NcclSymmetricKernel>(*kernel);
    }
    call.channels = static_cast<int>(given("channels").value_or(0));
    call.threads = static_cast<int>(given("threads").value_or(0));
    return hopper.choose(call);
  };
  EXPECT_EQ(choice("nccl:algo=symmetric").kernel, NcclSymmetricKernel::rsxldmc_agxstmc);
  EXPECT_EQ(choice("nccl:kernel=AGxLL_R").kernel, NcclSymmetricKernel::agxll_r);
  EXPECT_EQ(choice("nccl:kernel=agxll_r,channels=5").work.channels, 5);
  EXPECT_EQ(choice("nccl:kernel=stmc").why_not,
            "allreduce has no kernel stmc: it has agxll_r, agxllmc_r, rsxld_agxst, "
            "rsxldmc_agxstmc");
  EXPECT_EQ(choice("nccl:kernel=agxll_r,algo=ring").why_not, "kernel agxll_r is none of ring");
  EXPECT_EQ(choice("nccl:kernel=agxll_r,proto=simple").why_not, "agxll_r has ll only");
  EXPECT_EQ(choice("nccl:algo=symmetric,threads=256").why_not,
            "blocks of kernels over symmetric memory have 512 threads");
  // What is not registered is not symmetric.
  NcclCall call{Collective::allreduce, 64 * kKib, 30};
  EXPECT_NE(hopper.choose(call).algorithm, NcclAlgorithm::symmetric);
  EXPECT_TRUE(hopper.choose(call).symmetric.empty());
  EXPECT_TRUE(hopper.choose(call).why_not_symmetric.empty());
}

TEST(NcclSymmetric, IsExplained) {
  const Ranks hopper("dgx-h100");
  NcclCall call{Collective::allreduce, 64 * kKib, 30};
  call.is_registered = true;
  const std::string text = explain(call, hopper.choose(call));
  EXPECT_THAT(text, HasSubstr("kernels over symmetric memory"));
  EXPECT_THAT(text,
              HasSubstr("rsxldmc_agxstmc            1             8.16         8.36  chosen"));
  call.collective = Collective::broadcast;
  EXPECT_THAT(explain(call, hopper.choose(call)),
              HasSubstr("no kernel over symmetric memory: NCCL has no kernel"));
}

/// Every kernel, of 2 to 8 ranks and of a whole rack, in place and not, from less than an element
/// for each block to more than a block's epochs.
TEST(NcclSymmetric, ProgramsAreRight) {
  std::set<std::string> built;
  for (const auto& [machine, most] :
       {std::pair{"dgx-h100", 8}, {"dgx-a100", 8}, {"gb200-nvl72", 72}}) {
    for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 72}) {
      if (ranks > most || (most == 72 && ranks != 72)) continue;
      const Ranks gpus(machine, ranks);
      for (const NcclSymmetricKernel kernel : all_nccl_symmetric_kernels()) {
        for (const Collective collective :
             {Collective::allreduce, Collective::allgather, Collective::reducescatter}) {
          for (const std::int64_t bytes : {4, 1000, 3 << 20}) {
            for (const char* more : {"", ",channels=7", ",version=2.27"}) {
              const std::string spec = fmt::format("nccl:kernel={}{}", to_string(kernel), more);
              const bool in_place = bytes == 1000;
              if (ranks == 72 && (bytes == 1000 || *more != 0)) continue;
              const auto one = gpus.build_for(spec, collective, bytes, in_place);
              if (!one) continue;
              built.insert(fmt::format("{} {}", to_string(collective), to_string(kernel)));
              const Verification verification = verify(one->program);
              ASSERT_TRUE(verification.ok())
                  << machine << " " << ranks << " " << spec << " " << to_string(collective)
                  << " of " << bytes << ": " << verification.problems.front().message;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(built.size(), 11u);
}

TEST(NcclSymmetric, MulticastIsInSwitches) {
  const Ranks gpus("dgx-h100");
  for (const auto& [kernel, collective, ops] : {std::tuple{"agxllmc_r", Collective::allreduce, 2},
                                                {"rsxldmc_agxstmc", Collective::allreduce, 1},
                                                {"llmc", Collective::allgather, 1},
                                                {"stmc", Collective::allgather, 1},
                                                {"ldmc", Collective::reducescatter, 1}}) {
    const auto built =
        gpus.build_for(fmt::format("nccl:kernel={},channels=2", kernel), collective, 1 << 20);
    const auto in_switch = std::ranges::count_if(built->program.ops, &Op::in_switch);
    EXPECT_EQ(in_switch, 2 * 8) << kernel;
    EXPECT_EQ(built->program.ops.size(), static_cast<std::size_t>(2 * 8 * ops)) << kernel;
  }
}

/// NCCL's own times of these kernels, us: NVIDIA/nccl src/symmetric.cc at 7e809ce8, whose constants
/// are fitted on them. Blocks there: one for every 4 KiB of packets, 16 KiB of others, and no more
/// than NCCL has channels (24, Blackwell 32), or with multicast 16 / n (32 / n).
struct OwnTime {
  const char* kernel;
  Collective collective;
  int ranks;
  std::int64_t bytes;
  double us;
};

void expect_near(const std::string& machine, int channels, int multicast_blocks,
                 const std::vector<OwnTime>& times) {
  std::vector<double> deviations;
  for (const auto& [kernel, collective, ranks, bytes, us] : times) {
    const std::string name = kernel;
    const bool is_packets = name.find("ll") != std::string::npos;
    const bool is_multicast = name.find("mc") != std::string::npos;
    const double share = collective == Collective::allreduce ? 1.0 : ranks;
    const double wanted =
        std::ceil(static_cast<double>(bytes) / share / (is_packets ? 4096 : 16384));
    int blocks = static_cast<int>(std::clamp(wanted, 1.0, channels * 1.0));
    if (is_multicast) blocks = std::min(blocks, multicast_blocks / ranks);
    const Ranks gpus(machine, ranks);
    const double time_us =
        gpus.time_us(fmt::format("{},version=2.27,channels={}", kernel, blocks), collective, bytes);
    deviations.push_back(std::abs(time_us / us - 1));
    EXPECT_NEAR(time_us / us, 1, 0.33) << kernel << " " << ranks << " " << bytes;
  }
  std::ranges::sort(deviations);
  EXPECT_LT(deviations[deviations.size() / 2], 0.08);
}

TEST(NcclSymmetric, TakesOnHopperWhatNcclSaysOfItself) {
  const auto allreduce = Collective::allreduce;
  const auto allgather = Collective::allgather;
  const auto reducescatter = Collective::reducescatter;
  expect_near("dgx-h100", 24, 16,
              {{"agxll_r", allreduce, 2, 1024, 4.22},
               {"agxll_r", allreduce, 8, 1024, 4.95},
               {"agxll_r", allreduce, 8, 32768, 6.45},
               {"agxll_r", allreduce, 4, 1 << 20, 39.11},
               {"agxll_r", allreduce, 8, 1 << 20, 61.63},
               {"agxll_r", allreduce, 8, 32 << 20, 1767.4},
               {"agxllmc_r", allreduce, 8, 1024, 4.54},
               {"agxllmc_r", allreduce, 4, 1 << 20, 130.9},
               {"agxllmc_r", allreduce, 8, 1 << 20, 243.7},
               {"rsxld_agxst", allreduce, 8, 1024, 7.94},
               {"rsxld_agxst", allreduce, 8, 16 << 20, 106.9},
               {"rsxld_agxst", allreduce, 8, 1 << 30, 6386.6},
               {"rsxldmc_agxstmc", allreduce, 8, 1024, 7.66},
               {"rsxldmc_agxstmc", allreduce, 8, 16 << 20, 70.43},
               {"rsxldmc_agxstmc", allreduce, 8, 1 << 30, 3917.3},
               {"ll", allgather, 8, 1024, 4.42},
               {"ll", allgather, 8, 1 << 20, 13.01},
               {"st", allgather, 8, 1024, 6.72},
               {"st", allgather, 8, 1 << 30, 2791},
               {"stmc", allgather, 8, 1024, 6.92},
               {"stmc", allgather, 8, 1 << 30, 2877.6},
               {"ll", reducescatter, 8, 1024, 4.5},
               {"ll", reducescatter, 8, 1 << 20, 15.46},
               {"ld", reducescatter, 8, 1024, 6.39},
               {"ld", reducescatter, 8, 1 << 30, 2858.8},
               {"ldmc", reducescatter, 8, 1024, 6.08},
               {"ldmc", reducescatter, 8, 1 << 30, 2958}});
}

TEST(NcclSymmetric, TakesOnBlackwellWhatNcclSaysOfItself) {
  const auto allreduce = Collective::allreduce;
  const auto allgather = Collective::allgather;
  const auto reducescatter = Collective::reducescatter;
  expect_near("gb200-nvl72", 32, 32,
              {{"agxll_r", allreduce, 4, 1024, 9.31},
               {"agxll_r", allreduce, 8, 1024, 9.95},
               {"agxll_r", allreduce, 4, 1 << 20, 38.11},
               {"agxll_r", allreduce, 8, 32 << 20, 1341.7},
               {"agxllmc_r", allreduce, 4, 1024, 9.47},
               {"agxllmc_r", allreduce, 4, 1 << 20, 105.2},
               {"rsxld_agxst", allreduce, 4, 1024, 14.15},
               {"rsxld_agxst", allreduce, 8, 1 << 30, 3158.1},
               {"rsxldmc_agxstmc", allreduce, 4, 1024, 13.82},
               {"rsxldmc_agxstmc", allreduce, 4, 1 << 20, 17.53},
               {"rsxldmc_agxstmc", allreduce, 8, 1 << 30, 2259.8},
               {"ll", allgather, 4, 1024, 8.52},
               {"ll", allgather, 8, 1 << 20, 13.15},
               {"st", allgather, 8, 1024, 12.11},
               {"st", allgather, 8, 1 << 30, 1562.2},
               {"stmc", allgather, 8, 1024, 12.69},
               {"stmc", allgather, 8, 1 << 30, 1508.8},
               {"ll", reducescatter, 8, 1024, 9.41},
               {"ld", reducescatter, 8, 1024, 12.51},
               {"ld", reducescatter, 8, 1 << 30, 1557.1}});
}

}  // namespace
}  // namespace espalier
