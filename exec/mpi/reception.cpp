// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/reception.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

/// For who has come to say who it is.
constexpr auto kPatience = std::chrono::seconds(2);
/// Between looks at whose time is over.
constexpr auto kPause = std::chrono::milliseconds(100);

}  // namespace

void Reception::let_in() {
  while (auto socket = accept_at(listener_, Clock::now())) {
    if (!send_all(*socket, greeting_, Clock::now())) continue;
    visitors_.push_back(
        {std::move(*socket), std::vector<std::byte>(word_bytes_), 0, Clock::now() + kPatience});
  }
}

std::optional<Newcomer> Reception::hear() {
  for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
    const auto count =
        receive_some(visitor->socket, std::span(visitor->words).subspan(visitor->said));
    visitor->said += count.value_or(0);
    if (visitor->said == word_bytes_) {
      Newcomer newcomer{std::move(visitor->socket), std::move(visitor->words)};
      visitors_.erase(visitor);
      return newcomer;
    }
    const bool stays = count && Clock::now() < visitor->patience;
    visitor = stays ? visitor + 1 : visitors_.erase(visitor);
  }
  return std::nullopt;
}

void Reception::wait(Deadline deadline) const {
  std::vector<pollfd> polled{{listener_.number(), POLLIN, 0}};
  for (const Visitor& visitor : visitors_) polled.push_back({visitor.socket.number(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  poll(polled.data(), polled.size(), static_cast<int>(std::clamp(left, {}, kPause).count()));
}

std::optional<Newcomer> Reception::next(Deadline deadline) {
  for (;;) {
    let_in();
    if (auto newcomer = hear()) return newcomer;
    if (Clock::now() >= deadline) return std::nullopt;
    wait(deadline);
  }
}

}  // namespace espalier
