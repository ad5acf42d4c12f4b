// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/exchange.h"

#include <array>
#include <cstdint>

namespace espalier {
namespace {

/// Until the transport has reported so many messages.
void finish(Transport& transport, std::size_t messages, Patience patience = kCrowdedPatience) {
  std::vector<MessageId> over;
  drive(
      [&] {
        const std::size_t before = over.size();
        transport.test(over);
        return over.size() > before;
      },
      [&] { return over.size() >= messages; }, [&] { transport.give_way(); }, patience);
}

std::span<std::byte> bytes_of(std::uint64_t& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

}  // namespace

void drive(const std::function<bool()>& advance, const std::function<bool()>& is_over,
           const std::function<void()>& give_way, Patience patience) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point idle_since = Clock::now();
  while (!is_over()) {
    const bool moved = advance();
    const Clock::time_point now = Clock::now();
    if (moved) {
      idle_since = now;
    } else if (now - idle_since >= patience) {
      give_way();
    }
  }
}

void meet(Transport& transport, Patience patience) {
  const int count = transport.processes();
  const int mine = transport.process();
  for (int distance = 1; distance < count; distance *= 2) {
    std::array<std::byte, 1> out{};
    std::array<std::byte, 1> in{};
    transport.receive((mine - distance + count) % count, kExchangeTag, in);
    transport.send((mine + distance) % count, kExchangeTag, out);
    finish(transport, 2, patience);
  }
}

std::vector<std::vector<std::byte>> gather_from_all(Transport& transport,
                                                    std::span<const std::byte> mine) {
  const auto count = static_cast<std::size_t>(transport.processes());
  const auto me = static_cast<std::size_t>(transport.process());
  std::vector<std::uint64_t> sizes(count, 0);
  std::vector<std::vector<std::byte>> all(count);
  all[me].assign(mine.begin(), mine.end());
  sizes[me] = mine.size();
  // Round a ring, as what is given is small. First how long each one's is, then what it is.
  const auto from = static_cast<int>((me + count - 1) % count);
  const auto to = static_cast<int>((me + 1) % count);
  for (std::size_t step = 0; step + 1 < count; ++step) {
    const std::size_t out = (me + count - step) % count;
    const std::size_t in = (me + 2 * count - step - 1) % count;
    transport.receive(from, kExchangeTag, bytes_of(sizes[in]));
    transport.send(to, kExchangeTag, bytes_of(sizes[out]));
    finish(transport, 2);
    all[in].resize(static_cast<std::size_t>(sizes[in]));
    transport.receive(from, kExchangeTag, all[in]);
    transport.send(to, kExchangeTag, all[out]);
    finish(transport, 2);
  }
  return all;
}

}  // namespace espalier
