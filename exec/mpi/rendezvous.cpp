// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/words.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/reception.h"
#include "exec/mpi/told_elsewhere.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMagic = 0x65'73'70'61'6C'69'65'72;
constexpr std::uint64_t kMostBytes = 1 << 24;
/// For somebody who waits at the port to say something; others than rank 0 may say nothing.
constexpr auto kGreetingTime = std::chrono::seconds(2);
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr const char* kWhatTellsJobsApart =
    "jobs are told apart by WORLD_SIZE and TORCHELASTIC_RUN_ID or, where that says nothing, the "
    "command line";

/// What rank 0 says first, and who comes answers.
struct Greeting {
  std::uint64_t magic = kMagic;
  std::uint64_t job = 0;
  std::int32_t rank = 0;
  std::int32_t processes = 0;
  std::int64_t port = 0;  ///< at which that process waits for others
};

Greeting greeting_of(const RendezvousPlace& place, int port) {
  return {kMagic, place.job, place.rank, place.processes, port};
}

bool is_ours(const Greeting& greeting, const RendezvousPlace& place) {
  return greeting.job == place.job && greeting.processes == place.processes;
}

/// What processes say to each other that have found each other through rank 0.
struct Introduction {
  std::uint64_t token = 0;  ///< of the directory
  std::int64_t rank = 0;
};

template <class Plain>
std::vector<std::byte> bytes_of(const Plain& plain) {
  static_assert(std::has_unique_object_representations_v<Plain>);
  const auto bytes = std::as_bytes(std::span(&plain, 1));
  return {bytes.begin(), bytes.end()};
}

template <class Plain>
Plain plain_of(const std::vector<std::byte>& bytes) {
  Plain plain;
  Unpacking(bytes).get(plain);
  return plain;
}

template <class Plain>
bool send_plain(const Socket& socket, const Plain& plain, Deadline deadline) {
  return send_all(socket, bytes_of(plain), deadline);
}

template <class Plain>
std::optional<Plain> receive_plain(const Socket& socket, Deadline deadline) {
  Plain plain;
  if (!receive_all(socket, std::as_writable_bytes(std::span(&plain, 1)), deadline)) {
    return std::nullopt;
  }
  return plain;
}

bool send_packed(const Socket& socket, const Packed& packed, Deadline deadline) {
  return send_plain(socket, std::uint64_t{packed.bytes().size()}, deadline) &&
         send_all(socket, packed.bytes(), deadline);
}

std::optional<std::vector<std::byte>> receive_packed(const Socket& socket, Deadline deadline) {
  const auto size = receive_plain<std::uint64_t>(socket, deadline);
  if (!size || *size > kMostBytes) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(*size));
  if (!receive_all(socket, bytes, deadline)) return std::nullopt;
  return bytes;
}

/// Where each process can be reached.
struct Directory {
  std::string problem;                 ///< why there is no run; empty where there is one
  ErrorKind kind = ErrorKind::usage;   ///< of the problem
  std::uint64_t token = 0;             ///< by which those of this run know each other
  std::vector<std::string> addresses;  ///< by rank
  std::vector<int> ports;
};

Packed pack(const Directory& directory) {
  Packed packed;
  packed.put(directory.problem);
  packed.put(directory.kind);
  packed.put(directory.token);
  packed.put(directory.ports);
  for (const std::string& address : directory.addresses) packed.put(address);
  return packed;
}

Directory unpack_directory(const std::vector<std::byte>& bytes) {
  Directory directory;
  Unpacking unpacking(bytes);
  unpacking.get(directory.problem);
  unpacking.get(directory.kind);
  unpacking.get(directory.token);
  unpacking.get(directory.ports);
  directory.addresses.resize(directory.ports.size());
  for (std::string& address : directory.addresses) unpacking.get(address);
  return directory;
}

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

/// The other processes, as rank 0 meets them.
class Host {
 public:
  Host(const RendezvousPlace& place, Deadline deadline)
      : place_(place), deadline_(deadline), peers_(index(place.processes)) {}

  std::vector<Socket> meet() {
    const Socket listener = listen();
    directory_.ports.resize(peers_.size());
    directory_.addresses.resize(peers_.size());
    Reception reception(listener, bytes_of(greeting_of(place_, 0)), sizeof(Greeting));
    for (int missing = place_.processes - 1; missing > 0;) {
      std::optional<Newcomer> newcomer = reception.next(deadline_);
      if (!newcomer) throw_missing();
      missing -= take(std::move(*newcomer)) ? 1 : 0;
    }
    std::random_device random;
    directory_.token = (std::uint64_t{random()} << 32) | random();
    tell_all();
    return std::move(peers_);
  }

 private:
  Socket listen() const {
    bool is_forbidden = true;
    for (int port = place_.port; port < place_.port + kRendezvousPorts; ++port) {
      if (auto socket = listen_at(port)) return std::move(*socket);
      is_forbidden = is_forbidden && errno == EACCES;
    }
    const int last = place_.port + kRendezvousPorts - 1;
    if (is_forbidden) {
      throw Error(ErrorKind::usage,
                  fmt::format("rank 0 can't wait for the others: this user may not use ports {} to "
                              "{}",
                              place_.port, last),
                  "a MASTER_PORT from 1024 on");
    }
    throw Error(ErrorKind::runtime,
                fmt::format("rank 0 can't wait for the others: ports {} to {} are taken",
                            place_.port, last),
                "choose another MASTER_PORT");
  }

