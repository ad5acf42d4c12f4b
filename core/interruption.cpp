// SPDX-License-Identifier: Apache-2.0
#include "core/interruption.h"

#include <utility>

namespace espalier {

namespace {

thread_local InterruptionCheck* innermost = nullptr;

}  // namespace

InterruptionCheck::InterruptionCheck(std::function<void()> check)
    : check_(std::move(check)), around_(innermost) {
  innermost = this;
}

InterruptionCheck::~InterruptionCheck() { innermost = around_; }

void check_interruption() {
  if (innermost != nullptr) innermost->check_();
}

}  // namespace espalier
