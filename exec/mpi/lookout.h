// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace espalier {

/// A thread that looks again and again whether this process has to end, as long as it lives.
class Lookout {
 public:
  static constexpr auto kPeriod = std::chrono::milliseconds(20);

  /// `look`: the exit code, where the process has to end; then `end` is called with it, and nothing
  /// is looked at any more. Both are called with `mutex()` held, which guards what others change.
  /// `name`: of the thread, for whoever looks at processes.
  Lookout(const char* name, std::function<std::optional<int>()> look,
          std::function<void(int exit_code)> end);
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  std::mutex& mutex() { return mutex_; }

 private:
  void run();

  const std::function<std::optional<int>()> look_;
  const std::function<void(int exit_code)> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace espalier
