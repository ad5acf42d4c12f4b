// SPDX-License-Identifier: Apache-2.0
#include "topologies/synonyms.h"

namespace espalier {

const Synonyms& topology_synonyms() {
  static const Synonyms synonyms = {
      {"hgx-a100", "dgx-a100"}, {"hgx-h100", "dgx-h100"},
      {"hgx-h200", "dgx-h200"}, {"gh200", "gb200-nvl72"},
      {"k80", "p2.8xlarge"},    {"k80", "p2.16xlarge"},
      {"k80", "kesch"},         {"mi250x", "mi250"},
      {"mi300", "mi300x"},      {"ac922", "mist"},
      {"ac922", "summit"},      {"power9", "mist"},
      {"power9", "summit"},     {"mesh", "full"},
      {"clique", "full"},       {"fully_connected", "full"},
      {"crossbar", "switch"},   {"grid", "torus"},
      {"chain", "line"},        {"p2", "p2.8xlarge"},
      {"p2", "p2.16xlarge"},    {"p3", "p3.8xlarge"},
      {"p3", "p3.16xlarge"},
  };
  return synonyms;
}

const Synonyms& link_kind_synonyms() {
  static const Synonyms synonyms = {
      {"eth", "ethernet"},   {"roce", "ethernet"}, {"tcp", "ethernet"},       {"gbe", "ethernet"},
      {"infiniband", "ib"},  {"opa", "omnipath"},  {"nvl", "nvlink"},         {"nv", "nvlink"},
      {"c2c", "nvlink_c2c"}, {"pci", "pcie"},      {"infinity_fabric", "if"},
  };
  return synonyms;
}

const Synonyms& figure_synonyms() {
  static const Synonyms synonyms = {
      {"peers", "peer_limit"}, {"max_peers", "peer_limit"}, {"engines", "copy_engines"},
      {"bandwidth", "gbps"},   {"latency", "latency_us"},   {"memory", "memory_gbps"},
  };
  return synonyms;
}

const Synonyms& profile_synonyms() {
  static const Synonyms synonyms = {
      {"mscclpp", "kernel"},     {"kernels", "kernel"},
      {"graph", "cuda_graph"},   {"threads", "host"},
      {"ce", "copy_engine"},     {"dma", "copy_engine"},
      {"memcpy", "copy_engine"}, {"cudaMemcpyPeer", "copy_engine"},
      {"theory", "ideal"},       {"theoretical", "ideal"},
      {"peak", "ideal"},
  };
  return synonyms;
}

}  // namespace espalier
