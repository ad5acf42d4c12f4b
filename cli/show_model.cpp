// SPDX-License-Identifier: Apache-2.0
#include "cli/show_model.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"

namespace espalier {

namespace {

constexpr std::int64_t kBytesPerElement = 4;  // float32, as step times are measured
constexpr std::int64_t kSmallBytes = 16 << 10;
constexpr std::int64_t kLargeBytes = 1 << 20;

std::int64_t bytes_of(const Tensor& tensor) { return tensor.elements * kBytesPerElement; }

/// How many tensors are small, and how many large: what fusion is about.
std::string size_classes(const Model& model) {
  int small = 0;
  int large = 0;
  for (const Tensor& tensor : model.tensors) {
    if (bytes_of(tensor) <= kSmallBytes) ++small;
    if (bytes_of(tensor) > kLargeBytes) ++large;
  }
  return fmt::format("{}: {} of up to 16KiB, {} of more than 1MiB",
                     counted(model.tensors.size(), "tensor"), small, large);
}

void print_steps(const Console& console, const Model& model) {
  if (model.steps.empty()) {
    console.out << "Step times: none are known\n";
    return;
  }
  console.out << "Step times on one GPU\n";
  Columns table("lrrrl");
  table.add({"GPU", "batch", "time", "per s", "source"});
  for (const StepTime& step : model.steps) {
    table.add({step.gpu.empty() ? "(not named)" : step.gpu, fmt::format("{}", step.batch),
               format_seconds(step.step_s), fit_number(step.batch / step.step_s, 7), step.source});
  }
  console.out << table.render("  ");
}

}  // namespace

void show_model(const Console& console, const Model& model) {
  console.out << styled(console, Style::bold, model.name) << "  " << model.title << '\n';
  for (const std::string& source : model.sources) {
    console.out << wrap("source: " + source, console.width, "  ");
  }
  console.out << fmt::format(
      "{} parameters, {} as float32; {:.3g} multiply-adds for one {}\n{}\n"
      "The backward pass takes {:g} times as long as the forward pass\n",
      model.elements(), format_bytes(model.elements() * kBytesPerElement), model.multiply_adds(),
      model.sample, size_classes(model), model.backward_to_forward);
  print_steps(console, model);
  console.out << "Tensors in forward order; gradients are computed in reverse order\n";
  Columns table("lrrrr");
  table.add({"name", "elements", "size", "uses", "% of time"});
  const double all = model.multiply_adds();
  for (const Tensor& tensor : model.tensors) {
    table.add({tensor.name, fmt::format("{}", tensor.elements), format_bytes(bytes_of(tensor)),
               fmt::format("{}", tensor.uses),
               fmt::format("{:.2f}", 100 * tensor.multiply_adds() / all)});
  }
  console.out << table.render("  ");
}

}  // namespace espalier
