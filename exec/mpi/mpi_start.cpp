// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/mpi_start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file.h"
#include "exec/caches.h"
#include "exec/free_memory.h"
#include "exec/host/numa.h"
#include "exec/mpi/board_mirror.h"
#include "exec/mpi/connection.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/launcher.h"
#include "exec/mpi/mpi_backend.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/process_memory.h"
#include "exec/mpi/processes.h"
#include "exec/mpi/signals.h"
#include "exec/mpi/start_watch.h"
#include "exec/mpi/witness.h"
#include "exec/mpi_cuda/gpu_inventory.h"
#include "exec/mpi_cuda/gpu_memory.h"

namespace espalier {
namespace {

constexpr auto kEndTime = std::chrono::seconds(5);
/// For others to leave, too, before a process that has failed ends them.
constexpr auto kCourtesy = std::chrono::milliseconds(500);
/// To tell an error that all processes have, and for a launcher to end them all.
constexpr auto kTimeOfRank0 = std::chrono::seconds(3);

/// Of this process, where the launcher makes one necessary.
std::unique_ptr<Witness>& witness() {
  static std::unique_ptr<Witness> one;
  return one;
}

/// Safe on any thread and in a signal handler: nothing is cleaned up but files that are not
/// complete. That it ends is no news to the witness, as after a reader of its output has had
/// enough.
[[noreturn]] void end_at_once(int exit_code) {
  if (witness()) witness()->note_end();
  discard_unfinished_writes();
  _exit(exit_code);
}

void write_error(const std::string& text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  if (witness()) witness()->note_told();
}

/// While it lives, a call of MPI has so long; then the process ends.
class TimeLimit {
 public:
  TimeLimit(std::chrono::milliseconds time, int exit_code)
      : thread_([this, time, exit_code] {
          std::unique_lock lock(mutex_);
          if (over_changed_.wait_for(lock, time, [&] { return over_; })) return;
          end_at_once(exit_code);
        }) {}
  ~TimeLimit() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    over_changed_.notify_all();
    thread_.join();
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::thread thread_;
};

const char* variable(const char* name) { return std::getenv(name); }

/// How this process was started, if it can find the others.
Launch launch_of_this() {
  Launch launch = read_launch(variable);
  if (const auto problem = problem_of(launch)) throw_problem(*problem);
  return launch;
}

/// The connection that belongs to it.
std::unique_ptr<Connection> connect(const Launch& launch, double start_time_s) {
  return launch.place ? connect_by_sockets(*launch.place, start_time_s) : connect_by_mpi(launch);
}

/// Who collects and ends the processes: not whoever has set torchrun's variables by hand, who may
/// leave them to themselves.
std::optional<pid_t> launcher_of(const Launch& launch) {
  const bool is_there = launch.by_mpi || variable("TORCHELASTIC_RUN_ID") != nullptr;
  return is_there ? std::optional(getppid()) : std::nullopt;
}

/// The processes, from the first use until this one ends.
class Started {
 public:
  explicit Started(double timeout_s)
      : launch_(launch_of_this()),
        launcher_(launcher_of(launch_)),
        starting_(start_watch(timeout_s)),
        connection_(connect(launch_, std::max(timeout_s, StartWatch::kStartTime_s))) {
    share_board();
    find_places();
    note_aborts();
    if (std::ranges::any_of(board_.groups, [](int group) { return group != 0; })) {
      mirror_.emplace(board_, transport());
    }
    starting_.reset();  // before, as only one of them heeds requests to end
    watchdog_.emplace(board_, Watchdog::Actions{write_error, [this](int code) { end(code); }},
                      Watchdog::Settings{timeout_s, &asked_to_end(), launcher_});
    const std::size_t sharing = connection_->here().size();
    processes_.emplace(Processes{transport(), board_, &*watchdog_, hash_of_build(), places_,
                                 static_cast<int>(sharing), is_crowded_});
  }

