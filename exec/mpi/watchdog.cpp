// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/watchdog.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace espalier {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(20);
/// Who waits for a process that has left on its own lets it tell why, and then ends, too.
constexpr auto kCourtesy = std::chrono::milliseconds(500);
constexpr auto kTellingTime = std::chrono::milliseconds(1200);
/// Until this host knows what has happened on another one.
constexpr auto kNewsTime = std::chrono::milliseconds(300);

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Watchdog::Watchdog(const Board& board, Actions actions, const std::atomic<int>* signal)
    : board_(board),
      actions_(std::move(actions)),
      signal_(signal),
      parent_(getppid()),
      latest_(Clock::now()),
      thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::expect(const Program* program, double timeout_s) {
  const std::lock_guard lock(mutex_);
  program_ = program;
  timeout_s_ = timeout_s;
  pthread_setname_np(thread_.native_handle(), "watchdog");  // others see that a timeout holds
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [&] { return ending_; })) {
    if (const std::optional<int> exit_code = look()) {
      board_.mine().phase.store(Phase::failing);
      actions_.end(*exit_code);
      return;
    }
  }
}

/// The exit code, where the process has to end. \pre mutex_ is held
std::optional<int> Watchdog::look() {
  if (signal_ != nullptr && signal_->load() != 0) return heed_signal();
  RankState& mine = board_.mine();
  if (mine.phase.load() == Phase::working) mine.progress.fetch_add(1);
  if (getppid() != parent_) {
    tell("what started the processes has ended");
    return exit_code(ErrorKind::runtime);
  }
  const Clock::time_point now = Clock::now();
  if (others_left(now)) return exit_code(ErrorKind::runtime);
  std::uint64_t progress = 0;
  for (const RankState* state : board_.states) progress += state->progress.load();
  if (std::exchange(progress_, progress) != progress) {
    latest_ = now;
    return std::nullopt;
  }
  const std::vector<RankView> ranks = look_at(board_);
  const auto is_gone = [](const RankView& one) { return is_lost(one) && one.life == Life::gone; };
  if (std::ranges::any_of(ranks, is_gone)) {
    tell("the program cannot go on without one of its processes");
    return exit_code(ErrorKind::runtime);
  }
  if (is_ending(mine.phase.load()) || seconds(now - latest_) < timeout_s_) {
    return std::nullopt;
  }
  tell(fmt::format("no process has got further for {:g} s", timeout_s_));
  return exit_code(ErrorKind::runtime);
}

/// Who starts processes asks all to end when one has ended unexpectedly, and soon kills them.
std::optional<int> Watchdog::heed_signal() {
  const int signal = signal_->load();
  std::vector<RankView> ranks = look_at(board_);
  const bool has_others =
      std::ranges::any_of(ranks, [&](const RankView& rank) { return !board_.is_here(rank.rank); });
  const Clock::time_point begin = Clock::now();
  while (has_others && std::ranges::none_of(ranks, is_lost) && Clock::now() - begin < kNewsTime) {
    std::this_thread::sleep_for(kPeriod);
    ranks = look_at(board_);
  }
  if (board_.head->told.load() != 0 || std::ranges::any_of(ranks, is_lost)) {
    tell("the program cannot go on without one of its processes");
    return exit_code(ErrorKind::runtime);
  }
  const auto failed = [](const RankView& rank) { return rank.phase == Phase::failing; };
  if (std::ranges::any_of(ranks, failed)) return exit_code(ErrorKind::runtime);
  return 128 + signal;
}

/// Whether this process waits for others in vain: they have left, with an error that they told.
bool Watchdog::others_left(Clock::time_point now) {
  const Phase mine = board_.mine().phase.load();
  const bool waits = mine == Phase::running || mine == Phase::meeting;
  const bool left = waits && std::ranges::any_of(board_.states, [](const RankState* state) {
                      return state->phase.load() == Phase::failing;
                    });
  if (!left) {
    alone_since_.reset();
    return false;
  }
  if (!alone_since_) alone_since_ = now;
  return now - *alone_since_ > kCourtesy;
}

/// The first process that lives.
int Watchdog::teller() const {
  for (const RankView& rank : look_at(board_)) {
    if (rank.rank == board_.process) break;
    if (rank.life == Life::alive && !is_ending(rank.phase)) return rank.rank;
  }
  return board_.process;
}

/// By the first process that lives; by another one of its host if that does not come to it. Other
/// hosts wait for that of rank 0, whose launcher may end them meanwhile.
void Watchdog::tell(const std::string& what) {
  constexpr std::uint32_t kNobody = 0;
  constexpr std::uint32_t kDone = 2;
  const std::string text = describe_stuck(what, look_at(board_), program_);
  std::atomic<std::uint32_t>& told = board_.head->told;
  const int first = teller();
  const bool is_first = first == board_.process;
  const bool may_ever = is_first || board_.is_here(first);
  const auto patience = (is_first ? 0 : 1) * kCourtesy + (board_.is_here(0) ? 0 : 2) * kCourtesy;
  const Clock::time_point begin = Clock::now();
  while (told.load() != kDone && Clock::now() - begin < kTellingTime) {
    std::uint32_t expected = kNobody;
    const bool may_tell = may_ever && Clock::now() - begin >= patience;
    if (may_tell && told.compare_exchange_strong(expected, 1)) {
      actions_.tell(text);
      told.store(kDone);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace espalier
