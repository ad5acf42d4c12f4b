// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/board_mirror.h"

#include <poll.h>

#include <algorithm>
#include <random>
#include <utility>

#include "exec/mpi/exchange.h"
#include "exec/mpi/packed.h"

namespace espalier {
namespace {

constexpr auto kPulse = std::chrono::milliseconds(50);
constexpr auto kSilence = std::chrono::seconds(2);
/// For one who has begun to say something to say all of it.
constexpr auto kSentenceTime = std::chrono::milliseconds(500);
constexpr auto kPause = std::chrono::seconds(1);

/// Who comes to rank 0.
struct Introduction {
  std::uint64_t token = 0;
  std::int64_t rank = 0;
};

template <class Object>
std::span<std::byte> bytes_of(Object& object) {
  static_assert(std::has_unique_object_representations_v<Object>);
  return std::as_writable_bytes(std::span(&object, 1));
}

/// Whether there is something to be read, or the other end is gone, within that time.
bool has_something(const Socket& socket, std::chrono::milliseconds time) {
  pollfd one{socket.number(), POLLIN, 0};
  return poll(&one, 1, static_cast<int>(time.count())) > 0;
}

}  // namespace

BoardMirror::BoardMirror(const Board& board, Transport& transport) : board_(board) {
  meet(transport);
  const auto work = [this] { board_.process == 0 ? serve() : visit(); };
  if (board_.process == 0 || !board_.is_here(0)) thread_ = std::thread(work);
}

BoardMirror::~BoardMirror() {
  say_last_words();
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool BoardMirror::is_ending() const {
  const std::lock_guard lock(mutex_);
  return ending_;
}

void BoardMirror::meet(Transport& transport) {
  Packed mine;
  if (board_.process == 0) {
    std::random_device random;
    listener_ = std::move(listen_at(0).value());
    meeting_ = {addresses_of_this_host(), port_of(listener_),
                (std::uint64_t{random()} << 32) | random()};
    mine.put(meeting_.addresses.size());
    for (const std::string& address : meeting_.addresses) mine.put(address);
    mine.put(meeting_.port);
    mine.put(meeting_.token);
  }
  const auto all = gather_from_all(transport, mine.bytes());
  if (board_.process == 0) return;
  Unpacking unpacking(all.front());
  std::size_t count = 0;
  unpacking.get(count);
  meeting_.addresses.resize(count);
  for (std::string& address : meeting_.addresses) unpacking.get(address);
  unpacking.get(meeting_.port);
  unpacking.get(meeting_.token);
}

BoardMirror::News BoardMirror::news_of(int rank) const {
  const RankView view = look_at(board_, rank);
  News news;
  news.rank = rank;
  news.pid = view.pid;
  news.progress = state_of(rank).progress.load();
  news.phase = view.phase;
  news.runs = view.runs;
  news.position = view.position;
  news.op = view.op;
  news.awaited = view.awaited;
  news.signal = view.signal;
  news.life = view.life;
  return news;
}

std::vector<BoardMirror::News> BoardMirror::news_of_group(int group) const {
  std::vector<News> all;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (board_.group(rank) == group) all.push_back(news_of(rank));
  }
  return all;
}

std::vector<BoardMirror::News> BoardMirror::news_except(int group) const {
  std::vector<News> all;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (board_.group(rank) != group && state_of(rank).pid.load() != 0) {
      all.push_back(news_of(rank));
    }
  }
  return all;
}

/// False where the other end is gone. \pre mutex_ is held
bool BoardMirror::send(const Socket& socket, const std::vector<News>& news) {
  Packed packed;
  packed.put(news);
  return send_all(socket, packed.bytes(), Clock::now() + kSentenceTime);
}

/// Reads what there is, and notes it. False where the other end is gone. \pre mutex_ is held
bool BoardMirror::receive(const Socket& socket) const {
  const Deadline soon = Clock::now() + kSentenceTime;
  std::size_t count = 0;
  if (!receive_all(socket, bytes_of(count), soon) || count > static_cast<std::size_t>(ranks()))
    return false;
  std::vector<News> all(count);
  if (!receive_all(socket, std::as_writable_bytes(std::span(all)), soon)) return false;
  for (const News& news : all) {
    if (news.rank < 0 || news.rank >= ranks() || board_.is_here(news.rank)) continue;
    RankState& state = state_of(news.rank);
    // Who has ended stays so, whatever the others of its host knew before.
    if (state.life.load() != Life::gone) state.life.store(news.life);
    state.phase.store(news.phase);
    state.runs.store(news.runs);
    state.position.store(news.position);
    state.op.store(news.op);
    state.awaited.store(news.awaited);
    state.signal.store(news.signal);
    state.progress.store(news.progress);
    state.pid.store(news.pid);
  }
  return true;
}

