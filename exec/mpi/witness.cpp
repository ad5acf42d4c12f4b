// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/witness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace espalier {
namespace {

constexpr char kTold = 't';
constexpr char kEnd = 'e';
constexpr char kWelcome = 'w';
constexpr char kFull = 'f';
/// For the witness to have seen a process, from when on it knows when that goes. A computer may be
/// so busy that it takes longer.
constexpr time_t kWelcome_s = 5;
/// For a process that cannot be watched to say who it is.
constexpr suseconds_t kRefusal_us = 200'000;
/// For the first process to come to a witness that has just begun; if all have been ended, the
/// launcher waits for the witness.
constexpr int kFirstComes_ms = 1000;
/// For a witness to begin, and for another one, should it have found nobody.
constexpr int kTries = 3000;
constexpr int kTriesOfOne = 1500;
constexpr useconds_t kBetweenTries_us = 1000;

struct Hello {
  int rank = 0;
  pid_t pid = 0;
};

struct Address {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

/// In the abstract namespace, which goes away with its last user. By the launcher, which a host has
/// one of for each run, and by the namespace of its number: containers may share a network.
Address address_of_run() {
  Address made;
  made.address.sun_family = AF_UNIX;
  char* const path = made.address.sun_path;
  struct stat numbers {};
  stat("/proc/self/ns/pid", &numbers);
  const int length =
      std::snprintf(path + 1, sizeof made.address.sun_path - 1, "espalier-witness-%u-%llu-%d",
                    getuid(), static_cast<unsigned long long>(numbers.st_ino), getppid());
  made.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                      static_cast<std::size_t>(length));
  return made;
}

const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.address);
}

/// What the witness knows. It is forked from a process that may have more threads, so it allocates
/// nothing.
struct Watched {
  static constexpr std::size_t kMost = 1 << 16;  // file descriptors, more than processes of a host

  std::array<Hello, kMost> hellos{};  ///< by file descriptor
  std::array<bool, kMost> has_left{};
  std::array<bool, kMost> has_come{};  ///< by rank
  int connected = 0;
  int refused = 0;  ///< for want of a file descriptor
  bool was_told = false;
  bool has_one_left = false;  ///< on its own, which may be why the launcher has ended others
  Hello first_lost{-1, 0};

  /// Reads what a process has to say, the first time answering with `answer`. False: it is gone.
  bool hear(int process, char answer) {
    const auto at = static_cast<std::size_t>(process);
    Hello& hello = hellos[at];
    if (hello.pid == 0) {
      if (recv(process, &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello)) {
        return false;
      }
      const auto rank = static_cast<std::size_t>(hello.rank);
      if (hello.rank >= 0 && rank < kMost) has_come[rank] = true;
      send(process, &answer, 1, MSG_NOSIGNAL);
      return true;
    }
    char word = 0;
    if (recv(process, &word, 1, 0) <= 0) return false;
    was_told = was_told || word == kTold;
    has_left[at] = has_left[at] || word == kEnd;
    has_one_left = has_one_left || word == kEnd;
    return true;
  }

  /// Of a process that there is no file descriptor for, but the one that is about to be closed.
  void refuse(int process) {
    const timeval limit{0, kRefusal_us};
    setsockopt(process, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (hear(process, kFull)) ++refused;
    hellos[static_cast<std::size_t>(process)] = {};
    close(process);
  }

  void lose(int process) {
    const auto at = static_cast<std::size_t>(process);
    const bool is_lost = !has_left[at] && hellos[at].pid != 0;
    if (is_lost && !has_one_left && first_lost.rank < 0) first_lost = hellos[at];
    hellos[at] = {};
    has_left[at] = false;
    close(process);
    --connected;
  }
};

/// A process needs a file descriptor here; by default, Linux allows 1024. Returns how many there
/// may be.
rlim_t raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t most = std::min<rlim_t>(limit.rlim_max, Watched::kMost);
  const rlimit raised{most, limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? most : limit.rlim_cur;
}

/// A file descriptor that is given up for a moment to tell a process that there is none for it.
int open_spare() { return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0); }

/// Until all are gone.
void watch(int listening, Watched& watched) {
  int spare = open_spare();
  const int events = epoll_create1(EPOLL_CLOEXEC);
  const auto add = [&](int socket) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket;
    return epoll_ctl(events, EPOLL_CTL_ADD, socket, &event) == 0;
  };
  if (events < 0 || !add(listening)) return;
  bool has_begun = false;
  while (!has_begun || watched.connected > 0) {
    // The system lists them in the order in which they became ready.
    std::array<epoll_event, 64> ready{};
    const int count = epoll_wait(events, ready.data(), static_cast<int>(ready.size()),
                                 has_begun ? -1 : kFirstComes_ms);
    if (count == 0) return;
    for (int i = 0; i < count; ++i) {
      const int socket = ready[static_cast<std::size_t>(i)].data.fd;
      if (socket != listening) {
        if (!watched.hear(socket, kWelcome)) watched.lose(socket);
        continue;
      }
      const auto accept_one = [&] { return accept4(listening, nullptr, nullptr, SOCK_CLOEXEC); };
      int process = accept_one();
      if (process < 0 && (errno == EMFILE || errno == ENFILE)) {
        close(spare);
        process = accept_one();
        if (process >= 0) watched.refuse(process);
        spare = open_spare();
        continue;
      }
      if (process < 0) {
        usleep(kRefusal_us);  // whoever waits there still does
        continue;
      }
      if (static_cast<std::size_t>(process) >= Watched::kMost || !add(process)) {
        close(process);
        continue;
      }
      has_begun = true;
      ++watched.connected;
    }
  }
}