  /// Whether it is one more of the processes; others are sent away.
  bool take(Newcomer newcomer) {
    const auto who = plain_of<Greeting>(newcomer.words);
    if (who.magic != kMagic) return false;
    if (!is_ours(who, place_)) {
      strangers_.insert(fmt::format("rank {} of {}", who.rank, who.processes));
      return false;
    }
    if (who.rank <= 0 || who.rank >= place_.processes || peers_[index(who.rank)]) {
      refuse(newcomer.socket, fmt::format("two processes have RANK {}", who.rank));
    }
    directory_.addresses[index(who.rank)] = address_of_peer(newcomer.socket);
    directory_.ports[index(who.rank)] = static_cast<int>(who.port);
    peers_[index(who.rank)] = std::move(newcomer.socket);
    return true;
  }

  [[noreturn]] void refuse(const Socket& socket, const std::string& problem) {
    directory_.problem = problem;
    send_packed(socket, pack(directory_), deadline_);
    tell_all();
    throw Error(directory_.kind, problem);
  }

  void tell_all() const {
    for (const Socket& peer : peers_) {
      if (peer) send_packed(peer, pack(directory_), deadline_);
    }
  }

  [[noreturn]] void throw_missing() {
    std::vector<std::string> missing;
    for (int rank = 1; rank < place_.processes; ++rank) {
      if (!peers_[index(rank)]) missing.push_back(std::to_string(rank));
    }
    const char* const who = missing.size() == 1 ? "rank {} has" : "ranks {} have";
    directory_.problem = fmt::format(fmt::runtime(std::string(who) + " not come to {}:{} in time"),
                                     join(missing, ", "), place_.address, place_.port);
    if (!strangers_.empty()) {
      directory_.problem +=
          fmt::format("; {} came from another job: {}", *strangers_.begin(), kWhatTellsJobsApart);
    }
    directory_.kind = ErrorKind::runtime;
    deadline_ = Clock::now() + kGreetingTime;
    tell_all();
    throw Error(directory_.kind, directory_.problem);
  }

  const RendezvousPlace& place_;
  Deadline deadline_;
  std::vector<Socket> peers_;
  std::set<std::string> strangers_;  ///< who were sent away
  Directory directory_;
};

/// The other processes, as one of them meets them.
class Guest {
 public:
  Guest(const RendezvousPlace& place, Deadline deadline) : place_(place), deadline_(deadline) {}

  std::vector<Socket> meet() {
    std::optional<Socket> listener = listen_at(0);
    if (!listener) throw Error(ErrorKind::runtime, "there is no free port");
    std::vector<Socket> peers(index(place_.processes));
    peers[0] = find_host(greeting_of(place_, port_of(*listener)));
    const auto bytes = receive_packed(peers[0], deadline_ + kGreetingTime);
    if (!bytes) throw Error(ErrorKind::runtime, "rank 0 has gone before all processes had come");
    const Directory directory = unpack_directory(*bytes);
    if (!directory.problem.empty()) throw ToldElsewhere(directory.kind, directory.problem);
    for (int rank = 1; rank < place_.rank; ++rank) {
      peers[index(rank)] = connect(directory, rank);
    }
    Reception reception(*listener, {}, sizeof(Introduction));
    for (int left = place_.processes - 1 - place_.rank; left > 0;) {
      std::optional<Newcomer> newcomer = reception.next(deadline_);
      if (!newcomer) {
        throw Error(ErrorKind::runtime, "a process has gone before all were connected");
      }
      const auto who = plain_of<Introduction>(newcomer->words);
      const bool is_known = who.token == directory.token && who.rank > place_.rank &&
                            who.rank < place_.processes &&
                            !peers[static_cast<std::size_t>(who.rank)];
      if (!is_known) continue;
      peers[static_cast<std::size_t>(who.rank)] = std::move(newcomer->socket);
      --left;
    }
    return peers;
  }

 private:
  /// Rank 0 may come later than this one, and that of another job be at one of the ports. Each is
  /// told who this is: it may have to say who came in place of its own.
  Socket find_host(const Greeting& me) const {
    bool met_another = false;
    do {
      for (int port = place_.port; port < place_.port + kRendezvousPorts; ++port) {
        const Deadline soon = std::min(deadline_, Clock::now() + kGreetingTime);
        std::optional<Socket> socket = connect_to(place_.address, port, soon);
        if (!socket) continue;
        const auto greeting = receive_plain<Greeting>(*socket, soon);
        if (!greeting || greeting->magic != kMagic || !send_plain(*socket, me, soon)) continue;
        if (is_ours(*greeting, place_)) return std::move(*socket);
        met_another = true;
      }
      std::this_thread::sleep_for(kPause);
    } while (Clock::now() < deadline_);
    throw Error(
        ErrorKind::runtime,
        fmt::format(
            "rank {} has not found rank 0 at {}:{}{}", place_.rank, place_.address, place_.port,
            met_another ? fmt::format("; one of another job was there: {}", kWhatTellsJobsApart)
                        : ""));
  }

  Socket connect(const Directory& directory, int rank) const {
    const std::string& address = directory.addresses[index(rank)];
    const int port = directory.ports[index(rank)];
    std::optional<Socket> socket = connect_to(address, port, deadline_);
    if (!socket || !send_plain(*socket, Introduction{directory.token, place_.rank}, deadline_)) {
      throw Error(ErrorKind::runtime, fmt::format("rank {} can't connect to rank {} at {}:{}",
                                                  place_.rank, rank, address, port));
    }
    return std::move(*socket);
  }

  const RendezvousPlace& place_;
  const Deadline deadline_;
};

}  // namespace

std::vector<Socket> meet_at(const RendezvousPlace& place, std::chrono::milliseconds time) {
  const Deadline deadline = Clock::now() + time;
  return place.rank == 0 ? Host(place, deadline).meet() : Guest(place, deadline).meet();
}

}  // namespace espalier