  Processes& processes() { return *processes_; }
  Transport& transport() { return connection_->transport(); }
  const Board& board() const { return board_; }
  /// By rank, -1 where that is not bound to one.
  const std::vector<int>& socket_by_rank() const { return socket_by_rank_; }
  /// Of the host with the largest caches.
  std::int64_t cache_bytes() const { return cache_bytes_; }
  /// Of that with the least free memory, when all started.
  double free_bytes() const { return free_bytes_; }

  /// All processes come here. After an error of all they have little to do before.
  void finish(int exit_code) {
    end_on_aborts();
    std::optional<TimeLimit> limit;
    if (exit_code != 0) limit.emplace(kEndTime, exit_code);
    meet(transport());
    if (exit_code == 0) board_.mine().phase.store(Phase::leaving);
    watchdog_.reset();
    mirror_.reset();
    if (!limit) limit.emplace(kEndTime, exit_code);
    connection_->close();
  }

  /// Ends all processes, this one first, which has told why.
  [[noreturn]] void abort(int exit_code) {
    if (mirror_) mirror_->say_last_words();
    if (witness()) {
      witness()->note_told();
      witness()->note_end();
    }
    transport().abort(exit_code);
    std::_Exit(exit_code);  // GCC does not see that a virtual function never returns
  }

 private:
  std::unique_ptr<StartWatch> start_watch(double timeout_s) const {
    Siblings siblings(getppid(), variable);
    // Before there are other threads, as it forks.
    if (launch_.by_mpi && Witness::is_wanted()) {
      const auto expected = static_cast<int>(siblings.expected().size());
      witness() = std::make_unique<Witness>(launch_.rank, expected);
    }
    note_requests_to_end(end_at_once);
    return std::make_unique<StartWatch>(launch_.rank, std::move(siblings), timeout_s,
                                        Watchdog::Actions{write_error, end_at_once},
                                        asked_to_end());
  }

  /// At once; files that are not complete go away.
  [[noreturn]] void end(int exit_code) {
    if (mirror_) mirror_->say_last_words();
    end_at_once(exit_code);
  }

  /// In memory that the processes of a host share, and that goes away with them.
  void share_board() {
    const auto count = static_cast<std::size_t>(transport().processes());
    std::byte* const memory = connection_->share(sizeof(BoardHead) + count * sizeof(RankState));
    board_.process = transport().process();
    board_.head = reinterpret_cast<BoardHead*>(memory);
    auto* const states = reinterpret_cast<RankState*>(board_.head + 1);
    if (connection_->here().front() == board_.process) {
      new (board_.head) BoardHead;
      for (std::size_t i = 0; i < count; ++i) new (states + i) RankState;
    }
    for (std::size_t i = 0; i < count; ++i) board_.states.push_back(states + i);
    meet(transport());
    board_.mine().pid.store(getpid());
  }

  void find_places() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const std::string name = host.data();
    const Sockets sockets = allowed_sockets();
    const std::string described = sockets.text();
    Packed mine;
    mine.put(connection_->here().front());
    mine.put(name);
    mine.put(described.empty() ? name : name + ", " + described);
    mine.put(sockets.only());
    mine.put(allowed_processors());
    const bool speaks_for_host = connection_->here().front() == board_.process;
    mine.put(speaks_for_host ? last_caches_bytes() : std::int64_t{0});
    mine.put(free_memory_bytes());
    std::vector<std::vector<int>> allowed;  // of those of this host
    for (const auto& bytes : gather_from_all(transport(), mine.bytes())) {
      Unpacking unpacking(bytes);
      unpacking.get(board_.groups.emplace_back());
      unpacking.get(board_.hosts.emplace_back());
      unpacking.get(places_.emplace_back());
      unpacking.get(socket_by_rank_.emplace_back());
      std::vector<int> processors;
      unpacking.get(processors);
      std::int64_t cache_bytes = 0;
      unpacking.get(cache_bytes);
      cache_bytes_ = std::max(cache_bytes_, cache_bytes);
      double free_bytes = 0;
      unpacking.get(free_bytes);
      free_bytes_ = std::min(free_bytes_, free_bytes);
      const int rank = static_cast<int>(places_.size()) - 1;
      if (std::ranges::count(connection_->here(), rank) > 0) allowed.push_back(processors);
    }
    const auto number = std::ranges::find(connection_->here(), board_.process);
    is_crowded_ =
        is_crowded(allowed, static_cast<std::size_t>(number - connection_->here().begin()));
    // All have their numbers on the board by now.
    for (const RankView& rank : look_at(board_)) {
      if (rank.life == Life::gone) board_.sees_processes = false;
    }
    meet(transport());
  }

