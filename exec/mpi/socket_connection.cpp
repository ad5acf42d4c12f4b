// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "core/error.h"
#include "exec/mpi/connection.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/rendezvous.h"
#include "exec/mpi/socket_transport.h"
#include "exec/mpi/this_computer.h"

namespace espalier {
namespace {

/// For who waits for the others to say which are missing, before the start is given up.
constexpr double kTimeToTell_s = 5;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

[[noreturn]] void throw_no_memory(const char* what) {
  throw Error(ErrorKind::runtime, fmt::format("processes of this host can't share memory: {}: {}",
                                              what, strerror(errno)));
}

/// Equal for processes that can share memory and see each other: of one host and one container.
std::string name_of_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::array<char, 64> processes{};
  [[maybe_unused]] const auto size =
      readlink("/proc/self/ns/pid", processes.data(), processes.size() - 1);
  return fmt::format("{} {} {}", name.data(), id_of_computer(), processes.data());
}

/// Of this process's command line, but for its first word, which may be another path elsewhere.
std::uint64_t hash_of_arguments() {
  std::ifstream file("/proc/self/cmdline");
  std::string words{std::istreambuf_iterator<char>(file), {}};
  return hash_bytes(words.substr(std::min(words.find('\0'), words.size())));
}

class SocketConnection : public Connection {
 public:
  SocketConnection(const RendezvousPlace& place, double start_time_s)
      : transport_(place.rank, meet_at(place, milliseconds(start_time_s - kTimeToTell_s))) {
    Packed mine;
    mine.put(name_of_host());
    mine.put(getpid());
    const auto all = gather_from_all(transport_, mine.bytes());
    std::vector<std::string> hosts(all.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      Unpacking unpacking(all[rank]);
      unpacking.get(hosts[rank]);
      pid_t pid = 0;
      unpacking.get(pid);
      pids_.push_back(pid);
    }
    const auto me = static_cast<std::size_t>(place.rank);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (hosts[rank] == hosts[me]) here_.push_back(static_cast<int>(rank));
    }
  }
  ~SocketConnection() override {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  Transport& transport() override { return transport_; }
  const std::vector<int>& here() const override { return here_; }

  /// A file without a name, which the others open as one of the process that has made it.
  std::byte* share(std::size_t bytes) override {
    const int first = here_.front();
    int file = -1;
    if (transport_.process() == first) {
      file = memfd_create("espalier", MFD_CLOEXEC);
      if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) throw_no_memory("memfd");
    }
    Packed mine;
    mine.put(file);
    const auto all = gather_from_all(transport_, mine.bytes());
    if (transport_.process() != first) {
      int number = -1;
      Unpacking(all[static_cast<std::size_t>(first)]).get(number);
      const pid_t owner = pids_[static_cast<std::size_t>(first)];
      file = open(fmt::format("/proc/{}/fd/{}", owner, number).c_str(), O_RDWR | O_CLOEXEC);
      if (file < 0) throw_no_memory("open");
    }
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) throw_no_memory("mmap");
    meet(transport_);  // before its owner closes the file
    ::close(file);
    memory_ = static_cast<std::byte*>(memory);
    bytes_ = bytes;
    return memory_;
  }

  void close() override {}

 private:
  SocketTransport transport_;
  std::vector<pid_t> pids_;  ///< by process
  std::vector<int> here_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Connection> connect_by_sockets(const RendezvousPlace& place, double start_time_s) {
  RendezvousPlace here = place;
  if (here.job == 0) here.job = hash_of_arguments();
  return std::make_unique<SocketConnection>(here, start_time_s);
}

}  // namespace espalier
