// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/training_study.h"

namespace espalier {

/// Of GPUs, relative to what the step time is of.
struct SpeedRange {
  double slowest = 1;
  double fastest = 1;
};

/// Questions of one table: every combination of GPUs, fusion buffer and algorithm.
struct TrainingSweep {
  TrainingQuery question;  ///< all GPUs that may take part; the rest is still to be filled in
  int ranks = 0;           ///< that many
  SpeedRange speeds = {};  ///< theirs
  std::vector<std::vector<int>> gpu_sets;
  std::vector<std::int64_t> fusions;
  std::vector<std::string> algorithms;

  std::vector<TrainingQuery> queries() const;  ///< by GPUs, then fusion buffer, then algorithm
};

/// The first so many of `gpus`, of all GPUs of a machine when it is empty. \pre there are as many
std::vector<int> first_gpus(const std::vector<int>& gpus, int count);

/// Of `gpus`, of all GPUs of a machine when it is empty.
SpeedRange speeds_of(const Topology& machine, const std::vector<int>& gpus);

/// What a batch and the time of an iteration may be.
inline constexpr int kMaxBatch = 1 << 24;
inline constexpr double kMinComputeMs = 1e-3;
inline constexpr double kMaxComputeMs = 1e7;

/// How long one GPU computes, for a batch.
void set_given_step(TrainingQuery& query, double compute_ms, int batch);

/// What the model knows of the GPU type, by default that of the machine's GPUs, which are alike
/// wherever step times are known; without a batch it is the first one known. Throws what
/// `find_step` throws. \pre the query has a model, and GPUs of the machine.
void set_known_step(TrainingQuery& query, const Topology& machine,
                    const std::optional<std::string>& gpu_type, std::optional<int> batch);

}  // namespace espalier
