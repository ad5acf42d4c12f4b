// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace espalier {

/// Lets whoever embeds the library stop what it computes. While one of these lives, what its thread
/// computes calls `check` every now and then, some thousand times a second or more, and `check`
/// throws to stop it. What the thread was computing with (a study, say) is then not to be used any
/// more. Where they nest, the innermost counts.
///
/// The command line needs none, as a signal ends its process.
class InterruptionCheck {
 public:
  explicit InterruptionCheck(std::function<void()> check);
  ~InterruptionCheck();
  InterruptionCheck(const InterruptionCheck&) = delete;
  InterruptionCheck& operator=(const InterruptionCheck&) = delete;

 private:
  friend void check_interruption();

  const std::function<void()> check_;
  InterruptionCheck* const around_;
};

/// Calls the innermost check of this thread, if there is one, and throws what that throws. For
/// loops that may take long, where nothing is lost but an answer.
void check_interruption();

/// The same for loops whose turns are short, such as those over the ops of a program: once in some
/// hundred turns, so that it costs nothing to speak of. `turn`: the number of this one.
inline void check_interruption_at(std::size_t turn) {
  if (turn % 256 == 0) check_interruption();
}

}  // namespace espalier