void BoardMirror::note_silence(int group) const {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (board_.group(rank) != group || board_.is_here(rank)) continue;
    Life known = Life::alive;
    state_of(rank).life.compare_exchange_strong(known, Life::silent);
  }
}

/// A connection has ended.
void BoardMirror::note_end(int rank) const { state_of(rank).life.store(Life::gone); }

void BoardMirror::say_last_words() {
  const std::lock_guard lock(mutex_);
  for (const Visitor& visitor : visitors_) send(visitor.socket, {news_of(board_.process)});
  if (rank_0_) send(rank_0_, {news_of(board_.process)});
}

void BoardMirror::serve() {
  while (!is_ending()) {
    std::vector<pollfd> polled{{listener_.number(), POLLIN, 0}};
    for (const Visitor& visitor : visitors_) polled.push_back({visitor.socket.number(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), static_cast<int>(kPulse.count())) > 0) {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = visitors_.size(); i > 0; --i) {
        if (polled[i].revents == 0 || answer(visitors_[i - 1])) continue;
        note_end(visitors_[i - 1].rank);
        visitors_.erase(visitors_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      }
      if (polled.front().revents != 0) welcome();
    }
    const Clock::time_point now = Clock::now();
    for (const auto& [group, heard] : last_heard_) {
      if (now - heard > kSilence) note_silence(group);
    }
  }
}

void BoardMirror::welcome() {
  auto socket = accept_at(listener_, Clock::now());
  if (!socket) return;
  Introduction who;
  const bool is_known = receive_all(*socket, bytes_of(who), Clock::now() + kSentenceTime) &&
                        who.token == meeting_.token && who.rank > 0 && who.rank < ranks();
  if (is_known) visitors_.push_back({std::move(*socket), static_cast<int>(who.rank)});
}

bool BoardMirror::answer(Visitor& visitor) {
  if (!receive(visitor.socket)) return false;
  const int group = board_.group(visitor.rank);
  last_heard_[group] = Clock::now();
  return send(visitor.socket, news_except(group));
}

std::optional<Socket> BoardMirror::find_rank_0() const {
  while (!is_ending()) {
    for (const std::string& address : meeting_.addresses) {
      auto socket = connect_to(address, meeting_.port, Clock::now() + kSilence);
      Introduction me{meeting_.token, board_.process};
      if (socket && send_all(*socket, bytes_of(me), Clock::now() + kSentenceTime)) return socket;
    }
    for (auto waited = Clock::duration::zero(); waited < kPause && !is_ending(); waited += kPulse) {
      std::this_thread::sleep_for(kPulse);
    }
  }
  return std::nullopt;
}

/// Whether this is the first process of its host that lives.
bool BoardMirror::is_speaker() const {
  for (int rank = 0; rank < board_.process; ++rank) {
    if (!board_.is_here(rank)) continue;
    const News news = news_of(rank);
    if (news.life == Life::alive && !espalier::is_ending(news.phase)) return false;
  }
  return true;
}

void BoardMirror::visit() {
  std::optional<Socket> found = find_rank_0();
  if (!found) return;
  {
    const std::lock_guard lock(mutex_);
    rank_0_ = std::move(*found);
  }
  Clock::time_point heard = Clock::now();
  while (!is_ending()) {
    const bool speaks = is_speaker();
    if (speaks) {
      const std::lock_guard lock(mutex_);
      send(rank_0_, news_of_group(board_.group(board_.process)));
    }
    const Clock::time_point next = Clock::now() + kPulse;
    while (has_something(rank_0_, std::chrono::ceil<std::chrono::milliseconds>(
                                      std::max(next - Clock::now(), Clock::duration::zero())))) {
      const std::lock_guard lock(mutex_);
      if (!receive(rank_0_)) {
        note_end(0);
        return;
      }
      heard = Clock::now();
    }
    if (!speaks || Clock::now() - heard <= kSilence) continue;
    for (const int group : board_.groups) note_silence(group);
  }
}

}  // namespace espalier
