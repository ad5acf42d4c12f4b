// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

/// A TCP connection, or what waits for some; closed with the object. All of them belong to this
/// process alone (close-on-exec).
class Socket {
 public:
  Socket() = default;
  explicit Socket(int number) : number_(number) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void close();

 private:
  int number_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;

/// Waits for connections at that port of every address of this host, 0: any that is free. Nothing
/// where the port is taken or not for this user: errno says which. Throws Error{runtime} where
/// there are no sockets at all.
std::optional<Socket> listen_at(int port);

/// The port at which it waits.
int port_of(const Socket& socket);

/// The address of the other end, or of this one, as numbers.
std::string address_of_peer(const Socket& socket);
std::string address_of_this_end(const Socket& socket);

/// The addresses at which others may reach this host; none where it is on its own.
std::vector<std::string> addresses_of_this_host();

/// Nothing where nobody is there, nobody answers before the deadline, or the name is not known.
std::optional<Socket> connect_to(const std::string& host, int port, Deadline deadline);
/// The next who comes; nothing where nobody does.
std::optional<Socket> accept_at(const Socket& listener, Deadline deadline);

/// All of the bytes; false where the other end is gone or the deadline has passed.
bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline);
bool receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline);

/// As much as goes through at once: bytes, 0 where none do now, nothing where the other end is
/// gone. Sends what follows the first `sent` bytes of both together.
std::optional<std::size_t> send_some(const Socket& socket, std::span<const std::byte> first,
                                     std::span<const std::byte> second, std::size_t sent);
std::optional<std::size_t> receive_some(const Socket& socket, std::span<std::byte> bytes);

}  // namespace espalier
