// SPDX-License-Identifier: Apache-2.0
// PXN: whose NIC sends what leaves a node, and the programs that follow from it.
#include "nccl/rails.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "nccl/choice.h"
#include "tests/nccl/on_machine.h"

namespace espalier {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

class Rails : public OnMachine {
 public:
  using OnMachine::OnMachine;

  int sender(int from, int to, bool pxn = true) const {
    return NcclRails(machine(), router(), placement(), pxn).sender(from, to);
  }
};

TEST(NcclRails, SendByTheNicOfTheReceiversCounterpart) {
  for (const char* name : {"dgx-h100:nodes=2", "dgx-a100:nodes=2"}) {
    const Rails rails(name);
    EXPECT_EQ(rails.sender(0, 11), 3) << name;
    EXPECT_EQ(rails.sender(13, 2), 10) << name;
    EXPECT_EQ(rails.sender(3, 11), 3) << "it is itself";
    EXPECT_EQ(rails.sender(0, 5), 0) << "of the same node";
    EXPECT_EQ(rails.sender(0, 11, false), 0) << "without PXN";
  }
}

TEST(NcclRails, SendByTheirOwnNicWhereNoNeighborHelps) {
  // One NIC behind a CPU.
  EXPECT_EQ(Rails("p3dn.24xlarge:nodes=2").sender(0, 11), 0);
  // GPU 3 of the first node, the counterpart of rank 2, is no rank.
  EXPECT_EQ(Rails("dgx-h100:nodes=2", {0, 8, 11}).sender(0, 2), 0);
}

/// Eight rings, one for each NIC. On DGX H100 no two GPUs share a PCIe switch: a ring leaves a node
/// through the GPU that it came in at.
TEST(NcclRails, RingsLeaveByTheNicTheyCameInBy) {
  const Rails h100("dgx-h100:nodes=2");
  const NcclGraph graph = h100.graph(27);
  ASSERT_EQ(graph.rings.size(), 8U);
  std::set<int> entries;
  for (const Ring& ring : graph.rings) {
    for (std::size_t i = 0; i < 16; ++i) {
      const int next = ring.order[(i + 1) % 16];
      const bool leaves = h100.node(ring.order[i]) != h100.node(next);
      EXPECT_EQ(ring.relays[i] >= 0, leaves);
      if (!leaves) continue;
      entries.insert(next);
      EXPECT_EQ(ring.relays[i] % 8, next % 8) << "one rail";
      EXPECT_EQ(h100.node(ring.relays[i]), h100.node(ring.order[i]));
    }
  }
  EXPECT_EQ(entries.size(), 16U);
  for (const NcclGraph& without : {h100.graph(11), h100.graph(27, false)}) {
    EXPECT_FALSE(without.pxn);
    for (const Ring& ring : without.rings) {
      EXPECT_EQ(ring.relays, std::vector<int>(16, -1));
    }
  }
}

/// On DGX A100 the other GPU of the switch is as near to the NIC, and is the last one.
TEST(NcclRails, RingsEndAtAGpuThatIsAsNear) {
  const Rails a100("dgx-a100:nodes=2");
  const NcclGraph graph = a100.graph(27);
  ASSERT_EQ(graph.rings.size(), 8U);
  for (const Ring& ring : graph.rings) {
    EXPECT_EQ(ring.relays, std::vector<int>(16, -1));
    for (std::size_t i = 0; i < 16; ++i) {
      const int next = ring.order[(i + 1) % 16];
      if (a100.node(ring.order[i]) == a100.node(next)) continue;
      EXPECT_EQ(ring.order[i] % 8 ^ 1, next % 8);
    }
  }
}

TEST(NcclRails, ProgramsAreRightWithAndWithoutThem) {
  for (const char* name : {"dgx-h100:nodes=2", "dgx-a100:nodes=2", "p3dn.24xlarge:nodes=2"}) {
    const Rails rails(name);
    for (const Collective collective : find_algorithm("nccl")->collectives) {
      for (const std::string spec : {"nccl", "nccl:pxn=0", "nccl:proto=ll", "nccl:proto=simple"}) {
        if (spec == "nccl:proto=ll" && is_nccl_p2p(collective)) continue;  // has none of it here
        for (const std::int64_t bytes : {std::int64_t{1000}, std::int64_t{64} << 20}) {
          const bool in_place = bytes == 1000 && nccl_has_in_place(collective);
          const Program program = rails.program(spec, collective, bytes, in_place);
          const Verification verification = verify(program);
          ASSERT_TRUE(verification.ok())
              << name << " " << spec << " " << to_string(collective) << " of " << bytes << ": "
              << verification.problems.front().message;
        }
      }
    }
  }
}

/// All that crosses the network leaves by the GPU with the receiver's number.
TEST(NcclRails, AlltoallsKeepToTheirRails) {
  const Rails h100("dgx-h100:nodes=2");
  const auto crossings_off_rail = [&](const char* spec) {
    const Program program = h100.program(spec, Collective::alltoall, kGib);
    int off = 0;
    for (const Op& op : program.ops) {
      for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
        off += h100.node(from) != h100.node(to) && from % 8 != to % 8 ? 1 : 0;
      });
    }
    return off;
  };
  EXPECT_EQ(crossings_off_rail("nccl"), 0);
  EXPECT_GT(crossings_off_rail("nccl:pxn=0"), 0);
}

