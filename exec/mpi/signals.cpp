// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/signals.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "core/file.h"

namespace espalier {
namespace {

std::atomic<int> asked{0};
std::atomic<pid_t> heeding{0};               ///< the thread that heeds
std::atomic<void (*)(int)> ending{nullptr};  ///< set before SIGPIPE is taken
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free &&
              std::atomic<void (*)(int)>::is_always_lock_free);

pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// Only what is safe in a signal handler.
void note(int signal) {
  const bool holds_up = signal == SIGABRT || signal == SIGPIPE;
  const pid_t heeds = heeding.load();
  if (holds_up && (heeds == 0 || heeds == this_thread())) {
    if (signal == SIGPIPE) {
      ending.load()(128 + signal);
      _exit(128 + signal);
    }
    discard_unfinished_writes();
    std::signal(SIGABRT, SIG_DFL);  // abort raises it again
    return;
  }
  asked.store(signal);
  while (holds_up) pause();
}

void take(std::initializer_list<int> signals) {
  for (const int signal : signals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = note;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

const std::atomic<int>& asked_to_end() { return asked; }

void note_requests_to_end(void (*end)(int exit_code)) {
  ending.store(end);
  take({SIGINT, SIGTERM, SIGHUP, SIGPIPE});
}

void note_aborts() { take({SIGABRT}); }

void end_on_aborts() { signal(SIGABRT, SIG_DFL); }

HeedsRequests::HeedsRequests() { heeding.store(this_thread()); }

HeedsRequests::~HeedsRequests() {
  pid_t mine = this_thread();
  heeding.compare_exchange_strong(mine, 0);
}

}  // namespace espalier
