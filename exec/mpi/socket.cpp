// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace espalier {
namespace {

constexpr int kWaiting = 1024;  // of connections that nobody has accepted yet

/// Whether something happened before the deadline.
bool wait_until(const Socket& socket, short events, Deadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd one{socket.number(), events, 0};
    const int count = poll(&one, 1, static_cast<int>(std::min<long>(left.count(), 1000)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

std::string numbers_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  // Of IPv4 through a socket of IPv6.
  const std::string name = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  return name.starts_with(kMapped) ? name.substr(kMapped.size()) : name;
}

template <class Get>
std::string address_by(const Socket& socket, Get&& get) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  return get(socket.number(), generic, &length) == 0 ? numbers_of(generic, length) : std::string();
}

Socket new_socket(int family) {
  return Socket(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void send_at_once(const Socket& socket) {
  const int yes = 1;
  setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// Whether that family can be used here at all.
template <class Address>
std::optional<Socket> listen_in(int family, Address address, bool& is_taken) {
  Socket socket = new_socket(family);
  if (!socket) return std::nullopt;
  const int yes = 1;
  const int no = 0;
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (family == AF_INET6) {
    setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.number(), kWaiting) != 0) {
    const int why = errno;
    is_taken = is_taken || why == EADDRINUSE || why == EACCES;
    socket.close();
    errno = why;
    return std::nullopt;
  }
  return socket;
}

}  // namespace

void Socket::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

std::optional<Socket> listen_at(int port) {
  bool is_taken = false;
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_any;
  six.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (auto socket = listen_in(AF_INET6, six, is_taken)) return socket;
  if (is_taken) return std::nullopt;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_ANY);
  four.sin_port = six.sin6_port;
  if (auto socket = listen_in(AF_INET, four, is_taken)) return socket;
  if (is_taken) return std::nullopt;
  throw Error(ErrorKind::runtime, fmt::format("sockets of TCP can't be used: {}", strerror(errno)));
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length);
  // At the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string address_of_peer(const Socket& socket) { return address_by(socket, getpeername); }

std::string address_of_this_end(const Socket& socket) { return address_by(socket, getsockname); }

std::vector<std::string> addresses_of_this_host() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  std::vector<std::string> four;
  std::vector<std::string> six;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    const bool is_usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (one->ifa_addr == nullptr || !is_usable) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      four.push_back(numbers_of(one->ifa_addr, sizeof(sockaddr_in)));
    } else if (one->ifa_addr->sa_family == AF_INET6) {
      const auto& address = *reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      // Those of a single link mean nothing elsewhere.
      if (!IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) {
        six.push_back(numbers_of(one->ifa_addr, sizeof(sockaddr_in6)));
      }
    }
  }
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

std::optional<Socket> connect_to(const std::string& host, int port, Deadline deadline) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &all) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(all, freeaddrinfo);
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    Socket socket = new_socket(one->ai_family);
    if (!socket) continue;
    if (connect(socket.number(), one->ai_addr, one->ai_addrlen) != 0) {
      if (errno != EINPROGRESS || !wait_until(socket, POLLOUT, deadline)) continue;
      int error = 0;
      socklen_t length = sizeof error;
      getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) continue;
    }
    send_at_once(socket);
    return socket;
  }
  return std::nullopt;
}

std::optional<Socket> accept_at(const Socket& listener, Deadline deadline) {
  for (;;) {
    Socket socket(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      send_at_once(socket);
      return socket;
    }
    // Who came may be gone again.
    if (!is_for_later(errno) && errno != ECONNABORTED) return std::nullopt;
    if (!wait_until(listener, POLLIN, deadline)) return std::nullopt;
  }
}

bool send_all(const Socket& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto count = send_some(socket, bytes, {}, 0);
    if (!count || (*count == 0 && !wait_until(socket, POLLOUT, deadline))) return false;
    bytes = bytes.subspan(*count);
  }
  return true;
}

bool receive_all(const Socket& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto count = receive_some(socket, bytes);
    if (!count || (*count == 0 && !wait_until(socket, POLLIN, deadline))) return false;
    bytes = bytes.subspan(*count);
  }
  return true;
}

std::optional<std::size_t> send_some(const Socket& socket, std::span<const std::byte> first,
                                     std::span<const std::byte> second, std::size_t sent) {
  const std::size_t of_first = std::min(sent, first.size());
  std::array<iovec, 2> parts{};
  const auto part = [](std::span<const std::byte> bytes) {
    return iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};  // which is only read
  };
  parts[0] = part(first.subspan(of_first));
  parts[1] = part(second.subspan(sent - of_first));
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t count = sendmsg(socket.number(), &message, MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  return is_for_later(errno) ? std::optional<std::size_t>(0) : std::nullopt;
}

std::optional<std::size_t> receive_some(const Socket& socket, std::span<std::byte> bytes) {
  const ssize_t count = recv(socket.number(), bytes.data(), bytes.size(), 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0 && !bytes.empty()) return std::nullopt;
  return count == 0 || is_for_later(errno) ? std::optional<std::size_t>(0) : std::nullopt;
}

}  // namespace espalier
