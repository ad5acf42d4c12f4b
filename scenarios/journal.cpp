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
  static const Json head = {{"schema", "espalier.journal/5"}};
  return head;
}

[[noreturn]] void refuse(const std::string& path, ErrorKind kind, const std::string& why,
                         const std::string& help = {}) {
  throw Error(kind, fmt::format("cannot keep answers in {}: {}", quote(path), why), help);
}

Diagnostic damaged_line(const std::string& path, int line) {
  return {"",
          "this line is damaged: its answer is found again",
          "delete the line to be rid of this warning",
          {path, line, 0}};
}

[[noreturn]] void not_a_journal(const std::string& path) {
  refuse(path, ErrorKind::input, "it is not a journal of this version",
         "give --resume a file of its own; it is created if it does not exist");
}

/// What a record's line ends with.
std::string checksum_of(const Json& key, const Json& record) {
  return fingerprint(one_line(key) + one_line(record));
}

/// What is deeper than any record is left out, so that no walk through it is as deep as somebody
/// likes.
bool is_shallow(int depth, Json::parse_event_t, const Json&) {
  constexpr int kMaxDepth = 100;
  return depth <= kMaxDepth;
}

/// Its last line, where that was cut short, is not looked at.
struct WholeLines {
  std::vector<Diagnostic> damaged;
  off_t bytes = 0;
};

WholeLines read_lines(const std::string& path, const Journal::Visit& visit) {
  std::ifstream text(path, std::ios::binary);
  std::string line;
  WholeLines read;
  for (int number = 1; std::getline(text, line); ++number) {
    if (text.eof()) {  // there is no line end
      if (number == 1 && !(one_line(head()) + "\n").starts_with(line)) not_a_journal(path);
      break;
    }
    const Json json = Json::parse(line, is_shallow, false);
    if (number == 1) {
      if (!(json == head())) not_a_journal(path);  // what is no JSON is not unequal either
    } else {
      try {
        const Json& key = json.at("key");
        const Json& record = json.at("record");
        if (json.at("check") != checksum_of(key, record)) throw NoRecord("checksum");
        visit(key, record);
      } catch (const Json::exception&) {
        read.damaged.push_back(damaged_line(path, number));
      } catch (const NoRecord&) {
        read.damaged.push_back(damaged_line(path, number));
      }
    }
    read.bytes += static_cast<off_t>(line.size()) + 1;
  }
  return read;
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

std::vector<Diagnostic> Journal::read(const Visit& visit) {
  WholeLines read = read_lines(path_, visit);
  if (ftruncate(file_, read.bytes) != 0) refuse(path_, ErrorKind::input, std::strerror(errno));
  if (read.bytes == 0) append(head());
  return std::move(read.damaged);
}

std::vector<Diagnostic> Journal::read_only(const std::string& path, const Visit& visit) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::input, fmt::format("there is no journal {}", quote(path)));
  }
  const WholeLines read = read_lines(path, visit);
  if (read.bytes == 0) not_a_journal(path);
  return read.damaged;
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
  append({{"key", key}, {"record", record}, {"check", checksum_of(key, record)}});
}

}  // namespace espalier
