// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// What a process is doing: something of its own; its part of a run; waiting for all others before
/// or after one; or it ends, as all do or after an error.
enum class Phase : std::uint32_t { working, running, meeting, leaving, failing };
inline bool is_ending(Phase phase) { return phase == Phase::leaving || phase == Phase::failing; }

/// What the system says of a process. `silent`: of another host, from which nothing is heard.
enum class Life : std::uint8_t { unknown, alive, stopped, gone, silent };
/// From /proc: a process that waits to be collected is gone.
Life life_of(std::int32_t pid);

/// What a process tells the others on its host, in memory that they share: readable even when it
/// has been stopped or killed. Each is written by its own process only; that of a process on
/// another host by who brings the news from there (BoardMirror).
struct alignas(64) RankState {
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  std::atomic<std::uint64_t> progress{0};  ///< grows as long as the process gets further
  std::atomic<std::int32_t> pid{0};        ///< 0: not known to others
  std::atomic<Phase> phase{Phase::working};
  std::atomic<std::uint32_t> runs{0};             ///< of programs that it has begun
  std::atomic<std::uint32_t> position{kNothing};  ///< of its oldest op under way, in common_order
  std::atomic<OpId> op{kNothing};                 ///< that op
  std::atomic<std::int32_t> awaited{-1};          ///< the process whose message it needs first
  std::atomic<std::int32_t> signal{0};            ///< that it has been asked to end with; 0: none
  std::atomic<Life> life{Life::unknown};          ///< of one on another host
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                std::atomic<Phase>::is_always_lock_free && std::atomic<Life>::is_always_lock_free);
};

/// What is shared beside the states of ranks.
struct alignas(64) BoardHead {
  /// Who tells what went wrong: 0 until a process has taken that on, 2 when it has been said.
  std::atomic<std::uint32_t> told{0};
  /// When the first process here began a run, in ns of the system's steady clock, for runs of odd
  /// and even numbers; 0: none has.
  std::array<std::atomic<std::int64_t>, 2> begun{};
};

/// The processes as one of them sees them.
struct Board {
  int process = 0;
  BoardHead* head = nullptr;
  std::vector<RankState*> states;  ///< by process
  std::vector<std::string> hosts;  ///< by process; empty before they are known
  std::vector<int> groups;         ///< by process: the first one of its host; empty: all are here
  /// The numbers of the others' processes mean the same here; not so across containers.
  bool sees_processes = true;

  RankState& mine() const { return *states[static_cast<std::size_t>(process)]; }
  int group(int rank) const { return groups.empty() ? 0 : groups[static_cast<std::size_t>(rank)]; }
  bool is_here(int rank) const { return group(rank) == group(process); }
};

/// When the first process of this host began the run of that number, which this one begins at
/// `now_ns`: those that share a processor with it come to it later, and what they do then takes its
/// time, too. \pre all processes have met before this run, and after the one before
std::int64_t begin_of_run(const Board& board, std::uint32_t run, std::int64_t now_ns);

/// A process when something went wrong; plain data.
struct RankView {
  int rank = 0;
  std::int32_t pid = 0;
  std::string host;
  Life life = Life::unknown;
  Phase phase = Phase::working;
  std::uint32_t runs = 0;
  std::uint32_t position = RankState::kNothing;
  OpId op = RankState::kNothing;
  int awaited = -1;
  int signal = 0;
  bool has_told = false;  ///< why all end, before they have met (Siblings::note_told)
};

/// Gone, stopped or not heard of, without having been at its end.
bool is_lost(const RankView& rank);

/// What is known of a rank.
RankView look_at(const Board& board, int rank);
/// Those that something is known of: the ones on this host, and others once there is news from
/// theirs.
std::vector<RankView> look_at(const Board& board);

/// Whom the others wait for: who is lost; else who
/// has work of its own; else whose oldest op comes first. Nobody where there is nobody to be
/// blamed, as no process is in a run.
std::optional<RankView> last_rank(const std::vector<RankView>& ranks);

/// What went wrong in sentences, a line each: `what`, then who was last at which op, and who waits
/// for whom, directly or not, at which op. Of a host from which nothing is heard it says no more
/// than that: its ranks may be well. `program`: that of the run, null outside of one.
std::string describe_stuck(const std::string& what, const std::vector<RankView>& ranks,
                           const Program* program);

/// That a process ends because of the signal it was sent, and what it was at, in a line.
std::string describe_request(const RankView& rank, const Program* program);

}  // namespace espalier
