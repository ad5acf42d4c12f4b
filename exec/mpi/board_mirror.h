// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "exec/mpi/board.h"
#include "exec/mpi/socket.h"
#include "exec/mpi/transport.h"

namespace espalier {

/// Keeps the boards of several hosts alike, on a thread of its own and connections beside those of
/// the transport, so that every process knows of all others what they are at.
///
/// All processes that are not on rank 0's host connect to rank 0. The first of a host that lives
/// tells it twenty times a second what those of the host are at, and is told what all others are
/// at. A connection that ends without last words is a process that has ended unexpectedly; a host
/// that says nothing for two seconds is silent.
class BoardMirror {
 public:
  /// Called by all processes where there are several hosts, with the board of this one. The board
  /// must outlive it.
  BoardMirror(const Board& board, Transport& transport);
  /// Says last words.
  ~BoardMirror();
  BoardMirror(const BoardMirror&) = delete;
  BoardMirror& operator=(const BoardMirror&) = delete;

  /// Tells the others at once what this process is at, as the last that they hear of it. Called on
  /// any thread, before the process ends.
  void say_last_words();

 private:
  using Clock = std::chrono::steady_clock;

  /// What others are told of a process; plain.
  struct News {
    std::int32_t rank = 0;
    std::int32_t pid = 0;
    std::uint64_t progress = 0;
    Phase phase = Phase::working;
    std::uint32_t runs = 0;
    std::uint32_t position = 0;
    OpId op = 0;
    std::int32_t awaited = 0;
    std::int32_t signal = 0;
    Life life = Life::unknown;
    std::array<std::uint8_t, 7> unused = {};  ///< in place of bytes that nobody has set
  };
  static_assert(std::has_unique_object_representations_v<News>);
  /// Where rank 0 waits for the others.
  struct Meeting {
    std::vector<std::string> addresses;
    int port = 0;
    std::uint64_t token = 0;
  };
  struct Visitor {
    Socket socket;
    int rank = 0;
  };

  void meet(Transport& transport);
  void serve();
  void visit();
  void welcome();
  bool answer(Visitor& visitor);
  std::optional<Socket> find_rank_0() const;
  bool is_speaker() const;
  void note_silence(int group) const;
  void note_end(int rank) const;
  std::vector<News> news_except(int group) const;
  std::vector<News> news_of_group(int group) const;
  News news_of(int rank) const;
  bool send(const Socket& socket, const std::vector<News>& news);
  bool receive(const Socket& socket) const;
  bool is_ending() const;
  int ranks() const { return static_cast<int>(board_.states.size()); }
  RankState& state_of(int rank) const { return *board_.states[static_cast<std::size_t>(rank)]; }

  const Board& board_;
  Meeting meeting_;
  Socket listener_;                              ///< at rank 0
  std::map<int, Clock::time_point> last_heard_;  ///< at rank 0: by host, as Board::groups
  mutable std::mutex mutex_;                     // guards what follows
  std::vector<Visitor> visitors_;                ///< at rank 0
  Socket rank_0_;                                ///< elsewhere
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace espalier
