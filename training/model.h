// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// A tensor of parameters, and so of gradients.
struct Tensor {
  std::string name;
  std::int64_t elements = 0;
  /// How often each element is used for one sample: the positions of a convolution's output, 1 in a
  /// fully connected layer. `elements * uses` multiply-adds are what a pass over it costs.
  std::int64_t uses = 1;

  double multiply_adds() const { return static_cast<double>(elements) * static_cast<double>(uses); }
};

/// How long one iteration takes on one GPU, without any communication.
struct StepTime {
  std::string gpu;  ///< as `model` of a machine's nodes; empty: the source does not say
  int batch = 0;    ///< samples
  double step_s = 0;
  std::string source;
};

/// A network to train: what `espalier.model/1` holds. docs/training.md.
struct Model {
  std::string name;
  std::string title;
  std::vector<std::string> sources;
  std::string sample;              ///< what a batch consists of: "image"
  double backward_to_forward = 2;  ///< time of the backward pass / time of the forward pass
  std::vector<StepTime> steps;
  std::vector<Tensor> tensors;  ///< in forward order, never empty

  std::int64_t elements() const;
  /// Of the forward pass, for one sample.
  double multiply_adds() const;
};

/// Reads a model. Throws Error{input} with every problem.
Model parse_model(std::string_view yaml, const std::string& file);

/// A built-in model by name, or one from a file (a path, or a name that ends in .yaml). Throws
/// Error{usage} with did-you-mean for an unknown name, and what `parse_model` throws.
Model load_model(const std::string& spec);

/// The step time for this GPU and batch; without a batch, the first one for this GPU. An empty
/// `gpu` asks for times whose GPU is not named. Throws Error{usage} that lists the known ones.
const StepTime& find_step(const Model& model, const std::string& gpu, std::optional<int> batch);

struct ModelEntry {
  std::string name;
  std::string title;
  std::string yaml;  ///< the file's whole text
};

/// The built-in models, by name. They are compiled into the library.
const std::vector<ModelEntry>& builtin_models();

/// Seconds that the backward pass spends on each tensor, in the order of the gradients: the last
/// tensor first. The pass takes its share of `step_s` (see
/// Model::backward_to_forward), divided among tensors by their multiply-adds: an
/// estimate, because layers limited by memory bandwidth count as almost nothing.
std::vector<double> backward_seconds(const Model& model, double step_s);
/// The rest of `step_s`.
double forward_seconds(const Model& model, double step_s);

}  // namespace espalier
