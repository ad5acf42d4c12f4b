// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/error.h"
#include "exec/mpi/signals.h"

namespace espalier {
namespace {

/// Between looks at whether the others live, as long as somebody gets further: each is a file.
constexpr auto kLifePeriod = std::chrono::milliseconds(200);
/// Timeouts for which the main thread may work on its own without a sign.
constexpr double kLongestWork = 10;
/// Who waits for a process that has left on its own lets it tell why, and then ends, too.
constexpr auto kCourtesy = std::chrono::milliseconds(500);
constexpr auto kTellingTime = std::chrono::milliseconds(1200);
/// Until this process knows what has happened on another host, and whom else was sent a signal.
constexpr auto kNewsTime = std::chrono::milliseconds(300);
constexpr const char* kOneIsMissing = "the program cannot go on without one of its processes";

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

bool is_gone(const RankView& rank) { return is_lost(rank) && rank.life == Life::gone; }

}  // namespace

Watchdog::Watchdog(const Board& board, Actions actions, const Settings& settings)
    : board_(board),
      actions_(std::move(actions)),
      signal_(settings.signal),
      launcher_(settings.launcher),
      latest_(Clock::now()),
      looked_(latest_),
      latest_sign_(latest_),
      timeout_s_(settings.timeout_s),
      // By the name, others see that a timeout holds.
      lookout_(
          "watchdog", [this] { return look(); }, [this](int exit_code) { end(exit_code); }) {}

void Watchdog::expect(const Program* program, double timeout_s) {
  const std::lock_guard lock(lookout_.mutex());
  program_ = program;
  timeout_s_ = timeout_s;
  latest_sign_ = Clock::now();
}

void Watchdog::end(int exit_code) {
  board_.mine().phase.store(Phase::failing);
  actions_.end(exit_code);
}

/// The exit code, where the process has to end. \pre the lookout's mutex is held
std::optional<int> Watchdog::look() {
  if (signal_ != nullptr && signal_->load() != 0) return heed_signal();
  const Clock::time_point now = Clock::now();
  vouch(now);
  if (launcher_ && getppid() != *launcher_) {
    tell("error: what started the processes has ended\n", teller());
    return exit_code(ErrorKind::runtime);
  }
  if (others_left(now)) return exit_code(ErrorKind::runtime);
  const bool moved = has_moved();
  if (moved) latest_ = now;
  // Some may work on their own for long while one that they will wait for is gone.
  if (moved && now - looked_ < kLifePeriod) return std::nullopt;
  looked_ = now;
  if (std::ranges::any_of(look_at(board_), is_gone)) {
    tell_stuck(kOneIsMissing);
    return exit_code(ErrorKind::runtime);
  }
  if (moved || is_ending(board_.mine().phase.load()) || seconds(now - latest_) < timeout_s_) {
    return std::nullopt;
  }
  tell_stuck(fmt::format("no process has got further for {:g} s", timeout_s_));
  return exit_code(ErrorKind::runtime);
}

/// Says that this process gets further while it works on its own. Outside of runs that may take as
/// long as it likes.
void Watchdog::vouch(Clock::time_point now) {
  RankState& mine = board_.mine();
  const bool works = mine.phase.load() == Phase::working;
  const std::uint64_t signs = mine.progress.load() - vouched_;
  if (std::exchange(signs_, signs) != signs || !works || program_ == nullptr) latest_sign_ = now;
  if (!works || seconds(now - latest_sign_) > kLongestWork * timeout_s_) return;
  mine.progress.fetch_add(1);
  ++vouched_;
}

bool Watchdog::has_moved() {
  std::uint64_t progress = 0;
  for (const RankState* state : board_.states) progress += state->progress.load();
  return std::exchange(progress_, progress) != progress;
}

/// Who starts processes asks all to end when one has ended unexpectedly, and soon kills them; then
/// that one is named. Where all are asked because somebody wants so, nobody has to be told why.
std::optional<int> Watchdog::heed_signal() {
  const int signal = signal_->load();
  board_.mine().signal.store(signal);
  const auto is_here = [&](const RankView& rank) { return board_.is_here(rank.rank); };
  const auto is_asked = [](const RankView& rank) {
    return rank.signal != 0 || rank.phase == Phase::leaving;
  };
  const auto has_failed = [&](const RankView& rank) {
    return rank.phase == Phase::failing && !is_asked(rank);
  };
  std::vector<RankView> ranks = look_at(board_);
  const auto is_clear = [&] {
    return board_.head->told.load() != 0 || std::ranges::any_of(ranks, is_lost) ||
           std::ranges::any_of(ranks, has_failed) ||
           (std::ranges::all_of(ranks, is_here) && std::ranges::all_of(ranks, is_asked));
  };
  for (const Clock::time_point begin = Clock::now();
       !is_clear() && Clock::now() - begin < kNewsTime; ranks = look_at(board_)) {
    std::this_thread::sleep_for(Lookout::kPeriod);
  }
  if (board_.head->told.load() != 0 || std::ranges::any_of(ranks, is_lost)) {
    tell_stuck(kOneIsMissing);
    return exit_code(ErrorKind::runtime);
  }
  if (std::ranges::any_of(ranks, has_failed)) return exit_code(ErrorKind::runtime);
  // A reader that has had enough is no error, here as in a single process.
  if (signal != SIGPIPE && !std::ranges::all_of(ranks, is_asked)) {
    const auto mine = std::ranges::find(ranks, board_.process, &RankView::rank);
    if (mine != ranks.end()) tell(describe_request(*mine, program_), board_.process);
  }
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

void Watchdog::tell_stuck(const std::string& what) {
  tell(describe_stuck(what, look_at(board_), program_), teller());
}

/// By the process `first`; by another one of its host if that does not come to it. Other hosts wait
/// for that of rank 0, whose launcher may end them meanwhile.
void Watchdog::tell(const std::string& text, int first) {
  constexpr std::uint32_t kNobody = 0;
  constexpr std::uint32_t kDone = 2;
  std::atomic<std::uint32_t>& told = board_.head->told;
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
