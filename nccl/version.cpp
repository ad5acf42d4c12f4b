// SPDX-License-Identifier: Apache-2.0
#include "nccl/version.h"

namespace espalier {

std::string_view to_string(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return "ring";
    case NcclAlgorithm::tree:
      return "tree";
    case NcclAlgorithm::collnet_direct:
      return "collnet_direct";
    case NcclAlgorithm::collnet_chain:
      return "collnet_chain";
    case NcclAlgorithm::nvls:
      return "nvls";
    case NcclAlgorithm::nvls_tree:
      return "nvls_tree";
    case NcclAlgorithm::pat:
      return "pat";
    case NcclAlgorithm::p2p:
      return "p2p";
  }
  return "";
}

std::string_view to_string(NcclProtocol protocol) {
  switch (protocol) {
    case NcclProtocol::ll:
      return "ll";
    case NcclProtocol::ll128:
      return "ll128";
    case NcclProtocol::simple:
      return "simple";
  }
  return "";
}

const std::vector<NcclAlgorithm>& all_nccl_algorithms() {
  static const std::vector<NcclAlgorithm> all = {
      NcclAlgorithm::ring,          NcclAlgorithm::tree, NcclAlgorithm::collnet_direct,
      NcclAlgorithm::collnet_chain, NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree,
      NcclAlgorithm::pat,           NcclAlgorithm::p2p};
  return all;
}

const std::vector<NcclProtocol>& all_nccl_protocols() {
  static const std::vector<NcclProtocol> all = {NcclProtocol::ll, NcclProtocol::ll128,
                                                NcclProtocol::simple};
  return all;
}

int first_version_of(NcclAlgorithm algorithm) {
  switch (algorithm) {
    case NcclAlgorithm::collnet_direct:
    case NcclAlgorithm::collnet_chain:
      return 14;
    case NcclAlgorithm::nvls:
      return 17;
    case NcclAlgorithm::nvls_tree:
      return 18;
    case NcclAlgorithm::pat:
      return 23;
    default:
      return kOldestNccl;
  }
}

}  // namespace espalier
