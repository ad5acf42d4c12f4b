// SPDX-License-Identifier: Apache-2.0
#include "cli/journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"
#include "core/words.h"

namespace espalier {

namespace {

constexpr const char* kSchema = "espalier.journal/1";

/// One line of JSON, whatever bytes names have.
std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

[[noreturn]] void refuse(const std::string& path, ErrorKind kind, const std::string& why,
                         const std::string& help = {}) {
  throw Error(kind, fmt::format("can't keep answers in {}: {}", quote(path), why), help);
}

}  // namespace

Journal::Journal(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) refuse(path_, ErrorKind::input, std::strerror(errno));
  try {
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      refuse(path_, ErrorKind::input, "another process is writing it");
    }
    read(read_file(path_));
  } catch (...) {
    close(file_);
    throw;
  }
}

Journal::~Journal() { close(file_); }

void Journal::read(const std::string& text) {
  const std::size_t complete = text.rfind('\n') + 1;  // 0 without any
  std::size_t number = 0;
  for (const std::string& line : split(std::string_view(text).substr(0, complete), '\n')) {
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    const bool is_head = number++ == 0;
    if (!json.is_object() || (is_head ? json.value("schema", "") != kSchema
                                      : !json.contains("key") || !json.contains("record"))) {
      refuse(path_, ErrorKind::input, fmt::format("line {} is none of a journal's", number),
             "name a file of its own; --resume makes it");
    }
    if (!is_head) records_[one_line(json["key"])] = json["record"];
  }
  if (number == 0 && !text.empty()) {
    refuse(path_, ErrorKind::input, "it is not a journal",
           "name a file of its own; --resume makes it");
  }
  if (ftruncate(file_, static_cast<off_t>(complete)) != 0) {
    refuse(path_, ErrorKind::input, std::strerror(errno));
  }
  if (number == 0) append({{"schema", kSchema}});
}

void Journal::append(const Json& json) {
  const std::string line = one_line(json) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(path_, ErrorKind::runtime, std::strerror(errno));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

const Json* Journal::find(const Json& key) const {
  const auto known = records_.find(one_line(key));
  return known == records_.end() ? nullptr : &known->second;
}

void Journal::note(const Json& key, Json record) {
  append({{"key", key}, {"record", record}});
  records_[one_line(key)] = std::move(record);
}

}  // namespace espalier
