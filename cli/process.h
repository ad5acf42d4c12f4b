// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace espalier {

/// For main, before anything is opened: where the process was started with standard input, output
/// or errors closed, their numbers are taken, so that nothing else is read or written in their
/// place. Reading and writing them fails as before.
void hold_standard_streams();

/// For main: Ctrl-C, a request to stop and a closed pipe end the
/// process at once and silently, with exit code 128 + signal (130 for
/// Ctrl-C), after removing the temporary of a file being written. Writing more than this process
/// may is an error like a full disk.
void end_cleanly_on_signals();

/// How the process was called, for lines to be pasted into a shell; "espalier" where nobody said.
const std::string& program_name();
void set_program_name(const char* name);

/// For verbs that simulate again and again: what one simulation frees, the next one takes. To give
/// memory back in between and to get it anew, page by page, costs up to a fifth of the CPU time.
void keep_freed_memory();

/// While it lives, Ctrl-C prints this text on standard error before the process ends.
class Farewell {
 public:
  explicit Farewell(std::string_view text);
  ~Farewell();
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
};

}  // namespace espalier