void print(const char* text, int length) {
  [[maybe_unused]] const auto written =
      write(STDERR_FILENO, text, static_cast<std::size_t>(length));
}

/// Who was lost first; and, as long as not all have come, who has not: the launcher may have ended
/// the others because of it. `expected`: how many there are, 0 where not all are on this host;
/// `files`: how many may be open.
void testify(const Watched& watched, int expected, rlim_t files) {
  if (watched.first_lost.rank < 0 || watched.was_told) return;
  constexpr const char* kHead = "error: the program cannot go on without one of its processes\n";
  print(kHead, static_cast<int>(std::strlen(kHead)));
  std::array<char, 160> line{};
  // Where there are processes on other hosts, or some that were not watched, one of these may have
  // been the first.
  const bool knows_all = expected > 0 && watched.refused == 0;
  constexpr const char* kOrAnother = "or the launcher has ended it because of another one";
  const char* otherwise = knows_all ? "and the launcher has ended the others" : kOrAnother;
  for (int rank = 0; rank < expected && rank < static_cast<int>(Watched::kMost); ++rank) {
    if (watched.has_come[static_cast<std::size_t>(rank)]) continue;
    otherwise = kOrAnother;
    print(line.data(),
          std::snprintf(line.data(), line.size(), "  nothing is heard of rank %d\n", rank));
  }
  print(line.data(), std::snprintf(line.data(), line.size(),
                                   "  rank %d (process %d) has ended unexpectedly, %s\n",
                                   watched.first_lost.rank, watched.first_lost.pid, otherwise));
  if (watched.refused == 0) return;
  print(line.data(),
        std::snprintf(line.data(), line.size(),
                      "  %d of the processes could not be watched, as no more than %llu "
                      "files may be open at a time: raise 'ulimit -Hn'\n",
                      watched.refused, static_cast<unsigned long long>(files)));
}

/// The witness, in a process of its own.
[[noreturn]] void be_witness(const Address& address, int expected) {
  static Watched watched;
  setsid();
  prctl(PR_SET_NAME, "witness");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(signal, SIG_IGN);
  // Whoever reads what the run prints, or waits for the launcher's connections to be closed, has
  // nothing to wait for here but the words.
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  const rlim_t files = raise_file_limit();
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_first = listening >= 0 && bind(listening, generic(address), address.bytes) == 0 &&
                        listen(listening, SOMAXCONN) == 0;
  if (!is_first) _exit(0);
  watch(listening, watched);
  testify(watched, expected, files);
  _exit(0);
}

/// Whose parent is not this process, so that nobody has to collect it.
void start_witness(const Address& address, int expected) {
  const pid_t between = fork();
  if (between < 0) return;
  if (between == 0) {
    if (fork() == 0) be_witness(address, expected);
    _exit(0);
  }
  while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// `gone`: the witness was about to end, as another run's before this one.
enum class Answer : std::uint8_t { welcome, full, gone };

Answer greet(int witness, int rank) {
  const Hello hello{rank, getpid()};
  if (send(witness, &hello, sizeof hello, MSG_NOSIGNAL) < 0) return Answer::gone;
  const timeval limit{kWelcome_s, 0};
  setsockopt(witness, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char word = 0;
  const ssize_t heard = recv(witness, &word, 1, 0);
  if (heard == 0 || (heard < 0 && errno == ECONNRESET)) return Answer::gone;
  return word == kFull ? Answer::full : Answer::welcome;
}

}  // namespace

bool Witness::is_wanted() {
  std::ifstream file(fmt::format("/proc/{}/comm", getppid()));
  std::string name;
  return static_cast<bool>(std::getline(file, name)) && name.starts_with("hydra_pmi_proxy");
}

Witness::Witness(int rank, int expected) {
  const Address address = address_of_run();
  for (int tries = 0; tries < kTries && socket_ < 0; ++tries) {
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return;
    const bool is_there = connect(socket_, generic(address), address.bytes) == 0;
    const Answer answer = is_there ? greet(socket_, rank) : Answer::gone;
    if (answer == Answer::welcome) return;
    close(socket_);
    socket_ = -1;
    if (answer == Answer::full) return;
    if (tries % kTriesOfOne == 0) start_witness(address, expected);
    usleep(kBetweenTries_us);
  }
}

Witness::~Witness() {
  note_end();
  if (socket_ >= 0) close(socket_);
}

void Witness::note_told() {
  if (socket_ >= 0) send(socket_, &kTold, 1, MSG_NOSIGNAL);
}

void Witness::note_end() {
  if (socket_ >= 0) send(socket_, &kEnd, 1, MSG_NOSIGNAL);
}

}  // namespace espalier
