// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/activity.h"

namespace espalier {

/// Processes that answer requests, since a process has one simulation engine only. Each is a copy
/// of this one as it was when the pool was made, and keeps what it learns from request to request.
/// With one worker there is no second process: this process answers when it is asked.
class WorkerPool {
 public:
  /// `work` is called in a worker. What it throws ends the worker, so it answers what went wrong.
  using Work = std::function<std::string(const std::string& request)>;

  /// Called with an answer that came in.
  using Received = std::function<void(std::size_t task, const std::string& answer)>;

  /// What there is to do, by numbers. Called in this process only.
  struct Tasks {
    /// The task for a worker that has none, or nothing when there is none for it now.
    std::function<std::optional<std::size_t>(std::size_t worker)> next;
    std::function<std::string(std::size_t task)> request;
    Received received;  ///< called in `wait`
    /// For messages: "ring 1GiB".
    std::function<std::string(std::size_t task)> label;
  };

  /// Throws Error{runtime} when a process can't be made. \pre workers >= 1; this process has no
  /// other threads that hold locks `work` needs, and no output that is still to be written
  WorkerPool(int workers, Work work, Tasks tasks);
  /// Ends the workers, whatever they are doing.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Gives tasks to workers that have none. Whoever answers asks for another one by itself.
  void offer();

  /// Until an answer or several have come in: with one worker that to `task`, with more of them
  /// any. In between, Activity::describe() tells what the worker with the task is doing. \pre
  /// `task` has not been answered. Throws Error{runtime} when a worker ended before it answered.
  void wait(std::size_t task);

 private:
  struct Worker {
    int process = 0;
    int socket = -1;
    bool busy = false;
    std::size_t task = 0;
    std::unique_ptr<SharedActivity> activity;
  };

  void start();
  void stop();
  void give_next(Worker& worker);
  void take(Worker& worker);

  Work work_;
  Tasks tasks_;
  std::vector<Worker> workers_;
};

}  // namespace espalier
