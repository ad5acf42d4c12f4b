// SPDX-License-Identifier: Apache-2.0
#include "nccl/version.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/check.h"
#include "topologies/launch_costs.h"
#include "topologies/library_version.h"

namespace espalier {
namespace {

struct KnownAlgorithm {
  NcclAlgorithm id;
  std::string_view name;
  int first_version;
};
constexpr std::array kAlgorithms = {
    KnownAlgorithm{NcclAlgorithm::ring, "ring", kOldestNccl},
    KnownAlgorithm{NcclAlgorithm::tree, "tree", kOldestNccl},
    KnownAlgorithm{NcclAlgorithm::collnet_direct, "collnet_direct", 14},
    KnownAlgorithm{NcclAlgorithm::collnet_chain, "collnet_chain", 14},
    KnownAlgorithm{NcclAlgorithm::nvls, "nvls", 17},
    KnownAlgorithm{NcclAlgorithm::nvls_tree, "nvls_tree", 18},
    KnownAlgorithm{NcclAlgorithm::pat, "pat", 23},
    KnownAlgorithm{NcclAlgorithm::p2p, "p2p", 7},
    KnownAlgorithm{NcclAlgorithm::symmetric, "symmetric", 27}};

const KnownAlgorithm& known(NcclAlgorithm algorithm) {
  const auto index = static_cast<std::size_t>(algorithm);
  CHECK(index < kAlgorithms.size() && kAlgorithms[index].id == algorithm);
  return kAlgorithms[index];
}

}  // namespace

std::string_view to_string(NcclAlgorithm algorithm) { return known(algorithm).name; }

std::string_view to_string(NcclProtocol protocol) {
  static constexpr std::array<std::string_view, 3> kNames = {"ll", "ll128", "simple"};
  return kNames[static_cast<std::size_t>(protocol)];
}

const std::vector<NcclAlgorithm>& all_nccl_algorithms() {
  static const std::vector<NcclAlgorithm> all = [] {
    std::vector<NcclAlgorithm> ids;
    for (const KnownAlgorithm& one : kAlgorithms) ids.push_back(one.id);
    return ids;
  }();
  return all;
}

const std::vector<NcclProtocol>& all_nccl_protocols() {
  static const std::vector<NcclProtocol> all = {NcclProtocol::ll, NcclProtocol::ll128,
                                                NcclProtocol::simple};
  return all;
}

int first_version_of(NcclAlgorithm algorithm) { return known(algorithm).first_version; }

int nccl_library_version(NcclVersion version) {
  return library_version(2, version.minor, version.patch);
}

NcclVersion nearest_nccl(int version) {
  const NcclVersion of_minor{minor_of(std::clamp(version, nccl_library_version({kOldestNccl}),
                                                 nccl_library_version({kNewestNccl})))};
  const NcclVersion exact{of_minor.minor, patch_of(version)};
  return exact.is_2_18_3() ? exact : of_minor;
}

std::string nccl_version_text(NcclVersion version) {
  return version_text(nccl_library_version(version));
}

std::string_view nccl_name(bool is_amd) { return is_amd ? "RCCL" : "NCCL"; }

std::vector<NcclVersion> all_nccl_versions() {
  std::vector<NcclVersion> all;
  for (int minor = kOldestNccl; minor <= kNewestNccl; ++minor) {
    all.push_back({minor});
    if (const NcclVersion patched{minor, 3}; patched.is_2_18_3()) all.push_back(patched);
  }
  return all;
}

}  // namespace espalier