  const Launch launch_;
  const std::optional<pid_t> launcher_;
  std::unique_ptr<StartWatch> starting_;
  const std::unique_ptr<Connection> connection_;
  Board board_;
  std::vector<std::string> places_;
  std::vector<int> socket_by_rank_;
  std::int64_t cache_bytes_ = 0;
  double free_bytes_ = std::numeric_limits<double>::infinity();
  bool is_crowded_ = true;
  std::optional<BoardMirror> mirror_;
  std::optional<Watchdog> watchdog_;
  std::optional<Processes> processes_;
};

std::unique_ptr<Started>& started() {
  witness();  // is destroyed after the threads of what has started, which may tell it
  static std::unique_ptr<Started> all;
  return all;
}

Started& get_started(double timeout_s = RunOptions{}.timeout_s) {
  if (!started()) started() = std::make_unique<Started>(timeout_s);
  return *started();
}

bool someone_is(const Board& board, Phase phase) {
  for (const RankView& rank : look_at(board)) {
    const bool is_there = rank.life != Life::gone && rank.life != Life::silent;
    if (rank.rank != board.process && is_there && rank.phase == phase) return true;
  }
  return false;
}

/// With what the launcher and NCCL's variables say of this process.
GpuChoice as_launched(GpuChoice choice) {
  choice.local_rank = read_launch(variable).local_rank;
  if (const char* const host = variable("NCCL_HOSTID")) choice.nccl_host = host;
  return choice;
}

/// Whether all others are on their way out as well, with an error of all.
bool all_leave(const Board& board) {
  const auto deadline = std::chrono::steady_clock::now() + kCourtesy;
  for (;;) {
    const bool others_stay = someone_is(board, Phase::running) || someone_is(board, Phase::meeting);
    const bool others_work = someone_is(board, Phase::working);
    if (!others_stay && !others_work) return true;
    if (!others_work && std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

void connect_mpi(double timeout_s) { get_started(timeout_s); }

std::unique_ptr<Backend> make_mpi_backend(const std::optional<GpuChoice>& gpus) {
  const Processes& processes = get_started().processes();
  if (!gpus) return std::make_unique<MpiBackend>(processes);
  return std::make_unique<MpiBackend>(processes, make_gpu_memory(processes, as_launched(*gpus)));
}

bool is_told_by_rank_0() { return read_launch(variable).rank > 0; }

bool rank_0_fails_too() {
  const auto deadline = std::chrono::steady_clock::now() + kTimeOfRank0;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (started() && started()->board().states.front()->phase.load() == Phase::failing) return true;
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

int mpi_processes() { return get_started().transport().processes(); }

bool mpi_tells() { return get_started().transport().process() == 0; }

Inventory mpi_inventory(const std::optional<GpuChoice>& gpus) {
  Started& all = get_started();
  if (gpus) return gpu_inventory(all.processes(), as_launched(*gpus));
  Inventory inventory = inventory_of_processes(all.board().groups, all.socket_by_rank());
  inventory.cache_bytes = all.cache_bytes();
  inventory.devices.front().free_bytes = as_bytes(all.free_bytes());
  return inventory;
}

void leave_mpi(int exit_code) {
  if (!started()) return;
  Started& mpi = *started();
  const Board& board = mpi.board();
  if (exit_code != 0) {
    board.mine().phase.store(Phase::failing);
    if (!all_leave(board)) mpi.abort(exit_code);
  } else {
    board.mine().phase.store(Phase::meeting);
  }
  mpi.finish(exit_code);
}

}  // namespace espalier
