// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace espalier {

/// The whole file ("-" is standard input) without the byte order mark of UTF-8. Throws Error{input}
/// when it can't be read, is UTF-16 or is larger than 1 GiB.
std::string read_file(const std::string& path);

/// Writes to a temporary beside `path` and renames it, so that a reader, a crash or Ctrl-C never
/// sees half a file ("-" writes to standard output; devices and pipes are written directly).
/// The new file has the mode of the old one. Throws Error{input} if it cannot be opened
/// and Error{runtime} if it cannot be written completely; an old file is then unchanged.
void write_file(const std::string& path, std::string_view content);

/// Opens the file as `write_file` would and throws what it would throw now, so that a long run can
/// be refused before it begins. Leaves nothing behind, even where the process is killed meanwhile
/// (if the file system has files without names), and an older file as it is.
void require_writable(const std::string& path);

/// Files that `read_file` has read while one of these lives stay as they are: `write_file` and
/// `require_writable` throw Error{input} rather than replace one. Results in place of what they
/// were found from are a slip of the hand.
class KeepInputs {
 public:
  KeepInputs();
  ~KeepInputs();
  KeepInputs(const KeepInputs&) = delete;
  KeepInputs& operator=(const KeepInputs&) = delete;
};

/// Removes the temporary of a write in progress. Safe to call from a signal handler.
void discard_unfinished_writes() noexcept;

}  // namespace espalier
