// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "exec/mpi/socket.h"

namespace espalier {

/// Who has come, and what it has said.
struct Newcomer {
  Socket socket;
  std::vector<std::byte> words;
};

/// Lets in whoever comes to a port and says so many bytes, which everybody has the same short time
/// for: who says nothing holds up nobody.
class Reception {
 public:
  /// `greeting`: what everybody is told first, short enough to be sent at once. The listener must
  /// outlive it.
  Reception(const Socket& listener, std::vector<std::byte> greeting, std::size_t word_bytes)
      : listener_(listener), greeting_(std::move(greeting)), word_bytes_(word_bytes) {}

  /// The next who has said all; nothing where nobody has before the deadline, or the listener has
  /// failed.
  std::optional<Newcomer> next(Deadline deadline);

 private:
  struct Visitor {
    Socket socket;
    std::vector<std::byte> words;
    std::size_t said = 0;
    Deadline patience;
  };
  void let_in();
  std::optional<Newcomer> hear();
  void wait(Deadline deadline) const;

  const Socket& listener_;
  const std::vector<std::byte> greeting_;
  const std::size_t word_bytes_;
  std::vector<Visitor> visitors_;
};

}  // namespace espalier
