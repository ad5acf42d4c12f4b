// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/nccl_backend.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "exec/cuda/nccl_ranks.h"
#include "ir/print.h"
#include "topologies/library_version.h"

namespace espalier {

/// Communicators take seconds to make, so those of the latest GPUs are kept.
struct NcclBackend::Loaded {
  std::shared_ptr<const cuda::NcclLibrary> library = cuda::NcclLibrary::load();
  std::shared_ptr<cuda::NcclRanks> ranks;

  cuda::NcclRanks& ranks_on(std::vector<int> gpus, double patience_s) {
    if (!ranks || ranks->gpus() != gpus) {
      ranks.reset();
      ranks = std::make_shared<cuda::NcclRanks>(library, std::move(gpus), patience_s);
    }
    return *ranks;
  }
};

int require_nccl() {
  const int version = cuda::NcclLibrary::load()->version();
  return library_version(version / 10000, version / 100 % 100, version % 100);
}

NcclBackend::NcclBackend(CudaBackend& gpus) : gpus_(gpus), loaded_(std::make_unique<Loaded>()) {}
NcclBackend::~NcclBackend() = default;

std::optional<std::string> NcclBackend::unsupported(const Program& program,
                                                    const Target& target) const {
  if (auto lack = cuda::nccl_lacks(program.contract)) return lack;
  const std::vector<int> gpus = gpus_.gpus_of_ranks(program, target);
  std::map<int, int> rank_on;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const int gpu = gpus[static_cast<std::size_t>(rank)];
    const auto [other, is_first] = rank_on.emplace(gpu, rank);
    if (is_first) continue;
    return fmt::format("NCCL has one rank on a GPU, but {} and {} share GPU {}",
                       place_name(program, other->second), place_name(program, rank), gpu);
  }
  return std::nullopt;
}

RunReport NcclBackend::run(const Program& program, const Target& target,
                           const RunOptions& options) {
  try {
    cuda::NcclRanks& ranks =
        loaded_->ranks_on(gpus_.gpus_of_ranks(program, target), options.timeout_s);
    return gpus_.run_nccl(ranks, program, target, options);
  } catch (...) {
    loaded_->ranks.reset();
    throw;
  }
}

}  // namespace espalier
