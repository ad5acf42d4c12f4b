// SPDX-License-Identifier: Apache-2.0
#include "scenarios/training_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "core/words.h"
#include "ir/data.h"

namespace espalier {

namespace {

/// Those of `espalier train`.
constexpr std::int64_t kUsualFusionBytes = std::int64_t{64} << 20;
constexpr const char* kUsualAlgorithm = "ring";

struct NamedModel {
  YamlValue value;
  std::shared_ptr<const Model> model;
};

struct GpuCount {
  YamlValue value;
  std::int64_t count = 0;
};

/// What `training` says.
struct Training {
  std::vector<NamedModel> models;
  std::vector<GpuCount> gpu_counts;
  std::vector<std::int64_t> fusions = {kUsualFusionBytes};
  std::vector<bool> overlaps = {true};
  DataType type = DataType::float32;
  std::optional<int> batch;
  std::optional<std::string> gpu_type;
  std::optional<double> compute_ms;
};

void read_models(const YamlValue& value, BlockReader& reader, Training& training) {
  const std::vector<YamlValue> items = value.one_or_more();
  if (value.present() && items.empty()) value.problem("no models");
  for (const YamlValue& item : items) {
    const auto spec = item.text("model");
    auto model = spec ? reader.load_model(item, *spec) : nullptr;
    if (!model || std::ranges::count(training.models, model, &NamedModel::model) > 0) continue;
    training.models.push_back({item, std::move(model)});
  }
}

void read_gpu_counts(const YamlValue& value, Training& training) {
  const std::vector<YamlValue> items = value.one_or_more();
  if (value.present() && items.empty())
    value.problem("gpu_counts is an empty list", "such as [1, 2, 4]");
  for (const YamlValue& item : items) {
    const auto count = item.integer("gpu_counts");
    if (!count) continue;
    if (*count < 1) {
      item.problem(fmt::format("{} is not a number of GPUs", *count));
    } else if (std::ranges::count(training.gpu_counts, *count, &GpuCount::count) == 0) {
      training.gpu_counts.push_back({item, *count});
    }
  }
}

void read_overlaps(const YamlValue& value, Training& training) {
  if (!value.present()) return;
  training.overlaps.clear();
  for (const YamlValue& item : value.one_or_more()) {
    const auto overlap = item.boolean("overlap");
    if (!overlap || std::ranges::count(training.overlaps, *overlap) > 0) continue;
    training.overlaps.push_back(*overlap);
  }
  if (value.one_or_more().empty()) value.problem("neither true nor false");
}

void read_step(YamlMap& map, Training& training) {
  const YamlValue batch = map.get("batch");
  if (const auto samples = batch.integer("batch")) {
    if (*samples < 1 || *samples > kMaxBatch) {
      batch.problem(fmt::format("batch must be from 1 to {} samples", kMaxBatch));
    } else {
      training.batch = static_cast<int>(*samples);
    }
  }
  training.gpu_type = map.get("gpu_type").text("gpu_type");
  const YamlValue compute = map.get("compute_ms");
  if (!compute.present()) return;
  // That it is wrong hides nothing else: the model is not asked.
  training.compute_ms = compute.number("compute_ms").value_or(kMinComputeMs);
  if (*training.compute_ms < kMinComputeMs || *training.compute_ms > kMaxComputeMs) {
    compute.problem(
        fmt::format("compute_ms must be from {} to {:.0f}", kMinComputeMs, kMaxComputeMs));
  }
  if (training.gpu_type) compute.problem("compute_ms and gpu_type exclude each other");
  if (!batch.present()) compute.problem("compute_ms also needs batch");
  if (training.models.size() > 1) compute.problem("compute_ms is for a single model");
}

Training read_what(const YamlValue& value, BlockReader& reader) {
  Training training;
  YamlMap map(value, "training");
  read_models(map.need("models"), reader, training);
  read_step(map, training);
  read_gpu_counts(map.get("gpu_counts"), training);
  const YamlValue fusion = map.get("fusion");
  if (fusion.present()) training.fusions = reader.read_sizes(fusion, "fusion");
  read_overlaps(map.get("overlap"), training);
  Choices<DataType> types;
  for (const DataType type : all_data_types()) types.emplace_back(to_string(type), type);
  training.type =
      read_choice(map.get("dtype"), "dtype", training.type, types, data_type_synonyms());
  map.finish();
  return training;
}

/// What only a block about a collective has.
void refuse_collective(YamlMap& map) {
  for (const char* key : {"collective", "root", "in_place", "sizes", "execute"}) {
    if (!map.get(key).present()) continue;
    map.key_problem(key, fmt::format("a block with training has no {}", quote(key)),
                    "gradients are added up over all GPUs, in buckets of the model's own sizes");
  }
}

/// Fills places with what is asked there.
class SweepMaker {
 public:
  SweepMaker(const Training& training, std::vector<std::string> algorithms)
      : training_(training), algorithms_(std::move(algorithms)) {}

