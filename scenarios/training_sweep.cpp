// SPDX-License-Identifier: Apache-2.0
#include "scenarios/training_sweep.h"

#include <algorithm>
#include <numeric>

namespace espalier {

std::vector<TrainingQuery> TrainingSweep::queries() const {
  std::vector<TrainingQuery> all;
  for (const std::vector<int>& gpus : gpu_sets) {
    for (const std::int64_t fusion_bytes : fusions) {
      for (const std::string& algorithm : algorithms) {
        TrainingQuery& query = all.emplace_back(question);
        query.exchange.gpus = gpus;
        query.fusion_bytes = fusion_bytes;
        query.exchange.algorithm = algorithm;
      }
    }
  }
  return all;
}

std::vector<int> first_gpus(const std::vector<int>& gpus, int count) {
  if (!gpus.empty()) return {gpus.begin(), gpus.begin() + count};
  std::vector<int> first(static_cast<std::size_t>(count));
  std::iota(first.begin(), first.end(), 0);
  return first;
}

SpeedRange speeds_of(const Topology& machine, const std::vector<int>& gpus) {
  const std::vector<NodeId> all = machine.gpus();
  const std::size_t count = gpus.empty() ? all.size() : gpus.size();
  std::vector<double> speeds;
  for (std::size_t i = 0; i < count; ++i) {
    speeds.push_back(machine.nodes[all[gpus.empty() ? i : gpus[i]]].speed);
  }
  const auto [slowest, fastest] = std::ranges::minmax(speeds);
  return {slowest, fastest};
}

void set_given_step(TrainingQuery& query, double compute_ms, int batch) {
  query.step_s = compute_ms * 1e-3;
  query.batch = batch;
  query.step_source = "as given";
}

void set_known_step(TrainingQuery& query, const Topology& machine,
                    const std::optional<std::string>& gpu_type, std::optional<int> batch) {
  const std::vector<int>& gpus = query.exchange.gpus;
  const NodeId gpu = machine.gpus()[gpus.empty() ? 0 : static_cast<std::size_t>(gpus.front())];
  const StepTime& step = find_step(*query.model, gpu_type.value_or(machine.node(gpu).model), batch);
  query.step_s = step.step_s;
  query.batch = step.batch;
  query.step_source = step.source;
}

}  // namespace espalier
