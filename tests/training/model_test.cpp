// SPDX-License-Identifier: Apache-2.0
#include "training/model.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/error_of.h"

namespace espalier {
namespace {

TEST(Models, CatalogueHasTheParametersThatPapersCount) {
  // Parameters, and multiply-adds of the forward pass in 1e9 where the papers give them: 0.72
  // (Caffe's AlexNet), 15.5 (VGG-16), 3.9 and 11.3 (ResNet-50 and -152), 4.3 (DenseNet-201), 1.6
  // (GoogLeNet). Batch normalisation adds less than a tenth.
  struct Known {
    const char* name;
    std::int64_t parameters;
    double giga_multiply_adds;
  };
  const std::vector<Known> known = {
      {"alexnet", 60'965'224, 0.72},    {"alexnet-torchvision", 61'100'840, 0.71},
      {"densenet201", 20'013'928, 4.3}, {"googlenet", 6'998'552, 1.58},
      {"lenet", 431'080, 0.0023},       {"resnet152", 60'192'808, 11.3},
      {"resnet50", 25'557'032, 3.86},   {"vgg16", 138'357'544, 15.5}};
  for (const Known& one : known) {
    const Model model = load_model(one.name);
    EXPECT_EQ(model.elements(), one.parameters) << one.name;
    const double ratio = model.multiply_adds() * 1e-9 / one.giga_multiply_adds;
    EXPECT_GT(ratio, 0.98) << one.name;
    EXPECT_LT(ratio, 1.1) << one.name;
  }
}

TEST(Models, CatalogueIsSound) {
  std::set<std::string> names;
  for (const ModelEntry& entry : builtin_models()) {
    const Model model = load_model(entry.name);
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_FALSE(model.title.empty());
    EXPECT_FALSE(model.sources.empty());
    for (const StepTime& step : model.steps) EXPECT_FALSE(step.source.empty()) << model.name;
  }
  EXPECT_EQ(names.size(), 9U);
}

TEST(Models, PassesDivideTheStep) {
  const Model model = parse_model(R"(
schema: espalier.model/1
name: two
title: Two layers
sources: [made up]
sample: image
backward_to_forward: 3
tensors:
  - {name: conv, elements: 10, uses: 50}
  - {name: fc, elements: 1500}
)",
                                  "two.yaml");
  // 8 s: forward 2, backward 6. The last tensor comes first: 1500 and 500 multiply-adds.
  EXPECT_DOUBLE_EQ(forward_seconds(model, 8), 2);
  const std::vector<double> backward_s = backward_seconds(model, 8);
  ASSERT_EQ(backward_s.size(), 2U);
  EXPECT_DOUBLE_EQ(backward_s[0], 4.5);
  EXPECT_DOUBLE_EQ(backward_s[1], 1.5);
}

TEST(Models, UnknownNamesAreGuessed) {
  EXPECT_EQ(error_of([] { load_model("resnet51"); }, ErrorKind::usage),
            "error: unknown model 'resnet51'\n  help: did you mean 'resnet50'?");
}

}  // namespace
}  // namespace espalier
