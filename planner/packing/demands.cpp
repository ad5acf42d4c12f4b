// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/demands.h"

namespace espalier {

std::vector<Demand> demands_of(Collective collective, int root, int ranks) {
  std::vector<Demand> demands;
  for (int rank = 0; rank < ranks; ++rank) {
    switch (collective) {
      case Collective::gather:
        if (rank != root) demands.push_back({rank, root});
        break;
      case Collective::scatter:
        if (rank != root) demands.push_back({root, rank});
        break;
      case Collective::alltoall:
        for (int to = 0; to < ranks; ++to) {
          if (to != rank) demands.push_back({rank, to});
        }
        break;
      case Collective::broadcast:
      case Collective::reduce:
        if (rank == root && ranks > 1) demands.push_back({rank, kEveryRank});
        break;
      case Collective::allgather:
      case Collective::reducescatter:
        if (ranks > 1) demands.push_back({rank, kEveryRank});
        break;
      case Collective::sendrecv:
        if (ranks > 1) demands.push_back({rank, (rank + 1) % ranks});
        break;
      case Collective::allreduce:
        break;
    }
  }
  return demands;
}

}  // namespace espalier
