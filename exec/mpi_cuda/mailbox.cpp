// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/mailbox.h"

#include <utility>

namespace espalier::cuda {

void Mailbox::send(int to, int tag, std::span<const std::byte> bytes, Then then) {
  expect(transport_.send(to, tag, bytes), std::move(then));
}

void Mailbox::receive(int from, int tag, std::span<std::byte> bytes, Then then) {
  expect(transport_.receive(from, tag, bytes), std::move(then));
}

void Mailbox::expect(MessageId message, Then then) {
  if (message >= then_.size()) then_.resize(message + 1);
  then_[message] = std::move(then);
}

void Mailbox::advance() {
  over_.clear();
  transport_.test(over_);
  for (const MessageId message : over_) {
    // Its number may be given to what this one leads to.
    const Then then = std::exchange(then_[message], nullptr);
    then();
  }
}

}  // namespace espalier::cuda
