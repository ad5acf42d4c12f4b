// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "cli/json.h"

namespace espalier {

/// What an interrupted sweep had found out: a file of records by key, a line of JSON each, written
/// as they come. A last line that was cut short is dropped.
class Journal {
 public:
  /// Reads the file, or makes it. Throws Error{input} when it can't, when the file is something
  /// else, and when another process is writing it.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  std::size_t size() const { return records_.size(); }
  /// What was noted for the key; null when nothing was.
  const Json* find(const Json& key) const;
  /// Throws Error{runtime} when it can't be written.
  void note(const Json& key, Json record);

 private:
  void append(const Json& line);
  void read(const std::string& text);

  std::string path_;
  int file_ = -1;
  std::unordered_map<std::string, Json> records_;  ///< by the key as text
};

}  // namespace espalier
