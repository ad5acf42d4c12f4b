// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nccl/choice.h"
#include "topologies/load.h"

namespace espalier {

/// Asks NCCL's rules about a machine.
class Chooser {
 public:
  explicit Chooser(const std::string& name, const std::vector<int>& gpus = {})
      : Chooser(load_topology(name), gpus) {}
  explicit Chooser(Topology topology, const std::vector<int>& gpus = {})
      : topology_(std::move(topology)),
        router_(topology_, topology_.profile("kernel")),
        placement_(place_ranks(router_, gpus)) {}

  NcclChoice choose(const NcclCall& call) const { return nccl_choice(call, router_, placement_); }

  /// "ring ll", "nvls simple".
  std::string word(Collective collective, double bytes, NcclVersion version) const {
    const NcclChoice choice = choose({collective, bytes, version});
    return std::string(to_string(choice.algorithm)) + " " + std::string(to_string(choice.protocol));
  }

  static const NcclCell& cell(const NcclChoice& choice, NcclAlgorithm algorithm,
                              NcclProtocol protocol) {
    for (const NcclCell& one : choice.cells) {
      if (one.algorithm == algorithm && one.protocol == protocol) return one;
    }
    throw std::logic_error("no such cell");
  }

  double latency_us(NcclVersion version, NcclAlgorithm algorithm, NcclProtocol protocol,
                    Collective collective = Collective::allreduce, double bytes = 1024) const {
    return cell(choose({collective, bytes, version}), algorithm, protocol).latency_s * 1e6;
  }
  /// Of the whole buffer; trees' factor is 1 from 1 GiB on.
  double gbps(NcclVersion version, NcclAlgorithm algorithm, NcclProtocol protocol,
              Collective collective = Collective::allreduce, double bytes = 1073741824) const {
    return cell(choose({collective, bytes, version}), algorithm, protocol).gbps;
  }

 private:
  Topology topology_;
  Router router_;
  Placement placement_;
};

}  // namespace espalier
