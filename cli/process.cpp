// SPDX-License-Identifier: Apache-2.0
#include "cli/process.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/file.h"

namespace espalier {

namespace {

// A signal handler can't lock: the text is complete whenever the length is not 0.
std::array<char, 4096> farewell_text;
std::atomic<std::size_t> farewell_size = 0;

/// Only what is safe in a signal handler.
void end(int signal) {
  discard_unfinished_writes();
  if (signal == SIGINT && isatty(STDERR_FILENO) == 1) {
    constexpr std::string_view kEraseProgress = "\r\033[K";
    [[maybe_unused]] const auto written =
        write(STDERR_FILENO, kEraseProgress.data(), kEraseProgress.size());
  }
  if (const std::size_t size = farewell_size; signal == SIGINT && size > 0) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, farewell_text.data(), size);
  }
  _exit(128 + signal);
}

}  // namespace

namespace {
std::string& called_as() {
  static std::string name = "espalier";
  return name;
}
}  // namespace

const std::string& program_name() { return called_as(); }

void set_program_name(const char* name) {
  if (name != nullptr && *name != '\0') called_as() = name;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kMostKept = 512 << 20;
  // Older ones refuse that much: with the second limit alone, more memory would be mapped anew.
  if (mallopt(M_MMAP_THRESHOLD, kMostKept) == 1) mallopt(M_TRIM_THRESHOLD, kMostKept);
#endif
}

Farewell::Farewell(std::string_view text) {
  const std::size_t size = std::min(text.size(), farewell_text.size() - 1);
  std::copy_n(text.begin(), size, farewell_text.begin());
  farewell_text[size] = '\n';
  farewell_size = size + 1;
}

Farewell::~Farewell() { farewell_size = 0; }

void hold_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) != -1) continue;
    // The lowest number that is free; for the wrong direction.
    open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void end_cleanly_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction action {};
    // A signal the parent chose to ignore (nohup) stays ignored.
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = end;
    sigaction(signal, &action, nullptr);
  }
  // A file larger than this process may write (ulimit -f) is an error of the write, which then
  // removes its temporary.
  signal(SIGXFSZ, SIG_IGN);
}

}  // namespace espalier
