// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <string_view>
#include <tuple>

#include "core/words.h"
#include "ir/print.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxNamed = 8;

std::string name_of(const RankView& rank) {
  std::string name = fmt::format("rank {}", rank.rank);
  if (rank.pid != 0) {
    name += rank.host.empty() ? fmt::format(" (process {})", rank.pid)
                              : fmt::format(" (process {} on {})", rank.pid, rank.host);
  }
  return name;
}

std::string state_of(const RankView& rank) {
  if (rank.life == Life::gone) return "has ended unexpectedly";
  if (rank.life == Life::stopped) return "is stopped";
  if (rank.phase == Phase::working) return "is busy with something of its own";
  return "does not get further";
}

std::string name_of(OpId op, const Program* program) {
  if (program == nullptr || op >= program->ops.size()) return fmt::format("op {}", op);
  return fmt::format("op {} '{}'", op, to_string(*program, op));
}

/// Where it was, as the end of a sentence.
std::string whereabouts(const RankView& rank, const Program* program) {
  if (rank.phase == Phase::running && rank.op != RankState::kNothing) {
    return fmt::format("last at {}", name_of(rank.op, program));
  }
  switch (rank.phase) {
    case Phase::running:
      return "in a run";
    case Phase::meeting:
      return "waiting for the others between runs";
    case Phase::leaving:
    case Phase::failing:
      return "at its end";
    case Phase::working:
      break;
  }
  return rank.runs == 0 ? "before its first run" : fmt::format("after {} runs", rank.runs);
}

std::string name_of_signal(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return fmt::format("signal {}", signal);
  }
}

/// A line for each host from which nothing is heard. Which of its processes is to blame, if one is,
/// is known there only.
std::string describe_silence(const std::vector<RankView>& ranks) {
  std::map<std::string, std::vector<std::string>> by_host;
  for (const RankView& rank : ranks) {
    if (rank.life != Life::silent || !is_lost(rank)) continue;
    by_host[rank.host].push_back(fmt::format("{}", rank.rank));
  }
  std::string text;
  for (const auto& [host, numbers] : by_host) {
    text += fmt::format("  nothing is heard of {}{} {}\n", host.empty() ? "" : host + ", with ",
                        numbers.size() == 1 ? "rank" : "ranks", join(numbers, ", "));
  }
  return text;
}

}  // namespace

std::int64_t begin_of_run(const Board& board, std::uint32_t run, std::int64_t now_ns) {
  // Everybody has read the other one by now, and nobody writes it before all meet again.
  board.head->begun[(run + 1) % 2].store(0);
  std::int64_t first_ns = 0;
  if (board.head->begun[run % 2].compare_exchange_strong(first_ns, now_ns)) return now_ns;
  return std::min(first_ns, now_ns);
}

bool is_lost(const RankView& rank) {
  const bool is_out_of_reach =
      rank.life == Life::gone || rank.life == Life::stopped || rank.life == Life::silent;
  return is_out_of_reach && !is_ending(rank.phase);
}

Life life_of(std::int32_t pid) {
  if (pid == 0) return Life::unknown;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return Life::gone;
  // The name before may have spaces and parentheses of its own.
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return Life::unknown;
  switch (line[name_end + 2]) {
    case 'T':
    case 't':
      return Life::stopped;
    case 'Z':
    case 'X':
      return Life::gone;
    default:
      return Life::alive;
  }
}

RankView look_at(const Board& board, int rank) {
  const auto number = static_cast<std::size_t>(rank);
  const RankState& state = *board.states[number];
  RankView view;
  view.rank = rank;
  view.pid = state.pid.load();
  if (number < board.hosts.size()) view.host = board.hosts[number];
  // First: what a process that is gone has said last is final.
  if (!board.is_here(rank)) {
    view.life = state.life.load();
  } else if (board.sees_processes) {
    view.life = life_of(view.pid);
  }
  view.phase = state.phase.load();
  view.runs = state.runs.load();
  view.position = state.position.load();
  view.op = state.op.load();
  view.awaited = state.awaited.load();
  view.signal = state.signal.load();
  return view;
}

std::vector<RankView> look_at(const Board& board) {
  std::vector<RankView> ranks;
  for (std::size_t i = 0; i < board.states.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (!board.is_here(rank) && board.states[i]->pid.load() == 0) continue;
    ranks.push_back(look_at(board, rank));
  }
  return ranks;
}

std::optional<RankView> last_rank(const std::vector<RankView>& ranks) {
  const RankView* last = nullptr;
  const auto order = [](const RankView& rank) {
    return std::tuple(!is_lost(rank), rank.life == Life::silent, rank.phase != Phase::working,
                      rank.phase != Phase::running, rank.position, rank.rank);
  };
  for (const RankView& rank : ranks) {
    if (is_ending(rank.phase)) continue;
    if (last == nullptr || order(rank) < order(*last)) last = &rank;
  }
  return last != nullptr ? std::optional(*last) : std::nullopt;
}

std::string describe_stuck(const std::string& what, const std::vector<RankView>& ranks,
                           const Program* program) {
  std::string text = "error: " + what + "\n";
  const auto last = last_rank(ranks);
  if (!last) return text;
  text += describe_silence(ranks);
  if (last->life != Life::silent) {
    text +=
        fmt::format("  {} {}, {}\n", name_of(*last), state_of(*last), whereabouts(*last, program));
  }
  std::size_t named = 0;
  std::size_t waiting = 0;
  for (const RankView& rank : ranks) {
    if (rank.rank == last->rank || is_ending(rank.phase) || rank.life == Life::silent) continue;
    if (is_lost(rank)) {
      text += fmt::format("  {} {}, too, {}\n", name_of(rank), state_of(rank),
                          whereabouts(rank, program));
      continue;
    }
    if (rank.phase == Phase::working) continue;
    ++waiting;
    if (named == kMaxNamed) continue;
    ++named;
    const bool in_op = rank.phase == Phase::running && rank.op != RankState::kNothing;
    if (in_op && rank.awaited >= 0) {
      text += fmt::format("  rank {} waits for rank {} in {}\n", rank.rank, rank.awaited,
                          name_of(rank.op, program));
    } else {
      text +=
          fmt::format("  rank {} waits for all others {}\n", rank.rank,
                      rank.phase == Phase::running ? "after its part of the run" : "between runs");
    }
  }
  if (waiting > named) text += fmt::format("  ... and {} more ranks wait\n", waiting - named);
  if (!is_lost(*last)) {
    text += "  help: if it is only slow, raise --timeout\n";
  }
  return text;
}

std::string describe_request(const RankView& rank, const Program* program) {
  const std::string what = rank.signal == SIGABRT
                               ? std::string("has aborted")
                               : "was asked to end (" + name_of_signal(rank.signal) + ")";
  return fmt::format("error: {} {}, {}\n", name_of(rank), what, whereabouts(rank, program));
}

}  // namespace espalier
