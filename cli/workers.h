// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace espalier {

/// Processes that answer numbered tasks, since a process has one simulation engine only. Each is a
/// copy of this one as it was when the pool was made, and keeps what it learns from task to task.
/// One worker is none: this process answers when it is asked.
class WorkerPool {
 public:
  /// `work` is called in a worker. What it throws ends the worker, so it answers what went wrong.
  using Work = std::function<std::string(std::size_t task)>;

  /// Throws Error{runtime} when a process can't be made. \pre workers >= 1; this process has no
  /// other threads that hold locks `work` needs
  WorkerPool(int workers, Work work);
  /// Ends workers, whatever they do.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Begins with `tasks`, in their order, and no others. `received` is called with every answer
  /// that comes in, which happens in `wait`. Called once.
  void begin(std::vector<std::size_t> tasks,
             std::function<void(std::size_t task, std::string answer)> received);

  /// Until an answer or several have come in: with one worker that to `task`. \pre some have not.
  /// Throws Error{runtime} when a worker ended before it answered.
  void wait(std::size_t task);

 private:
  struct Worker {
    int process = 0;
    int socket = -1;
    bool busy = false;
    std::size_t task = 0;
  };

  void start();
  void give_next(Worker& worker);
  void take(Worker& worker);

  Work work_;
  std::vector<Worker> workers_;
  std::vector<std::size_t> tasks_;
  std::size_t given_ = 0;  ///< of tasks_
  std::function<void(std::size_t task, std::string answer)> received_;
};

}  // namespace espalier
