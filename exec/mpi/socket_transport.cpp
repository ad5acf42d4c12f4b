// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/socket_transport.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/check.h"

namespace espalier {
namespace {

// So that a link on which much arrives does not keep the others from being served.
constexpr int kFramesAtATime = 16;
/// Whatever a process waits for comes through its sockets.
constexpr auto kLongestWait = std::chrono::milliseconds(10);

template <class Object>
std::span<const std::byte> bytes_of(const Object& object) {
  return std::as_bytes(std::span(&object, 1));
}

/// The first of that tag, taken out.
template <class Value>
std::optional<Value> take(std::multimap<int, Value>& all, int tag) {
  const auto found = all.lower_bound(tag);
  if (found == all.end() || found->first != tag) return std::nullopt;
  std::optional<Value> value(std::move(found->second));
  all.erase(found);
  return value;
}

}  // namespace

SocketTransport::SocketTransport(int process, std::vector<Socket> peers)
    : process_(process), links_(peers.size()), polled_(peers.size()) {
  for (std::size_t peer = 0; peer < peers.size(); ++peer) {
    links_[peer].socket = std::move(peers[peer]);
  }
}

MessageId SocketTransport::new_message() {
  if (free_.empty()) return next_++;
  const MessageId message = free_.back();
  free_.pop_back();
  return message;
}

void SocketTransport::end(MessageId message) { over_.push_back(message); }

MessageId SocketTransport::send(int to, int tag, std::span<const std::byte> bytes) {
  const MessageId message = new_message();
  Link& link = links_[static_cast<std::size_t>(to)];
  // A message of the tag that waits stays before this one.
  if (link.waiting.contains(tag)) {
    link.waiting.emplace(tag, Sent{bytes, message});
    return message;
  }
  if (bytes.size() > kShortBytes) {
    const auto invited = link.invitations.find(tag);
    if (invited == link.invitations.end()) {
      link.waiting.emplace(tag, Sent{bytes, message});
      return message;
    }
    if (--invited->second == 0) link.invitations.erase(invited);
  }
  put_frame(link, tag, {bytes, message});
  send_frames(link);
  return message;
}

MessageId SocketTransport::receive(int from, int tag, std::span<std::byte> bytes) {
  const MessageId message = new_message();
  Link& link = links_[static_cast<std::size_t>(from)];
  if (const auto early = take(link.early, tag)) {
    CHECK(early->size() == bytes.size());
    std::ranges::copy(*early, bytes.begin());
    end(message);
    return message;
  }
  link.expected.emplace(tag, Expected{bytes, message});
  if (bytes.size() > kShortBytes) {
    link.frames.push_back({{Kind::invitation, tag, bytes.size()}, {}, {}});
    send_frames(link);
  }
  return message;
}

/// How many are ready, as `polled_` then says.
int SocketTransport::poll_links(std::chrono::milliseconds time) {
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    const Link& link = links_[peer];
    const int events = POLLIN | (link.frames.empty() ? 0 : POLLOUT);
    polled_[peer] = {link.socket.number(), static_cast<short>(events), 0};
  }
  return poll(polled_.data(), polled_.size(), static_cast<int>(time.count()));
}

/// Whoever sends wakes this process up, which it gets the processor for sooner than after yielding.
void SocketTransport::give_way() {
  if (over_.empty()) poll_links(kLongestWait);
}

void SocketTransport::test(std::vector<MessageId>& over) {
  if (poll_links({}) > 0) {
    for (std::size_t peer = 0; peer < links_.size(); ++peer) {
      const short events = polled_[peer].revents;
      if ((events & POLLOUT) != 0) send_frames(links_[peer]);
      if ((events & ~POLLOUT) != 0) receive_frames(links_[peer]);
    }
  }
  over.insert(over.end(), over_.begin(), over_.end());
  free_.insert(free_.end(), over_.begin(), over_.end());
  over_.clear();
}

void SocketTransport::send_frames(Link& link) {
  while (link.socket && !link.frames.empty()) {
    Frame& frame = link.frames.front();
    const auto count = send_some(link.socket, bytes_of(frame.header), frame.bytes, frame.sent);
    if (!count) link.socket.close();
    if (!count || *count == 0) return;
    frame.sent += *count;
    if (frame.sent < sizeof frame.header + frame.bytes.size()) continue;
    if (frame.message) end(*frame.message);
    link.frames.pop_front();
  }
}

/// Whether all of it is here now.
bool SocketTransport::receive_into(Link& link, std::span<std::byte> bytes, std::size_t& received) {
  while (received < bytes.size()) {
    const auto count = receive_some(link.socket, bytes.subspan(received));
    if (!count) link.socket.close();
    if (!count || *count == 0) return false;
    received += *count;
  }
  return true;
}

void SocketTransport::receive_frames(Link& link) {
  for (int frame = 0; frame < kFramesAtATime && link.socket; ++frame) {
    if (link.header_bytes < sizeof link.header) {
      const auto header = std::as_writable_bytes(std::span(&link.header, 1));
      if (!receive_into(link, header, link.header_bytes)) return;
      if (link.header.kind == Kind::message) begin_message(link);
    }
    std::size_t received = 0;
    const bool is_whole = receive_into(link, link.rest, received);
    link.rest = link.rest.subspan(received);
    if (!is_whole) return;
    link.header_bytes = 0;
    if (link.header.kind == Kind::message) {
      end_message(link);
    } else {
      take_invitation(link, link.header.tag);
    }
  }
}

void SocketTransport::begin_message(Link& link) {
  if (const auto expected = take(link.expected, link.header.tag)) {
    CHECK(expected->bytes.size() == link.header.bytes);
    link.rest = expected->bytes;
    link.message = expected->message;
    return;
  }
  CHECK(link.header.bytes <= kShortBytes);
  link.unexpected.resize(static_cast<std::size_t>(link.header.bytes));
  link.rest = link.unexpected;
}

void SocketTransport::end_message(Link& link) {
  if (link.message) {
    end(*std::exchange(link.message, std::nullopt));
    return;
  }
  // It may have come to be expected while it arrived.
  if (const auto expected = take(link.expected, link.header.tag)) {
    CHECK(expected->bytes.size() == link.unexpected.size());
    std::ranges::copy(link.unexpected, expected->bytes.begin());
    end(expected->message);
  } else {
    link.early.emplace(link.header.tag, std::move(link.unexpected));
  }
  link.unexpected.clear();
}

void SocketTransport::put_frame(Link& link, int tag, const Sent& sent) {
  link.frames.push_back({{Kind::message, tag, sent.bytes.size()}, sent.bytes, sent.message});
}

void SocketTransport::take_invitation(Link& link, int tag) {
  const auto [first, last] = link.waiting.equal_range(tag);
  if (first == last) {
    ++link.invitations[tag];
    return;
  }
  // And the short ones behind it, up to the next that needs an invitation.
  auto next = first;
  do {
    put_frame(link, tag, next->second);
    ++next;
  } while (next != last && next->second.bytes.size() <= kShortBytes);
  link.waiting.erase(first, next);
  send_frames(link);
}

void SocketTransport::abort(int exit_code) { std::_Exit(exit_code); }

}  // namespace espalier
