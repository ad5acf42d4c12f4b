// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/mpi_start.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/file.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/launcher.h"
#include "exec/mpi/mpi_backend.h"
#include "exec/mpi/mpi_transport.h"
#include "exec/mpi/process_memory.h"
#include "exec/mpi/processes.h"
#include "exec/mpi_cuda/gpu_memory.h"

namespace espalier {
namespace {

constexpr auto kStartTime = std::chrono::seconds(60);
constexpr auto kEndTime = std::chrono::seconds(5);
/// For others to leave, too, before a process that has failed ends them.
constexpr auto kCourtesy = std::chrono::milliseconds(500);

/// What the process has been asked to end with; the watchdog heeds it.
std::atomic<int> asked_to_end{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// A library under MPI that finds a process gone may abort: it must not before it has been told
/// which one.
void note_signal(int signal) {
  asked_to_end.store(signal);
  while (signal == SIGABRT) pause();
}

/// Safe on any thread: nothing is cleaned up but files that are not complete.
[[noreturn]] void end_at_once(int exit_code) {
  discard_unfinished_writes();
  _exit(exit_code);
}

void write_error(const std::string& text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

/// While it lives, a call of MPI has so long; then the process ends, with this text.
class Deadline {
 public:
  Deadline(std::chrono::milliseconds time, std::string text, int exit_code)
      : thread_([this, time, text = std::move(text), exit_code] {
          std::unique_lock lock(mutex_);
          if (over_changed_.wait_for(lock, time, [&] { return over_; })) return;
          write_error(text);
          end_at_once(exit_code);
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    over_changed_.notify_all();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::thread thread_;
};

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all = text.data();
  return all.substr(0, all.find_first_of(",\n\t"));
}

[[noreturn]] void throw_problem(const LaunchProblem& problem) {
  throw Error(ErrorKind::unsupported, problem.message, problem.help);
}

/// SimGrid has functions of the same names, with which it simulates programs for MPI. Whose are
/// used depends on which library comes first when the program is linked.
std::optional<LaunchProblem> foreign_mpi() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &library) == 0) return std::nullopt;
  const std::string file = library.dli_fname != nullptr ? library.dli_fname : "";
  if (file.find("simgrid") == std::string::npos) return std::nullopt;
  return LaunchProblem{
      fmt::format("the functions of MPI that this program was linked with are those of {}", file),
      "link the library of MPI before SimGrid's"};
}

/// MPI itself, from its first use until the process ends.
class Started {
 public:
  Started()
      : starting_(std::in_place, kStartTime,
                  fmt::format("error: MPI has not started within {} s: a process is missing or "
                              "stopped\n",
                              kStartTime.count()),
                  exit_code(ErrorKind::runtime)),
        communicator_(start()),
        transport_(communicator_) {
    share_board();
    find_places();
    take_signals();
    watchdog_.emplace(board_, Watchdog::Actions{write_error, end_at_once}, &asked_to_end);
    processes_.emplace(Processes{transport_, board_, &*watchdog_, hash_of_build(), places_,
                                 static_cast<int>(on_this_host_),
                                 static_cast<long>(on_this_host_) > sysconf(_SC_NPROCESSORS_ONLN)});
    starting_.reset();
  }

  Processes& processes() { return *processes_; }
  Transport& transport() { return transport_; }
  const Board& board() const { return board_; }

  /// All processes come here. After an error of all they have little to do before.
  void finish(int exit_code) {
    signal(SIGABRT, SIG_DFL);
    std::optional<Deadline> deadline;
    if (exit_code != 0) deadline.emplace(kEndTime, "", exit_code);
    meet(transport_);
    if (exit_code == 0) board_.mine().phase.store(Phase::leaving);
    watchdog_.reset();
    if (!deadline) deadline.emplace(kEndTime, "", exit_code);
    MPI_Win_free(&window_);
    MPI_Comm_free(&communicator_);
    MPI_Finalize();
  }

 private:
  static MPI_Comm start() {
    if (const auto problem = foreign_mpi()) throw_problem(*problem);
    const Launch launch = read_launch([](const char* name) { return std::getenv(name); });
    if (const auto problem = problem_of(launch)) throw_problem(*problem);
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int count = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (const auto problem = problem_of(launch, count, library_version())) {
      MPI_Finalize();
      throw_problem(*problem);
    }
    // So that messages of others, the library's own among them, are never taken for ours.
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    return communicator;
  }

