// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Versions of NCCL 2 whose rules are known, by their minor number: 18 is 2.18.
inline constexpr int kOldestNccl = 4;
inline constexpr int kNewestNccl = 30;
/// The first whose tuner weighs algorithms and protocols in a table; before it sizes decide.
inline constexpr int kFirstNcclWithTable = 5;

/// The algorithms that NCCL's tuner chooses from; `p2p` is what its send and receive calls do, of
/// which alltoall, gather, scatter and sendrecv are made; `symmetric` are its kernels over
/// symmetric memory, which are taken beside the tuner (nccl/symmetric.h).
enum class NcclAlgorithm : std::uint8_t {
  ring,
  tree,
  collnet_direct,
  collnet_chain,
  nvls,
  nvls_tree,
  pat,
  p2p,
  symmetric
};
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

/// "ring", "nvls_tree"; "ll".
std::string_view to_string(NcclAlgorithm algorithm);
std::string_view to_string(NcclProtocol protocol);
const std::vector<NcclAlgorithm>& all_nccl_algorithms();
const std::vector<NcclProtocol>& all_nccl_protocols();

/// A version of NCCL 2. Its minor number says whose rules hold, but for the patch whose tables were
/// never used again.
struct NcclVersion {
  int minor = kNewestNccl;
  int patch = 0;

  constexpr NcclVersion() = default;
  constexpr NcclVersion(int of_minor, int of_patch = 0) : minor(of_minor), patch(of_patch) {}
  constexpr auto operator<=>(const NcclVersion&) const = default;

  /// 2.18.3 alone has trees' hops of its own (NVIDIA/nccl src/graph/tuning.cc).
  bool is_2_18_3() const { return minor == 18 && patch == 3; }
};

/// The version of RCCL, AMD's NCCL, whose rules are known: those of the NCCL that it was made of,
/// and its own tuner (nccl/rccl_tuner.h). Other versions were not compared with anything.
inline constexpr NcclVersion kKnownRccl = {21, 5};

/// As `library_version` has it: 201803.
int nccl_library_version(NcclVersion version);
/// Of the versions whose rules are known, the nearest to one that `library_version` made. Patches
/// count where they have rules of their own.
NcclVersion nearest_nccl(int version);
/// "2.18", "2.18.3".
std::string nccl_version_text(NcclVersion version);
/// "NCCL", or "RCCL" on AMD's GPUs.
std::string_view nccl_name(bool is_amd);
/// All whose rules are known, in their order.
std::vector<NcclVersion> all_nccl_versions();

/// The minor number of the first version that has the algorithm.
int first_version_of(NcclAlgorithm algorithm);

}  // namespace espalier
