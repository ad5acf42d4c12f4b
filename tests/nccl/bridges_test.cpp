// SPDX-License-Identifier: Apache-2.0
// NVB: through which GPU two others exchange data that have no NVLink to each other, and the
// programs that follow from it.
#include "nccl/bridges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/verify.h"
#include "nccl/choice.h"
#include "tests/nccl/on_machine.h"

namespace espalier {
namespace {

constexpr int kNewest = kNewestNccl;
constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr Collective kOfSends[] = {Collective::alltoall, Collective::sendrecv, Collective::gather,
                                   Collective::scatter};

class Bridges : public OnMachine {
 public:
  using OnMachine::OnMachine;

  int between(int from, int to, int version = kNewest) const {
    return NcclBridges(machine(), router(), placement(), version).between(from, to);
  }
  bool is_joined(int from, int to) const { return route(from, to)->kind == RouteKind::gpu_fabric; }
  double gbps(int from, int to) const {
    return router().capacity_gbps(route(from, to)->hops.front().link);
  }
  /// Transfers that leave NVLink within a node.
  int off_nvlink(const Program& program) const {
    int off = 0;
    for (const Op& op : program.ops) {
      for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
        off += from != to && node(from) == node(to) && !is_joined(from, to) ? 1 : 0;
      });
    }
    return off;
  }

 private:
  const Route* route(int from, int to) const {
    return router().route(placement().ranks[static_cast<std::size_t>(from)],
                          placement().ranks[static_cast<std::size_t>(to)]);
  }
};

/// 0-4-5 and 0-1-5 have a double and a single NVLink each; the double one of 0 goes to 4, that of 5
/// to 1. 0-4-7 has two double ones, 0-3-7 a single one.
TEST(NcclBridges, AreWideAndNextToTheSendersWideLink) {
  for (const char* name : {"dgx1-v100", "p3.16xlarge", "p3dn.24xlarge"}) {
    const Bridges v100(name);
    EXPECT_EQ(v100.between(0, 5), 4) << name;
    EXPECT_EQ(v100.between(5, 0), 1) << name;
    EXPECT_EQ(v100.between(0, 7), 4) << name;
    EXPECT_EQ(v100.between(7, 0), 4) << name;
    EXPECT_EQ(v100.between(0, 4), 0) << "has an NVLink";
    EXPECT_EQ(v100.between(0, 0), 0);
  }
}

TEST(NcclBridges, JoinAllOfACubeMeshSince2_8) {
  for (const char* name : {"dgx1-p100", "dgx1-v100", "p3.16xlarge", "p3dn.24xlarge:nodes=2"}) {
    const Bridges mesh(name);
    EXPECT_TRUE(mesh.graph(8).nvb) << name;
    EXPECT_FALSE(mesh.graph(7).nvb) << name;
    for (int from = 0; from < mesh.ranks(); ++from) {
      for (int to = 0; to < mesh.ranks(); ++to) {
        EXPECT_EQ(mesh.between(from, to, 7), from) << "2.7 has none";
        const int by = mesh.between(from, to);
        const bool is_needed =
            from != to && mesh.node(from) == mesh.node(to) && !mesh.is_joined(from, to);
        ASSERT_EQ(by != from, is_needed) << name << " " << from << " " << to;
        if (!is_needed) continue;
        EXPECT_TRUE(mesh.is_joined(from, by) && mesh.is_joined(by, to));
      }
    }
  }
}

TEST(NcclBridges, AreRanks) {
  EXPECT_EQ(Bridges("dgx1-v100", {0, 5, 1}).between(0, 1), 2) << "GPU 4 is no rank";
  EXPECT_EQ(Bridges("dgx1-v100", {0, 5}).between(0, 1), 0);
  EXPECT_FALSE(Bridges("dgx1-v100", {0, 1, 2, 3}).graph(kNewest).nvb);
}

TEST(NcclBridges, AreNotNeededBehindSwitchesNorOnAmd) {
  for (const char* name : {"dgx2", "dgx-a100", "dgx-h100:nodes=2", "p3.8xlarge", "summit", "mi250",
                           "mi300x", "p2.16xlarge"}) {
    EXPECT_FALSE(Bridges(name).graph(kNewest).nvb) << name;
  }
}

TEST(NcclBridges, RingsPassThemSince2_8) {
  // GPU 4 of a P100 has a link to 0 only.
  const Bridges p100("dgx1-p100", {0, 1, 2, 3, 4});
  EXPECT_EQ(p100.graph(8).kind, RingKind::relayed);
  EXPECT_EQ(p100.graph(7).kind, RingKind::routed);
}

TEST(NcclBridges, KeepSendsOnNvlink) {
  for (const char* name : {"dgx1-p100", "dgx1-v100", "p3.16xlarge", "p3dn.24xlarge:nodes=2"}) {
    for (const std::vector<int>& gpus : {std::vector<int>{}, std::vector<int>{0, 1, 4, 5, 6, 7}}) {
      const Bridges mesh(name, gpus);
      for (const Collective collective : kOfSends) {
        for (const std::int64_t bytes : {std::int64_t{1000}, 64 * kMib}) {
          for (const char* spec : {"nccl", "nccl:version=2.7", "nccl:version=2.8"}) {
            const Program program = mesh.program(spec, collective, bytes);
            const Verification verification = verify(program);
            ASSERT_TRUE(verification.ok()) << name << " " << spec << " " << to_string(collective)
                                           << ": " << verification.problems.front().message;
            const bool is_old = spec == std::string("nccl:version=2.7");
            EXPECT_EQ(mesh.off_nvlink(program) > 0, is_old)
                << name << " " << spec << " " << to_string(collective);
          }
        }
      }
    }
  }
}

/// The sender writes, the receiver reads; no block of the GPU between has a hand in it.
TEST(NcclBridges, AreCrossedByBothEnds) {
  const Bridges v100("dgx1-v100");
  const Program program = v100.program("nccl", Collective::alltoall, 64 * kMib);
  int written = 0;
  int read = 0;
  for (const Op& op : program.ops) {
    const Operand& source = program.sources[op.src_begin];
    if (op.dst.buffer == Buffer::tmp) {
      ++written;
      EXPECT_EQ(op.at, source.place);
    }
    if (source.buffer != Buffer::tmp) continue;
    ++read;
    EXPECT_EQ(op.at, op.dst.place);
  }
  EXPECT_GT(written, 0);
  EXPECT_EQ(written, read);
}

/// The busiest NVLink decides, at the rate at which kernels use it.
TEST(NcclBridges, AreAsFastAsTheirNvlinks) {
  for (const char* name : {"dgx1-p100", "dgx1-v100"}) {
    const Bridges mesh(name);
    const std::int64_t bytes = 1024 * kMib;
    const Program program = mesh.program("nccl", Collective::alltoall, bytes);
    std::map<std::pair<PlaceId, PlaceId>, double> units;
    for (const Op& op : program.ops) {
      for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
        if (from != to) units[{from, to}] += op.length;
      });
    }
    double busiest_us = 0;
    for (const auto& [ends, sum] : units) {
      const double us = sum * static_cast<double>(bytes) /
                        static_cast<double>(program.contract.units) /
                        (1e3 * mesh.gbps(ends.first, ends.second));
      busiest_us = std::max(busiest_us, us);
    }
    EXPECT_NEAR(mesh.time_us("nccl", Collective::alltoall, bytes) / busiest_us, 1, 0.05) << name;
  }
}

}  // namespace
}  // namespace espalier