  /// In memory that the processes of a host share, and that goes away with them.
  void share_board() {
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    int number = 0;
    int count = 0;
    MPI_Comm_rank(host, &number);
    MPI_Comm_size(host, &count);
    on_this_host_ = static_cast<std::size_t>(count);
    constexpr std::size_t kAlignment = alignof(RankState);
    const std::size_t bytes = kAlignment + sizeof(BoardHead) + on_this_host_ * sizeof(RankState);
    void* memory = nullptr;
    MPI_Win_allocate_shared(number == 0 ? static_cast<MPI_Aint>(bytes) : 0, 1, MPI_INFO_NULL, host,
                            &memory, &window_);
    MPI_Aint size = 0;
    int unit = 1;
    MPI_Win_shared_query(window_, 0, &size, &unit, &memory);
    // The same offset in every process: mappings begin at pages.
    std::size_t space = bytes;
    std::align(kAlignment, bytes - kAlignment, memory, space);
    board_.process = transport_.process();
    board_.head = static_cast<BoardHead*>(memory);
    auto* const states = reinterpret_cast<RankState*>(board_.head + 1);
    if (number == 0) {
      new (board_.head) BoardHead;
      for (std::size_t i = 0; i < on_this_host_; ++i) new (states + i) RankState;
    }
    board_.states.assign(static_cast<std::size_t>(transport_.processes()), nullptr);
    for (std::size_t i = 0; i < on_this_host_; ++i) {
      board_.states[static_cast<std::size_t>(rank_in_all(host, static_cast<int>(i)))] = states + i;
    }
    meet(transport_);
    board_.mine().pid.store(getpid());
    MPI_Comm_free(&host);
  }

  int rank_in_all(MPI_Comm host, int number) const {
    MPI_Group here = MPI_GROUP_NULL;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(host, &here);
    MPI_Comm_group(communicator_, &all);
    int rank = 0;
    MPI_Group_translate_ranks(here, 1, &number, all, &rank);
    MPI_Group_free(&here);
    MPI_Group_free(&all);
    return rank;
  }

  void find_places() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const std::string name = host.data();
    const std::string sockets = describe_sockets();
    const std::string mine = name + '\n' + (sockets.empty() ? name : name + ", " + sockets);
    for (const auto& bytes : gather_from_all(transport_, std::as_bytes(std::span(mine)))) {
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      board_.hosts.push_back(text.substr(0, text.find('\n')));
      places_.push_back(text.substr(text.find('\n') + 1));
    }
    // All have their numbers on the board by now.
    for (const RankView& rank : look_at(board_)) {
      if (rank.life == Life::gone) board_.sees_processes = false;
    }
    meet(transport_);
  }

  /// One that the parent chose to ignore (nohup) stays ignored.
  static void take_signals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGABRT}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = note_signal;
      sigaction(signal, &action, nullptr);
    }
  }

  std::optional<Deadline> starting_;
  MPI_Comm communicator_;
  MpiTransport transport_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t on_this_host_ = 1;
  Board board_;
  std::vector<std::string> places_;
  std::optional<Watchdog> watchdog_;
  std::optional<Processes> processes_;
};

std::unique_ptr<Started>& started() {
  static std::unique_ptr<Started> all;
  return all;
}

Started& get_started() {
  if (!started()) started() = std::make_unique<Started>();
  return *started();
}

bool someone_is(const Board& board, Phase phase) {
  for (const RankView& rank : look_at(board)) {
    if (rank.rank != board.process && rank.life != Life::gone && rank.phase == phase) return true;
  }
  return false;
}

/// Whether all others on this host are on their way out as well, with an error of all.
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

std::unique_ptr<Backend> make_mpi_backend(const std::optional<GpuChoice>& gpus) {
  const Processes& processes = get_started().processes();
  return std::make_unique<MpiBackend>(
      processes, gpus ? make_gpu_memory(processes, *gpus) : make_host_memory(processes));
}

bool is_told_by_rank_0() {
  const Launch launch = read_launch([](const char* name) { return std::getenv(name); });
  return launch.rank > 0;
}

int mpi_processes() { return get_started().transport().processes(); }

bool mpi_tells() { return get_started().transport().process() == 0; }

Inventory mpi_inventory(int ranks) {
  return inventory_of_one_memory("mpi", "processes of a computer", ranks);
}

void leave_mpi(int exit_code) {
  if (!started()) return;
  Started& mpi = *started();
  const Board& board = mpi.board();
  if (exit_code != 0) {
    board.mine().phase.store(Phase::failing);
    if (!all_leave(board)) mpi.transport().abort(exit_code);
  } else {
    board.mine().phase.store(Phase::meeting);
  }
  mpi.finish(exit_code);
}

}  // namespace espalier
