// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace espalier {

/// Processes that answer numbered tasks, since a process has one simulation engine only. Each is a
/// copy of this one as it was when the pool was made, and keeps what it learns from task to
/// task. With one worker there is no second process: this process answers when it is asked.
class WorkerPool {
 public:
  /// `work` is called in a worker. What it throws ends the worker, so it answers what went wrong.
  using Work = std::function<std::string(std::size_t task)>;

  /// Throws Error{runtime} when a process can't be made. \pre workers >= 1; this process has no
  /// other threads that hold locks `work` needs
  WorkerPool(int workers, Work work);
  /// Ends the workers, whatever they are doing.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// The task for a worker that has none, by number, or nothing when there will be none.
  using Next = std::function<std::optional<std::size_t>(std::size_t worker)>;
  /// Called with every answer that comes in, which happens in `wait`.
  using Received = std::function<void(std::size_t task, const std::string& answer)>;

  /// Gives every worker its first task; they ask for others as they answer. Called once.
  void begin(Next next, Received received);

  /// Until an answer or several have come in: with one worker that to `task`, with more of them
  /// any. \pre `task` has not been answered. Throws Error{runtime} when a worker ended before it
  /// answered.
  void wait(std::size_t task);

 private:
  struct Worker {
    int process = 0;
    int socket = -1;
    bool busy = false;
    std::size_t task = 0;
  };

  void start();
  void stop();
  void give_next(Worker& worker);
  void take(Worker& worker);

  Work work_;
  std::vector<Worker> workers_;
  Next next_;
  Received received_;
};

}  // namespace espalier
