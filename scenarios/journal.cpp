// SPDX-License-Identifier: Apache-2.0
#include "scenarios/journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/words.h"

namespace espalier {

namespace {

const Json& head() {
  static const Json head = {{"schema", "espalier.journal/1"}};
  return head;
}

[[noreturn]] void refuse(const std::string& path, ErrorKind kind, const std::string& why,
                         const std::string& help = {}) {
  throw Error(kind, fmt::format("cannot keep answers in {}: {}", quote(path), why), help);
}

[[noreturn]] void not_a_journal(const std::string& path) {
  refuse(path, ErrorKind::input, "it is not a journal",
         "give --resume a file of its own; it is created if it does not exist");
}

[[noreturn]] void wrong_line(const std::string& path, int line) {
  throw Error(ErrorKind::input, {{"",
                                  "this line is not an answer of a journal",
                                  "delete the line; the answer will be found again",
                                  {path, line, 0}}});
}

}  // namespace

Journal::Journal(std::string path) : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file_ < 0) refuse(path_, ErrorKind::input, std::strerror(errno));
  struct stat status {};
  const bool is_file = fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  const bool is_mine = is_file && flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (is_mine) return;
  close(file_);
  refuse(path_, ErrorKind::input,
         is_file ? "another process is writing to it" : "it is not a regular file");
}

Journal::~Journal() { close(file_); }

void Journal::read(const std::function<void(const Json& key, const Json& record)>& visit) {
  std::ifstream text(path_, std::ios::binary);
  std::string line;
  off_t complete = 0;  // bytes of whole lines
  for (int number = 1; std::getline(text, line); ++number) {
    if (text.eof()) {  // there is no line end: it was cut short
      if (number == 1 && !(one_line(head()) + "\n").starts_with(line)) not_a_journal(path_);
      break;
    }
    const Json json = Json::parse(line, nullptr, false);
    if (number == 1) {
      if (!(json == head())) not_a_journal(path_);  // what is no JSON is not unequal either
    } else {
      try {
        visit(json.at("key"), json.at("record"));
      } catch (const Json::exception&) {
        wrong_line(path_, number);
      }
    }
    complete += static_cast<off_t>(line.size()) + 1;
  }
  if (ftruncate(file_, complete) != 0) refuse(path_, ErrorKind::input, std::strerror(errno));
  if (complete == 0) append(head());
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

void Journal::note(const Json& key, const Json& record) {
  append({{"key", key}, {"record", record}});
}

}  // namespace espalier
