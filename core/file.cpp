// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/words.h"

namespace espalier {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// One write at a time, so that a signal handler has one name to remove and no lock to take.
std::mutex write_mutex;
std::array<char, 4096> unfinished_path;
std::atomic<bool> unfinished = false;

[[noreturn]] void fail(const char* what, const std::string& path, const std::string& reason,
                       ErrorKind kind = ErrorKind::input) {
  throw Error(kind, std::string("can't ") + what + " " + quote(path) + ": " + reason);
}

/// Editors and shells of Windows write byte order marks.
std::string as_utf8(std::string content, const std::string& path) {
  if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff")) {
    throw Error(ErrorKind::input, "can't read " + quote(path) + ": its text is UTF-16",
                "save it as UTF-8: iconv -f UTF-16 -t UTF-8");
  }
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (content.starts_with(kMark)) content.erase(0, kMark.size());
  return content;
}

std::string system_reason() { return std::strerror(errno); }

std::string read_all(std::FILE* file, const std::string& path) {
  std::string content;
  std::array<char, 16384> buffer;  // threads may have small stacks
  for (;;) {
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file);
    if (count == 0) break;
    content.append(buffer.data(), count);
    if (content.size() > kMaxFileBytes) fail("read", path, "the file is larger than 1 GiB");
  }
  if (std::ferror(file)) fail("read", path, system_reason());
  return content;
}

void write_all(std::FILE* file, std::string_view content, const std::string& path) {
  if (std::fwrite(content.data(), 1, content.size(), file) != content.size() ||
      std::fflush(file) != 0) {
    fail("write", path, system_reason(), ErrorKind::runtime);  // the name was good; a full disk
  }
}

/// Beside the file that it will replace.
std::string temporary_path(const std::string& target) {
  std::string path = target + ".tmp" + std::to_string(::getpid());
  if (path.size() >= unfinished_path.size()) fail("write", target, "the file name is too long");
  return path;
}

/// The temporary file of one write. Unless `commit` succeeds, it is removed.
class Temporary {
 public:
  /// It gets the mode of the file it will replace.
  explicit Temporary(const std::string& target) : target_(target), path_(temporary_path(target)) {
    std::memcpy(unfinished_path.data(), path_.c_str(), path_.size() + 1);
    unfinished = true;
    ::unlink(path_.c_str());  // left by a killed process of the same number
    struct stat old {};
    const bool replaces = ::stat(target.c_str(), &old) == 0;
    // Nobody reads it before it may have a mode that keeps them out.
    const int descriptor =
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
    if (descriptor < 0) {
      unfinished = false;
      fail("write", target, system_reason());
    }
    if (replaces) ::fchmod(descriptor, old.st_mode & 07777);
    file_.reset(::fdopen(descriptor, "wb"));
    if (!file_) {
      ::close(descriptor);
      discard_unfinished_writes();
      fail("write", target, system_reason());
    }
  }
  ~Temporary() { discard_unfinished_writes(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  std::FILE* file() { return file_.get(); }

  void commit() {
    if (std::fclose(file_.release()) != 0 || std::rename(path_.c_str(), target_.c_str()) != 0) {
      fail("write", target_, system_reason());
    }
    unfinished = false;
  }

 private:
  std::string target_;
  std::string path_;
  File file_;
};

/// Makes a temporary file without a name in its folder, of which nothing is left if the process is
/// killed just then. False where the file system has no such files.
bool has_made_unnamed_temporary(const std::string& target) {
  const std::string path = temporary_path(target);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 && errno != ENOENT) {
    fail("write", target, system_reason());  // as for a name that is too long
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (descriptor >= 0) {
    ::close(descriptor);
    return true;
  }
  // Linux before 3.11 sees a folder that is to be written to.
  if (errno != EOPNOTSUPP && errno != EISDIR) fail("write", target, system_reason());
  return false;
}

/// Files that were read, by device and number, while there are KeepInputs.
struct Inputs {
  std::mutex mutex;
  int keepers = 0;
  std::set<std::pair<dev_t, ino_t>> files;
};
Inputs& inputs() {
  static Inputs all;
  return all;
}

void note_input(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return;
  Inputs& all = inputs();
  const std::lock_guard lock(all.mutex);
  if (all.keepers > 0) all.files.emplace(status.st_dev, status.st_ino);
}

void refuse_input(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  Inputs& all = inputs();
  const std::lock_guard lock(all.mutex);
  if (all.files.contains({status.st_dev, status.st_ino})) {
    fail("write", path, "it would replace what was read from there");
  }
}

/// Where a write really goes.
struct Target {
  std::string path;
  bool direct = false;  ///< a device, a pipe or a folder: no temporary can take its place
};

/// A link stays a link: what it points at is replaced, or made.
Target resolve(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as Linux has it; more are one that leads to itself
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path resolved = path;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(resolved, ignored)); ++i) {
    resolved = resolved.parent_path() / fs::read_symlink(resolved, ignored);
  }
  if (fs::is_symlink(fs::symlink_status(resolved, ignored))) {
    fail("write", path, std::strerror(ELOOP));
  }
  Target target{resolved.string()};
  const std::filesystem::file_status status = std::filesystem::status(target.path, ignored);
  target.direct = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  return target;
}

/// /dev/full can be opened, and never written to.
bool is_always_full(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode) &&
         status.st_rdev == makedev(1, 7);
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") return as_utf8(read_all(stdin, "standard input"), "standard input");
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("read", path, system_reason());
  note_input(::fileno(file.get()));
  return as_utf8(read_all(file.get(), path), path);
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    write_all(stdout, content, "standard output");
    return;
  }
  const Target target = resolve(path);
  if (target.direct) {
    const File file(std::fopen(target.path.c_str(), "wb"));
    if (!file) fail("write", path, system_reason());
    write_all(file.get(), content, path);
    return;
  }
  refuse_input(path);
  const std::lock_guard lock(write_mutex);
  Temporary temporary(target.path);
  write_all(temporary.file(), content, path);
  temporary.commit();
}

void require_writable(const std::string& path) {
  if (path == "-") return;
  const Target target = resolve(path);
  if (!target.direct) {
    refuse_input(path);
    if (has_made_unnamed_temporary(target.path)) return;
    const std::lock_guard lock(write_mutex);
    const Temporary removed_at_once(target.path);
    return;
  }
  // A pipe without a reader can't be opened yet (ENXIO), and waiting for one would block the run.
  const int descriptor = ::open(target.path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENXIO && ::access(target.path.c_str(), W_OK) == 0) return;
    fail("write", path, system_reason());
  }
  const bool is_full = is_always_full(descriptor);
  ::close(descriptor);
  if (is_full) fail("write", path, std::strerror(ENOSPC));
}

KeepInputs::KeepInputs() {
  const std::lock_guard lock(inputs().mutex);
  ++inputs().keepers;
}

KeepInputs::~KeepInputs() {
  const std::lock_guard lock(inputs().mutex);
  if (--inputs().keepers == 0) inputs().files.clear();
}

void discard_unfinished_writes() noexcept {
  if (unfinished.exchange(false)) ::unlink(unfinished_path.data());
}

}  // namespace espalier
