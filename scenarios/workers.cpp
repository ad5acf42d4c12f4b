// SPDX-License-Identifier: Apache-2.0
#include "scenarios/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"
#include "core/error.h"
#include "core/interruption.h"

namespace espalier {

namespace {

constexpr pid_t kEnded = 0;  // the process number of a worker that is no more

/// Whether all of it went through; not where the other side is gone.
bool send_all(int socket, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = recv(socket, bytes, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    bytes += received;
    size -= static_cast<std::size_t>(received);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const std::uint64_t size = text.size();
  return send_all(socket, &size, sizeof size) && send_all(socket, text.data(), size);
}

/// Nothing where the other side is gone.
std::optional<std::string> receive_text(int socket) {
  std::uint64_t size = 0;
  if (!receive_all(socket, &size, sizeof size)) return std::nullopt;
  std::string text(size, '\0');
  if (!receive_all(socket, text.data(), size)) return std::nullopt;
  return text;
}

/// The main loop of a worker, until there are no more requests. Must not return into the parent's
/// code.
[[noreturn]] void serve(int socket, const WorkerPool::Work& work) noexcept {
  while (const auto request = receive_text(socket)) {
    if (!send_text(socket, work(*request))) break;
  }
  _exit(0);  // what the parent has buffered is the parent's to write
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

[[noreturn]] void no_worker(int error) {
  throw Error(ErrorKind::runtime,
              fmt::format("cannot start a worker process: {}", std::strerror(error)),
              "--jobs 1 needs no workers");
}

}  // namespace

WorkerPool::WorkerPool(int workers, Work work, Tasks tasks)
    : work_(std::move(work)), tasks_(std::move(tasks)) {
  CHECK(workers >= 1);
  try {
    for (int i = 0; workers > 1 && i < workers; ++i) start();
  } catch (...) {
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  for (const Worker& worker : workers_) {
    close(worker.socket);  // which ends one that waits for work
    if (worker.busy && worker.process != kEnded) kill(worker.process, SIGKILL);
  }
  for (const Worker& worker : workers_) {
    if (worker.process == kEnded) continue;
    while (waitpid(worker.process, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

void WorkerPool::start() {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) no_worker(errno);
  auto activity = std::make_unique<SharedActivity>();
  const pid_t parent = getpid();
  // A worker that has not yet said that it ignores Ctrl-C must not answer it as its parent would.
  sigset_t interrupt;
  sigset_t before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  const pid_t process = fork();
  const int error = errno;
  // Ctrl-C reaches all processes; the one that asks speaks for them, and ends them.
  if (process == 0) std::signal(SIGINT, SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (process < 0) {
    close(sockets[0]);
    close(sockets[1]);
    no_worker(error);
  }
  if (process == 0) {
    // A worker must not outlive its parent, however that ended.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(sockets[0]);
    for (const Worker& other : workers_) close(other.socket);
    activity->publish();
    serve(sockets[1], work_);
  }
  close(sockets[1]);
  workers_.push_back({process, sockets[0], false, 0, std::move(activity)});
}

void WorkerPool::offer() {
  for (Worker& worker : workers_) {
    if (!worker.busy) give_next(worker);
  }
}

void WorkerPool::give_next(Worker& worker) {
  const auto task = tasks_.next(static_cast<std::size_t>(&worker - workers_.data()));
  if (!task) return;
  worker.busy = true;
  worker.task = *task;
  // That a worker is gone shows when its answer is awaited.
  send_text(worker.socket, tasks_.request(*task));
}

void WorkerPool::take(Worker& worker) {
  const std::size_t task = worker.task;
  const std::optional<std::string> answer = receive_text(worker.socket);
  if (!answer) {
    int status = 0;
    while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR) continue;
    worker.process = kEnded;
    throw Error(ErrorKind::runtime,
                fmt::format("a worker process ended ({}) before it answered {}",
                            describe_end(status), tasks_.label(task)),
                "--jobs 1 runs without workers");
  }
  worker.busy = false;
  give_next(worker);  // at work again while the answer is looked at
  tasks_.received(task, *answer);
}

void WorkerPool::wait(std::size_t task) {
  if (workers_.empty()) {
    tasks_.received(task, work_(tasks_.request(task)));
    return;
  }
  const auto with_task = std::ranges::find_if(
      workers_, [&](const Worker& worker) { return worker.busy && worker.task == task; });
  SharedActivity::show(with_task == workers_.end() ? nullptr : with_task->activity.get());
  std::vector<pollfd> sockets;
  for (const Worker& worker : workers_) {
    // A negative number is passed over.
    sockets.push_back({worker.busy ? worker.socket : -1, POLLIN, 0});
  }
  if (poll(sockets.data(), sockets.size(), -1) < 0) {
    CHECK(errno == EINTR);
    check_interruption();
    return;
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (sockets[i].revents != 0) take(workers_[i]);
  }
}

}  // namespace espalier
