// SPDX-License-Identifier: Apache-2.0
#include "training/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/words.h"
#include "core/yaml.h"
#include "training/embedded.h"

namespace espalier {

namespace {

constexpr std::string_view kSchema = "espalier.model/1";
constexpr std::int64_t kMaxElements = std::int64_t{1} << 42;
constexpr std::int64_t kMaxUses = std::int64_t{1} << 32;
constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr double kMaxStepMs = 1e7;
constexpr double kMaxRatio = 100;

/// The value of a key, a whole number from 1; `default_value` when it is absent or wrong.
std::int64_t read_count(const YamlMap& map, const YamlValue& value, std::string_view key,
                        std::int64_t maximum, std::int64_t default_value) {
  const auto number = value.integer(map.describe(key));
  if (!number) return default_value;
  if (*number >= 1 && *number <= maximum) return *number;
  value.problem(fmt::format("{} is {}, but must be a whole number from 1 to {}", map.describe(key),
                            *number, maximum));
  return default_value;
}

/// A number above 0.
double read_positive(const YamlMap& map, const YamlValue& value, std::string_view key,
                     double maximum, double default_value) {
  const auto number = value.number(map.describe(key));
  if (!number) return default_value;
  if (*number > 0 && *number <= maximum) return *number;
  value.problem(fmt::format("{} is {}, but must be above 0 and at most {}", map.describe(key),
                            *number, maximum));
  return default_value;
}

std::string need_text(YamlMap& map, const std::string& key) {
  return map.need(key).text(map.describe(key)).value_or("");
}

std::string gpu_name(const std::string& gpu) {
  return gpu.empty() ? "a GPU without a name" : quote(gpu);
}

StepTime read_step(const YamlValue& value) {
  StepTime step;
  YamlMap map(value, "a step time");
  step.gpu = map.text("gpu");
  step.batch = static_cast<int>(read_count(map, map.need("batch"), "batch", kMaxBatch, 1));
  step.step_s = read_positive(map, map.need("step_ms"), "step_ms", kMaxStepMs, 1) * 1e-3;
  step.source = need_text(map, "source");
  map.finish();
  return step;
}

Tensor read_tensor(const YamlValue& value) {
  Tensor tensor;
  YamlMap map(value, "a tensor");
  tensor.name = need_text(map, "name");
  tensor.elements = read_count(map, map.need("elements"), "elements", kMaxElements, 1);
  tensor.uses = read_count(map, map.get("uses"), "uses", kMaxUses, 1);
  map.finish();
  return tensor;
}

std::vector<StepTime> read_steps(const YamlValue& list) {
  std::vector<StepTime> steps;
  if (!list.present()) return steps;
  std::set<std::pair<std::string, int>> known;
  for (const YamlValue& value : list.items("'steps'")) {
    StepTime step = read_step(value);
    if (!known.emplace(step.gpu, step.batch).second) {
      value.problem(
          fmt::format("a second step time for {} with batch {}", gpu_name(step.gpu), step.batch));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Tensor> read_tensors(const YamlValue& list) {
  std::vector<Tensor> tensors;
  std::set<std::string> names;
  std::int64_t elements = 0;
  for (const YamlValue& value : list.items("'tensors'")) {
    Tensor tensor = read_tensor(value);
    if (!names.insert(tensor.name).second) {
      value.problem(fmt::format("a second tensor is called {}", quote(tensor.name)));
    }
    if (elements <= kMaxElements) elements += tensor.elements;
    tensors.push_back(std::move(tensor));
  }
  if (list.kind() == YamlValue::Kind::list && tensors.empty()) {
    list.problem("a model needs at least one tensor");
  }
  if (elements > kMaxElements) {
    list.problem(fmt::format("a model has at most {} parameters", kMaxElements));
  }
  return tensors;
}

bool is_path(const std::string& spec) {
  return spec.find('/') != std::string::npos || spec.ends_with(".yaml") || spec.ends_with(".yml");
}

}  // namespace

std::int64_t Model::elements() const {
  std::int64_t all = 0;
  for (const Tensor& tensor : tensors) all += tensor.elements;
  return all;
}

double Model::multiply_adds() const {
  double all = 0;
  for (const Tensor& tensor : tensors) all += tensor.multiply_adds();
  return all;
}

Model parse_model(std::string_view yaml, const std::string& file) {
  DiagnosticList problems;
  const YamlValue document = YamlValue::parse(yaml, file, problems);
  if (!document.present()) problems.throw_if_any();
  Model model;
  YamlMap map(document, "a model");
  const YamlValue schema = map.need("schema");
  if (const auto text = schema.text("'schema'"); text && *text != kSchema) {
    schema.problem(fmt::format("unknown schema {}", quote(*text)), std::string(kSchema));
  }
  model.name = need_text(map, "name");
  model.title = need_text(map, "title");
  for (const YamlValue& source : map.need("sources").one_or_more()) {
    model.sources.push_back(source.text("a source").value_or(""));
  }
  model.sample = need_text(map, "sample");
  model.backward_to_forward =
      read_positive(map, map.need("backward_to_forward"), "backward_to_forward", kMaxRatio, 1);
  model.steps = read_steps(map.get("steps"));
  const YamlValue tensors = map.need("tensors");
  if (tensors.present()) model.tensors = read_tensors(tensors);
  map.finish();
  problems.throw_if_any();
  return model;
}

Model load_model(const std::string& spec) {
  if (is_path(spec)) return parse_model(read_file(spec), spec);
  std::vector<std::string> names;
  for (const ModelEntry& entry : builtin_models()) {
    if (entry.name == spec) return parse_model(entry.yaml, entry.name + ".yaml");
    names.push_back(entry.name);
  }
  throw Error(ErrorKind::usage, "unknown model " + quote(spec), did_you_mean(spec, names));
}

const StepTime& find_step(const Model& model, const std::string& gpu, std::optional<int> batch) {
  std::vector<std::string> known;
  for (const StepTime& step : model.steps) {
    if (step.gpu == gpu && (!batch || step.batch == *batch)) return step;
    known.push_back(fmt::format("{} with batch {}", gpu_name(step.gpu), step.batch));
  }
  throw Error(ErrorKind::usage,
              fmt::format("the step time of {} on {}{} is not known", quote(model.name),
                          gpu_name(gpu), batch ? fmt::format(" with batch {}", *batch) : ""),
              known.empty() ? "" : "known: " + join(known, ", "));
}

const std::vector<ModelEntry>& builtin_models() {
  static const std::vector<ModelEntry> all = [] {
    std::vector<ModelEntry> entries;
    for (const EmbeddedFile& file : embedded_models()) {
      const Model model = parse_model(file.text, std::string(file.name));
      entries.push_back({model.name, model.title, std::string(file.text)});
    }
    return entries;
  }();
  return all;
}

double forward_seconds(const Model& model, double step_s) {
  return step_s / (1 + model.backward_to_forward);
}

std::vector<double> backward_seconds(const Model& model, double step_s) {
  const double backward_s = step_s - forward_seconds(model, step_s);
  const double all = model.multiply_adds();
  std::vector<double> seconds;
  seconds.reserve(model.tensors.size());
  for (auto tensor = model.tensors.rbegin(); tensor != model.tensors.rend(); ++tensor) {
    seconds.push_back(backward_s * tensor->multiply_adds() / all);
  }
  return seconds;
}

}  // namespace espalier
