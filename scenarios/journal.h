// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "scenarios/records.h"

namespace espalier {

/// What an interrupted sweep had found out: a file of records by key, a line of JSON each, written
/// as they come. A last line that was cut short is dropped.
class Journal {
 public:
  /// Opens the file, or makes it. Throws Error{input} when it can't, when it is no regular file or
  /// not a journal, and when another process is writing it.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Calls `visit` for every record, in the order of their writing. Throws Error{input} with its
  /// line for what is no record, which `visit` says by throwing a nlohmann::json::exception.
  void read(const std::function<void(const Json& key, const Json& record)>& visit);

  /// Throws Error{runtime} when it can't be written. \pre was read
  void note(const Json& key, const Json& record);

 private:
  void append(const Json& json);

  std::string path_;
  int file_ = -1;
};

}  // namespace espalier
