// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include "core/error.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("espalier-file-test-" + std::to_string(::getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t file_count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string message_of(const std::function<void()>& action, ErrorKind kind = ErrorKind::input) {
  return error_of(action, kind);
}

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  const std::string content("line\n\0binary\xff", 13);
  write_file(path("a"), content);
  EXPECT_EQ(read_file(path("a")), content);
  write_file(path("a"), "");
  EXPECT_EQ(read_file(path("a")), "");
  EXPECT_EQ(file_count(), 1u);  // no temporary is left
}

TEST_F(FileTest, ReadsTextOfOtherSystems) {
  write_file(path("a"), "\xef\xbb\xbfline\n");
  EXPECT_EQ(read_file(path("a")), "line\n");
  for (const char* const mark : {"\xff\xfe", "\xfe\xff"}) {
    write_file(path("a"), mark + std::string("l\0i\0", 4));
    EXPECT_EQ(message_of([&] { read_file(path("a")); }),
              "error: can't read '" + path("a") +
                  "': its text is UTF-16\n"
                  "  help: save it as UTF-8: iconv -f UTF-16 -t UTF-8");
  }
}

TEST_F(FileTest, KnowsBeforehandWhetherItCanWrite) {
  EXPECT_NO_THROW(require_writable(path("new")));
  EXPECT_NO_THROW(require_writable("-"));
  EXPECT_NO_THROW(require_writable("/dev/null"));
  EXPECT_EQ(file_count(), 0u);
  write_file(path("old"), "content");
  EXPECT_NO_THROW(require_writable(path("old")));
  EXPECT_EQ(read_file(path("old")), "content");
  EXPECT_EQ(file_count(), 1u);
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(message_of([&] { require_writable("/dev/full"); }),
              "error: can't write '/dev/full': No space left on device");
  }
  EXPECT_EQ(message_of([&] { require_writable("no/such/file"); }),
            "error: can't write 'no/such/file': No such file or directory");
  EXPECT_EQ(message_of([&] { require_writable(path("old/file")); }),
            "error: can't write '" + path("old/file") + "': Not a directory");
  const std::string refusal = message_of([&] { require_writable(path(std::string(255, 'a'))); });
  EXPECT_TRUE(refusal.ends_with("': File name too long")) << refusal;
  EXPECT_EQ(message_of([&] { require_writable(folder_.string()); }),
            "error: can't write '" + folder_.string() + "': Is a directory");
}

// A process that is killed while it looks would leave whatever it has made there.
TEST_F(FileTest, MakesNothingToLookWhetherItCanWrite) {
  const int unnamed = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (unnamed < 0) GTEST_SKIP() << "no files without names here: " << std::strerror(errno);
  ::close(unnamed);
  write_file(path("old"), "content");
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(::inotify_add_watch(watch, folder_.c_str(), IN_CREATE | IN_MOVED_TO | IN_DELETE), 0);
  std::array<char, 4096> events;
  require_writable(path("old"));
  require_writable(path("new"));
  EXPECT_EQ(::read(watch, events.data(), events.size()), -1);
  EXPECT_EQ(errno, EAGAIN);
  write_file(path("new"), "content");
  EXPECT_GT(::read(watch, events.data(), events.size()), 0);
  ::close(watch);
}

TEST_F(FileTest, KeepsTheModeOfTheFileItReplaces) {
  write_file(path("a"), "old");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  write_file(path("a"), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(read_file(path("a")), "new");
}

TEST_F(FileTest, SaysWhyItCantRead) {
  EXPECT_EQ(message_of([&] { read_file("no/such/file"); }),
            "error: can't read 'no/such/file': No such file or directory");
  EXPECT_NE(message_of([&] { read_file(folder_.string()); }).find("Is a directory"),
            std::string::npos);
}

TEST_F(FileTest, SaysWhyItCantWrite) {
  EXPECT_EQ(message_of([&] { write_file("no/such/file", "x"); }),
            "error: can't write 'no/such/file': No such file or directory");
  EXPECT_NE(message_of([&] { write_file(path(std::string(5000, 'x')), ""); }).find("too long"),
            std::string::npos);
}

TEST_F(FileTest, ReplacesWhatALinkPointsAt) {
  write_file(path("target"), "old");
  fs::create_symlink("target", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")), "new");
}

TEST_F(FileTest, MakesWhatALinkPointsAt) {
  fs::create_symlink("target", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")), "new");
  fs::create_symlink("loop", path("loop"));
  EXPECT_EQ(message_of([&] { write_file(path("loop"), "x"); }),
            "error: can't write '" + path("loop") + "': Too many levels of symbolic links");
}

TEST_F(FileTest, KeepsInputs) {
  write_file(path("a"), "old");
  fs::create_hard_link(path("a"), path("b"));
  {
    const KeepInputs keep;
    read_file(path("a"));
    const std::string reason = "': it would replace what was read from there";
    EXPECT_EQ(message_of([&] { require_writable(path("a")); }),
              "error: can't write '" + path("a") + reason);
    EXPECT_EQ(message_of([&] { write_file(path("b"), "new"); }),
              "error: can't write '" + path("b") + reason);
    EXPECT_NO_THROW(write_file(path("c"), "other"));
  }
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_NO_THROW(write_file(path("a"), "new"));
}

TEST_F(FileTest, WritesToDevicesDirectly) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(FileTest, SaysThatTheDiskIsFull) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  EXPECT_EQ(message_of([&] { write_file("/dev/full", "x"); }, ErrorKind::runtime),
            "error: can't write '/dev/full': No space left on device");
}

/// Lets files grow to 4096 bytes and no further, as long as it lives.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limited = before_;
    limited.rlim_cur = 4096;
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(FileTest, LeavesTheOldFileWholeWhenAWriteFails) {
  write_file(path("a"), "old");
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);  // the write itself reports the limit then
  const auto write = [&] {
    const FileSizeLimit limit;
    write_file(path("a"), std::string(100'000, 'x'));
  };
  const std::string message = message_of(write, ErrorKind::runtime);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("can't write"), std::string::npos) << message;
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, LeavesTheOldFileWholeWhenASignalEndsTheWrite) {
  write_file(path("a"), "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The signal comes in the middle of the write, as Ctrl-C may.
    ::signal(SIGXFSZ, [](int) {
      discard_unfinished_writes();
      ::_exit(42);
    });
    const FileSizeLimit limit;
    write_file(path("a"), std::string(100'000, 'x'));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  EXPECT_EQ(read_file(path("a")), "old");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, DiscardIsHarmlessWithoutAWrite) {
  write_file(path("a"), "kept");
  discard_unfinished_writes();
  EXPECT_EQ(read_file(path("a")), "kept");
}

}  // namespace
}  // namespace espalier