/// Half of what a rank sends crosses its NIC, at 48 GB/s, with PXN as without. Blocks that have
/// done with one peer before others leave it idle for a while.
TEST(NcclRails, AlltoallsAreAsFastAsNics) {
  const Rails h100("dgx-h100:nodes=2");
  const double nic_us = kGib / 2.0 / 48e3;
  EXPECT_NEAR(h100.time_us("nccl", Collective::alltoall, kGib) / nic_us, 1, 0.1);
  EXPECT_NEAR(h100.time_us("nccl:pxn=0", Collective::alltoall, kGib) / nic_us, 1, 0.1);
}

/// NVLinks of 2 GB/s: a GPU's 18 carry 0.82 x 36 GB/s, less than two NICs' worth. What goes to the
/// other seven GPUs of the node crosses them, 7/16 of the message, and with PXN also what leaves by
/// these GPUs' NICs, as much again.
TEST(NcclRails, ProxiesShareNvlink) {
  Topology slow = load_topology("dgx-h100:nodes=2");
  for (Link& link : slow.links) {
    if (link.kind == "nvlink4") link.gbps = 2;
  }
  const Rails rails(std::move(slow));
  const double once_us = 7.0 / 16 * kGib / (0.82 * 36e3);
  EXPECT_NEAR(rails.time_us("nccl:pxn=0", Collective::alltoall, kGib) / once_us, 1, 0.05);
  EXPECT_NEAR(rails.time_us("nccl", Collective::alltoall, kGib) / once_us, 2, 0.1);
}

/// A call keeps a GPU no longer with PXN than without: what rests in its memory on the way to its
/// NIC, its proxy sends. What is left is the op that hands a chunk to the relay, which lasts longer
/// under Simple, as LL128 hands it over line by line.
TEST(NcclRails, BroadcastsKeepRelaysNoLonger) {
  const Rails h100("dgx-h100:nodes=2");
  const auto longer = [&](const std::string& spec) {
    const auto period_s = [&](const char* more) {
      return h100.run(spec + more, Collective::broadcast, 64 << 20).simulated->back_to_back_s;
    };
    return period_s("") / period_s(",pxn=0") - 1;
  };
  EXPECT_NEAR(longer("nccl:proto=ll128"), 0, 0.05);
  EXPECT_NEAR(longer("nccl:proto=simple"), 0, 0.15);
}

}  // namespace
}  // namespace espalier
