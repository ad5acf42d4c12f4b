// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace espalier {

/// What this process has been sent to end with, 0 as long as it has not.
const std::atomic<int>& asked_to_end();

/// From now on, a request to end (SIGINT, SIGTERM, SIGHUP) is noted in place of ending the process,
/// for whoever heeds it. So is a closed pipe (SIGPIPE), which holds up the thread that writes;
/// where nobody heeds, or that thread itself writes, `end` ends the process, which has to be safe
/// in a signal handler. A signal that the parent chose to ignore (nohup) stays ignored.
void note_requests_to_end(void (*end)(int exit_code));

/// The same for SIGABRT, which holds up the thread that aborts: a library under MPI that finds a
/// process gone may abort, and must not before it has been told which one. To be called when MPI,
/// which has a handler of its own, has started.
void note_aborts();
void end_on_aborts();

/// As long as it lives, its thread heeds `asked_to_end`: it is never held up, and aborts as usual.
/// Of several, the latest one; without any, nothing is held up.
class HeedsRequests {
 public:
  HeedsRequests();
  ~HeedsRequests();
  HeedsRequests(const HeedsRequests&) = delete;
  HeedsRequests& operator=(const HeedsRequests&) = delete;
};

}  // namespace espalier
