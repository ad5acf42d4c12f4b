// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "exec/mpi/socket.h"
#include "exec/mpi/transport.h"

namespace espalier {

/// Messages over a TCP connection between each two processes.
///
/// Short messages are sent as they come, and kept where nobody receives them yet. Longer ones are
/// sent when the receiver says that it has a place for them, as it does when it begins to receive,
/// which is usually long before: they are never copied, and nothing that is not wanted yet
/// stands in the way of what is.
///
/// Where a connection ends, its messages are never over: who watches the processes knows which one
/// is missing.
class SocketTransport : public Transport {
 public:
  /// Up to so many bytes a message is short.
  static constexpr std::size_t kShortBytes = 16 << 10;

  /// `peers`: connections by process, in which nothing is under way; the own one is not used.
  SocketTransport(int process, std::vector<Socket> peers);

  int process() const override { return process_; }
  int processes() const override { return static_cast<int>(links_.size()); }
  MessageId send(int to, int tag, std::span<const std::byte> bytes) override;
  MessageId receive(int from, int tag, std::span<std::byte> bytes) override;
  void test(std::vector<MessageId>& over) override;
  void give_way() override;
  [[noreturn]] void abort(int exit_code) override;

 private:
  /// `invitation`: there is a place for the next message of that tag.
  enum class Kind : std::uint32_t { message, invitation };
  struct Header {
    Kind kind = Kind::message;
    std::int32_t tag = 0;
    std::uint64_t bytes = 0;
  };
  struct Frame {
    Header header;
    std::span<const std::byte> bytes;
    std::optional<MessageId> message;
    std::size_t sent = 0;  ///< of both
  };
  struct Sent {
    std::span<const std::byte> bytes;
    MessageId message = 0;
  };
  struct Expected {
    std::span<std::byte> bytes;
    MessageId message = 0;
  };
  /// Messages of equal tags are in the order in which they came.
  struct Link {
    Socket socket;
    std::deque<Frame> frames;  ///< to be sent
    /// Long messages without an invitation, and short ones that must not overtake them.
    std::multimap<int, Sent> waiting;
    std::multimap<int, Expected> expected;
    std::multimap<int, std::vector<std::byte>> early;  ///< short messages that nobody expected
    std::map<int, int> invitations;                    ///< by tag, to messages not sent yet
    Header header;                                     ///< of what is being received
    std::size_t header_bytes = 0;                      ///< of it that are here
    std::vector<std::byte> unexpected;
    std::span<std::byte> rest;  ///< of the message, still to come
    std::optional<MessageId> message;
  };

  MessageId new_message();
  void end(MessageId message);
  void put_frame(Link& link, int tag, const Sent& sent);
  int poll_links(std::chrono::milliseconds time);
  void send_frames(Link& link);
  void receive_frames(Link& link);
  bool receive_into(Link& link, std::span<std::byte> bytes, std::size_t& received);
  void begin_message(Link& link);
  void end_message(Link& link);
  void take_invitation(Link& link, int tag);

  const int process_;
  std::vector<Link> links_;  ///< by process
  std::vector<pollfd> polled_;
  std::vector<MessageId> over_;
  std::vector<MessageId> free_;  ///< numbers that are not in use
  MessageId next_ = 0;
};

}  // namespace espalier
