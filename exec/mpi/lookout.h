// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace espalier {

/// Looks at something every so often on a thread of its own, whatever the main thread is held up
/// in: until a look says that it was the last one, or the lookout is destroyed.
class Lookout {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPeriod = std::chrono::milliseconds(20);

  /// `look` returns whether to look again; it is called with `mutex` held. `thread_name`: as the
  /// system shows it, 15 characters at most.
  Lookout(const char* thread_name, std::function<bool()> look);
  /// Waits for a look under way.
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  /// Guards what `look` shares with other threads.
  std::mutex& mutex() { return mutex_; }

 private:
  void run(const char* thread_name);

  const std::function<bool()> look_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

inline double seconds(Lookout::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace espalier
