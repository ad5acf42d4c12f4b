// SPDX-License-Identifier: Apache-2.0
#include "sim/found_out.h"

#include <any>
#include <cstddef>

#include "core/check.h"

namespace espalier {

FoundOut* found_out(const Program& program, const RunOptions& options) {
  constexpr std::size_t kMaxOps = std::size_t{1} << 16;
  std::any* const found = options.found.get();
  if (found == nullptr || program.ops.size() > kMaxOps) return nullptr;
  if (!found->has_value()) *found = FoundOut{std::make_shared<TextFindings>(program), {}};
  auto* const known = std::any_cast<FoundOut>(found);
  CHECK(known != nullptr && &known->text->program() == &program);
  return known;
}

}  // namespace espalier