  void make(const Place& place, TrainingStudy& study) {
    const std::vector<std::vector<int>> gpu_sets = read_gpu_sets(place);
    for (const NamedModel& named : training_.models) {
      TrainingSweep sweep{{}, place.ranks, {}, gpu_sets, training_.fusions, algorithms_};
      if (place.ranks > 0) sweep.speeds = speeds_of(*place.machine, place.question.gpus);
      sweep.question.model = named.model;
      sweep.question.exchange = place.question;
      sweep.question.type = training_.type;
      set_step(named, place, sweep.question);
      for (const bool overlap : training_.overlaps) {
        sweep.question.overlap = overlap;
        study.tables.push_back(sweep);
      }
    }
  }

 private:
  std::vector<std::vector<int>> read_gpu_sets(const Place& place) {
    if (training_.gpu_counts.empty()) return {place.question.gpus};
    std::vector<std::vector<int>> sets;
    for (const auto& [value, count] : training_.gpu_counts) {
      if (place.ranks == 0) continue;
      if (count <= place.ranks) {
        sets.push_back(first_gpus(place.question.gpus, static_cast<int>(count)));
      } else if (is_first(value, fmt::format("{}", place.ranks))) {
        value.problem(fmt::format("there are {} GPUs, not {}", place.ranks, count));
      }
    }
    return sets;
  }

  void set_step(const NamedModel& named, const Place& place, TrainingQuery& query) {
    if (training_.compute_ms) {
      set_given_step(query, *training_.compute_ms, training_.batch.value_or(1));
      return;
    }
    if (place.ranks == 0) return;
    try {
      set_known_step(query, *place.machine, training_.gpu_type, training_.batch);
    } catch (const Error& error) {
      const Diagnostic& problem = error.diagnostics().front();
      if (!is_first(named.value, problem.message)) return;
      named.value.problem(problem.message,
                          problem.suggestion.empty()
                              ? "set it with compute_ms"
                              : problem.suggestion + "; or set it with compute_ms");
    }
  }

  /// Several places may have the same to say about a value.
  bool is_first(const YamlValue& value, const std::string& what) {
    const Location where = value.where();
    return said_.insert({where.line, where.column, what}).second;
  }

  const Training& training_;
  std::vector<std::string> algorithms_;
  std::set<std::tuple<int, int, std::string>> said_;
};

}  // namespace

TrainingStudy read_training(YamlMap& map, const YamlValue& value, BlockReader& reader) {
  TrainingStudy study;
  refuse_collective(map);
  const Training training = read_what(value, reader);
  const auto algorithms = reader.read_algorithms(map.get("algorithms"), Collective::allreduce,
                                                 {kUsualAlgorithm}, check_exchange);
  Query question;
  reader.read_transfers(map, question);
  double questions = 1;
  for (const std::size_t count :
       {training.models.size(), training.overlaps.size(), training.fusions.size(),
        algorithms.size(), std::max<std::size_t>(training.gpu_counts.size(), 1)}) {
    questions *= static_cast<double>(count);
  }
  SweepMaker maker(training, algorithms);
  for (const Place& place : reader.read_places(map, question, questions)) {
    maker.make(place, study);
  }
  return study;
}

}  // namespace espalier
