// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "exec/mpi/mpi_backend.h"
#include "exec/mpi/process_memory.h"
#include "exec/mpi_cuda/gpu_memory.h"
#include "tests/error_of.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/in_processes.h"
#include "tests/exec/test_programs.h"

namespace espalier {

/// Processes with a GPU each, played by threads that have a stand-in for CUDA's runtime of their
/// own.

/// How a process is, by its rank.
using BehaviourOf = std::function<fake_cuda::Behaviour(int rank)>;
inline fake_cuda::Behaviour usual(int) { return {}; }

struct Asked {
  GpuChoice choice = {};
  BehaviourOf behaviour = usual;
  bool takes_gpu_memory = false;
  Target target = {};
  std::vector<int> groups = {};  ///< as Board::groups
};

/// Calls `work` in every process, which leaves nothing behind on its GPU.
inline void with_gpus(int processes, const Asked& asked,
                      const std::function<void(const Processes& all)>& work) {
  in_processes(
      processes,
      [&](const Processes& all) {
        const int rank = all.transport.process();
        fake_cuda::begin_process();
        fake_cuda::reset(asked.behaviour(rank));
        work(all);
        EXPECT_EQ(fake_cuda::live_objects(), 0) << "rank " << rank;
      },
      asked.takes_gpu_memory, asked.groups);
}

/// The same with a back end on these GPUs.
inline void on_gpus(int processes, const Asked& asked,
                    const std::function<void(MpiBackend& backend, int rank)>& work) {
  with_gpus(processes, asked, [&](const Processes& all) {
    MpiBackend backend(all, make_gpu_memory(all, asked.choice));
    work(backend, all.transport.process());
  });
}

inline RunReport run_on_gpus(const Program& program, const RunOptions& options,
                             const Asked& asked = {}) {
  RunReport report;
  on_gpus(program.ranks(), asked, [&](MpiBackend& backend, int rank) {
    RunReport mine = backend.run(program, asked.target, options);
    if (rank == 0) report = std::move(mine);
  });
  return report;
}

/// What rank 0 tells when nobody can run the ring of that many ranks.
inline std::string refusal(int processes, const Asked& asked, ErrorKind kind) {
  std::string told;
  on_gpus(processes, asked, [&](MpiBackend& backend, int rank) {
    const auto attempt = [&] {
      backend.run(ring_program(processes, false), asked.target, {.size_bytes = 1 << 12});
    };
    if (rank == 0) {
      told = error_of(attempt, kind);
    } else {
      EXPECT_THROW(attempt(), ToldElsewhere);
    }
  });
  return told;
}

}  // namespace espalier
