// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/start_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "core/error.h"

namespace espalier {
namespace {

/// For the error that a process may have told before it ended, and for its successor, where one
/// run follows another.
constexpr double kGoneTime_s = 0.5;
/// All stay for so long when something is wrong: who sees it a little later must not take those
/// that have ended because of it for the reason.
constexpr auto kTellingTime = std::chrono::milliseconds(1000);
constexpr auto kNewsTime = std::chrono::milliseconds(300);
/// For a launcher to end one that was stopped, which it has to continue: the others have ended
/// because of it.
constexpr auto kTimeToBeEnded = std::chrono::seconds(5);
constexpr const char* kOneIsMissing = "the program cannot start without one of its processes";

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

StartWatch::StartWatch(int rank, Siblings siblings, double timeout_s, Watchdog::Actions actions,
                       const std::atomic<int>& signal)
    : rank_(rank),
      siblings_(std::move(siblings)),
      timeout_s_(timeout_s),
      actions_(std::move(actions)),
      signal_(signal),
      begin_(Clock::now()),
      looked_(begin_),
      lookout_(
          "start watch", [this] { return look(); }, actions_.end) {}

std::vector<RankView> StartWatch::look_at_others() {
  std::vector<RankView> ranks = siblings_.look();
  others_told_ = others_told_ || std::ranges::any_of(ranks, [&](const RankView& rank) {
                   return rank.has_told && rank.rank != rank_;
                 });
  return ranks;
}

/// The exit code, where the process has to end.
std::optional<int> StartWatch::look() {
  const Clock::time_point now = Clock::now();
  if (now - std::exchange(looked_, now) > kTellingTime) back_since_ = now;
  const bool is_just_back = back_since_ && now - *back_since_ < kTimeToBeEnded;
  if (signal_.load() != 0) return is_just_back ? 128 + signal_.load() : heed_signal();
  if (is_just_back) {
    lost_since_.clear();
    return std::nullopt;
  }
  std::vector<RankView> ranks = look_at_others();
  bool is_over = false;
  for (RankView& rank : ranks) {
    if (!is_lost(rank)) {
      lost_since_.erase(rank.rank);
      continue;
    }
    const double since_s = seconds(now - lost_since_.try_emplace(rank.rank, now).first->second);
    if (since_s >= (rank.life == Life::gone ? std::min(kGoneTime_s, timeout_s_) : timeout_s_)) {
      is_over = true;
    } else {
      rank.life = Life::unknown;  // it may still come
    }
  }
  if (is_over) {
    tell(describe_stuck(kOneIsMissing, ranks, nullptr), ranks);
    return exit_code(ErrorKind::runtime);
  }
  const double limit_s = std::max(kStartTime_s, timeout_s_);
  if (seconds(now - begin_) < limit_s) return std::nullopt;
  tell(fmt::format("error: the processes have not started within {:g} s: one on another host may "
                   "be missing or stopped\n",
                   limit_s),
       ranks);
  return exit_code(ErrorKind::runtime);
}

/// As Watchdog does: who was ended before all were asked to end is named.
int StartWatch::heed_signal() {
  std::vector<RankView> ranks = look_at_others();
  const auto is_gone = [](const RankView& rank) { return rank.life == Life::gone; };
  if (std::ranges::none_of(ranks, is_gone)) {
    std::this_thread::sleep_for(kNewsTime);  // the others look before this one is gone
    return 128 + signal_.load();
  }
  std::erase_if(ranks, [](const RankView& rank) { return rank.life == Life::silent; });
  tell(describe_stuck(kOneIsMissing, ranks, nullptr), ranks);
  return exit_code(ErrorKind::runtime);
}

/// By the first process of this host that lives, or rank 0 where the others can't be seen.
void StartWatch::tell(const std::string& text, const std::vector<RankView>& ranks) const {
  const auto lives = [](const RankView& rank) { return rank.life == Life::alive; };
  const auto first = std::ranges::find_if(ranks, lives);
  // Where another one has told why, this one may have seen that one go only, and never the reason.
  if (!others_told_ && rank_ == (first != ranks.end() ? first->rank : 0)) {
    Siblings::note_told();
    actions_.tell(text);
  }
  std::this_thread::sleep_for(kTellingTime);
  if (first == ranks.end() || first->rank == rank_) return;
  // That one may not have seen who is missing before it was, and then takes the timeout to know.
  const Clock::time_point begin = Clock::now();
  while (seconds(Clock::now() - begin) < timeout_s_ && life_of(first->pid) == Life::alive) {
    std::this_thread::sleep_for(Lookout::kPeriod);
  }
}

}  // namespace espalier
