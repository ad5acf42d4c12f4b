// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/records.h"

namespace espalier {

/// What an interrupted sweep had found out: a file of records by key, a line of JSON each with a
/// checksum, written as they come. A last line that was cut short is dropped, and lines that are
/// damaged are left out and named.
class Journal {
 public:
  /// Called with every record, in the order of their writing; says that one is none by throwing
  /// NoRecord or a nlohmann::json::exception.
  using Visit = std::function<void(const Json& key, const Json& record)>;

  /// Opens the file, or makes it. Throws Error{input} when it can't, when it is no regular file or
  /// not a journal, and when another process is writing it.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// The lines that are damaged. Throws Error{input} when the file is no journal.
  std::vector<Diagnostic> read(const Visit& visit);

  /// Reads one that is not to be written. Throws Error{input} when there is none.
  static std::vector<Diagnostic> read_only(const std::string& path, const Visit& visit);

  /// Throws Error{runtime} when it can't be written. \pre was read
  void note(const Json& key, const Json& record);

 private:
  void append(const Json& json);

  std::string path_;
  int file_ = -1;
};

}  // namespace espalier
