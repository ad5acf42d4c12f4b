// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "core/error.h"
#include "training/buckets.h"
#include "training/model.h"

/// A model is either right, and its gradients then fit into buckets, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  try {
    const Model model = parse_model({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    CHECK(!model.tensors.empty());
    const auto buckets = fuse(model, 1 << 20, 4);
    CHECK(buckets.back().last == model.tensors.size());
    lay_out(buckets, static_cast<std::int64_t>(buckets.size()) + 1);
  } catch (const Error& error) {
    CHECK(!error.diagnostics().empty());
  }
  return 0;
}
