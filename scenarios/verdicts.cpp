// SPDX-License-Identifier: Apache-2.0
#include "scenarios/verdicts.h"

#include <algorithm>
#include <utility>

namespace espalier {
namespace {

constexpr std::size_t kMaxPrograms = 16;
constexpr std::size_t kMaxOps = std::size_t{1} << 18;

}  // namespace

Verification Verdicts::of(const std::shared_ptr<const Program>& program) {
  const auto same = std::ranges::find_if(
      known_, [&](const Known& known) { return same_program(*known.program, *program); });
  if (same != known_.end()) return same->verdict;
  Verification verdict = verify(*program);
  // Of a wrong one, problems name lines, which programs that are the same need not share.
  if (verdict.ok()) keep({program, verdict});
  return verdict;
}

void Verdicts::keep(Known known) {
  if (known.program->ops.size() > kMaxOps) return;
  ops_ += known.program->ops.size();
  known_.push_back(std::move(known));
  while (ops_ > kMaxOps || known_.size() > kMaxPrograms) {
    ops_ -= known_.front().program->ops.size();
    known_.pop_front();
  }
}

}  // namespace espalier
