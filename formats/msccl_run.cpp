// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "core/words.h"

namespace espalier {
namespace {

/// What a thread block that runs has done.
struct Progress {
  int next = 0;    ///< step, of all
  int end = 0;     ///< of its steps
  int pieces = 0;  ///< of that step that are done
};

class Runner {
 public:
  Runner(const MscclSteps& steps, int slots, int piece_chunks)
      : steps_(steps), slots_(slots), piece_(piece_chunks) {
    const auto count = static_cast<std::size_t>(steps.count());
    done_.assign(count, false);
    in_flight_.assign(count, 0);
    number_connections();
    for (std::size_t gpu = 0; gpu < steps.first.size(); ++gpu) {
      for (std::size_t block = 0; block < steps.first[gpu].size(); ++block) {
        const int first = steps.first[gpu][block];
        const auto length = steps.algo.gpus[gpu].blocks[block].steps.size();
        blocks_.push_back({first, first + static_cast<int>(length), 0});
      }
    }
    waiting_.resize(count + connections_);
  }

  MscclOrder run() {
    // In rounds, every thread block one piece at a time: those that keep pace with each other in
    // the runtime do so here, and steps that belong together are close to each other in the order.
    std::deque<std::size_t> ready;
    for (std::size_t block = 0; block < blocks_.size(); ++block) ready.push_back(block);
    while (!ready.empty()) {
      const std::size_t block = ready.front();
      ready.pop_front();
      Progress& progress = blocks_[block];
      if (progress.next == progress.end) continue;
      const int obstacle = obstacle_of(progress);
      if (obstacle >= 0) {
        waiting_[static_cast<std::size_t>(obstacle)].push_back(block);
        continue;
      }
      advance(progress, ready);
      ready.push_back(block);
    }
    for (const Progress& progress : blocks_) {
      if (progress.next != progress.end) order_.stuck.push_back(progress.next);
    }
    return std::move(order_);
  }

 private:
  int pieces_of(int id) const { return std::max(1, (steps_.step(id).count + piece_ - 1) / piece_); }

  /// Connections are numbered by their first sender, after all steps, for `waiting_`.
  void number_connections() {
    connection_of_.assign(done_.size(), -1);
    std::map<std::tuple<int, int, int>, int> known;
    for (int id = 0; id < steps_.count(); ++id) {
      if (!sends(steps_.step(id).kind)) continue;
      const MscclSteps::Id& at = steps_.ids[static_cast<std::size_t>(id)];
      const MscclAlgo::Block& block = steps_.algo.gpus[static_cast<std::size_t>(at.gpu)]
                                          .blocks[static_cast<std::size_t>(at.block)];
      const auto [entry, is_new] =
          known.try_emplace({at.gpu, block.send, block.channel}, static_cast<int>(connections_));
      if (is_new) ++connections_;
      connection_of_[static_cast<std::size_t>(id)] = entry->second;
    }
    used_.assign(connections_, 0);
  }

  /// What a thread block waits for, as an index of `waiting_`, or -1.
  int obstacle_of(const Progress& progress) const {
    const int id = progress.next;
    const int awaited = progress.pieces == 0 ? steps_.awaited(id) : -1;
    if (awaited >= 0 && !done_[static_cast<std::size_t>(awaited)]) return awaited;
    if (receives(steps_.step(id).kind)) {
      const int sender = steps_.sender[static_cast<std::size_t>(id)];
      if (sender < 0) return id;  // nobody ever sends it: waits for itself
      if (in_flight_[static_cast<std::size_t>(sender)] == 0) return sender;
    }
    if (!sends(steps_.step(id).kind)) return -1;
    const int connection = connection_of_[static_cast<std::size_t>(id)];
    return used_[static_cast<std::size_t>(connection)] < slots_ ? -1 : steps_.count() + connection;
  }

  void wake(std::size_t obstacle, std::deque<std::size_t>& ready) {
    for (const std::size_t block : waiting_[obstacle]) ready.push_back(block);
    waiting_[obstacle].clear();
  }

  void advance(Progress& progress, std::deque<std::size_t>& ready) {
    const auto id = static_cast<std::size_t>(progress.next);
    const MscclAlgo::Kind kind = steps_.step(progress.next).kind;
    if (receives(kind)) {
      const auto sender = static_cast<std::size_t>(steps_.sender[id]);
      --in_flight_[sender];
      const auto connection = static_cast<std::size_t>(connection_of_[sender]);
      --used_[connection];
      wake(static_cast<std::size_t>(steps_.count()) + connection, ready);
    }
    if (sends(kind)) {
      ++in_flight_[id];
      ++used_[static_cast<std::size_t>(connection_of_[id])];
      wake(id, ready);
    }
    if (++progress.pieces < pieces_of(progress.next)) return;
    done_[id] = true;
    order_.order.push_back(progress.next);
    wake(id, ready);
    ++progress.next;
    progress.pieces = 0;
  }

  const MscclSteps& steps_;
  int slots_;
  int piece_;
  std::size_t connections_ = 0;
  std::vector<int> connection_of_;  ///< by step that sends
  std::vector<int> in_flight_;      ///< by step that sends: pieces that were not received yet
  std::vector<int> used_;           ///< slots, by connection
  std::vector<char> done_;
  std::vector<Progress> blocks_;
  std::vector<std::vector<std::size_t>> waiting_;  ///< thread blocks, by step and by connection
  MscclOrder order_;
};

bool runs(const MscclSteps& steps, int slots, int piece_chunks) {
  return run_steps(steps, slots, piece_chunks).stuck.empty();
}

/// The least slots with which it runs. \pre with enough it does.
int least_slots(const MscclSteps& steps, int piece_chunks) {
  int enough = 1;
  while (!runs(steps, enough, piece_chunks)) enough *= 2;
  int low = enough / 2 + 1;
  while (low < enough) {
    const int middle = (low + enough) / 2;
    if (runs(steps, middle, piece_chunks))
      enough = middle;
    else
      low = middle + 1;
  }
  return enough;
}

/// FIFOs of the runtime: slots of a connection, and bytes that one holds (src/include/msccl.h: a
/// chunk takes four of the eight steps of Simple, 2 MiB; one step of LL and LL128).
struct Slots {
  int count = 2;
  std::int64_t bytes = std::int64_t{2} << 20;
};

Slots slots_of(const std::string& protocol) {
  if (protocol == "LL") return {8, 16 * 1024};
  if (protocol == "LL128") return {8, 49 * 1024};
  return {};
}

}  // namespace

MscclSteps::MscclSteps(const MscclAlgo& given) : algo(given) {
  for (int gpu = 0; gpu < algo.ranks(); ++gpu) {
    auto& firsts = first.emplace_back();
    const auto& blocks = algo.gpus[static_cast<std::size_t>(gpu)].blocks;
    for (int block = 0; block < static_cast<int>(blocks.size()); ++block) {
      firsts.push_back(count());
      const auto steps = static_cast<int>(blocks[static_cast<std::size_t>(block)].steps.size());
      for (int step = 0; step < steps; ++step) ids.push_back({gpu, block, step});
    }
  }
  pair_messages();
}

const MscclAlgo::Step& MscclSteps::step(int id) const {
  const Id& at = ids[static_cast<std::size_t>(id)];
  return algo.gpus[static_cast<std::size_t>(at.gpu)]
      .blocks[static_cast<std::size_t>(at.block)]
      .steps[static_cast<std::size_t>(at.step)];
}

int MscclSteps::awaited(int id) const {
  const MscclAlgo::Step& waits = step(id);
  if (waits.block < 0) return -1;
  const auto gpu = static_cast<std::size_t>(ids[static_cast<std::size_t>(id)].gpu);
  const auto& steps = algo.gpus[gpu].blocks[static_cast<std::size_t>(waits.block)].steps;
  for (auto next = static_cast<std::size_t>(waits.step); next < steps.size(); ++next) {
    if (!steps[next].awaited || steps[next].kind == MscclAlgo::Kind::nop) continue;
    return first[gpu][static_cast<std::size_t>(waits.block)] + static_cast<int>(next);
  }
  return kUnsaid;
}

std::string MscclSteps::name(int id) const {
  const Id& at = ids[static_cast<std::size_t>(id)];
  return step_name(algo, at.gpu, at.block, at.step);
}

void MscclSteps::pair_messages() {
  using Connection = std::tuple<int, int, int>;  // from, to, channel
  std::map<Connection, std::vector<int>> sent, received;
  for (int id = 0; id < count(); ++id) {
    const Id& at = ids[static_cast<std::size_t>(id)];
    const MscclAlgo::Block& block =
        algo.gpus[static_cast<std::size_t>(at.gpu)].blocks[static_cast<std::size_t>(at.block)];
    const MscclAlgo::Kind kind = step(id).kind;
    if (sends(kind)) sent[{at.gpu, block.send, block.channel}].push_back(id);
    if (receives(kind)) received[{block.recv, at.gpu, block.channel}].push_back(id);
  }
  receiver.assign(ids.size(), -1);
  sender.assign(ids.size(), -1);
  for (const auto& [connection, senders] : sent) received.try_emplace(connection);
  for (const auto& [connection, receivers] : received) {
    const std::vector<int>& senders = sent[connection];
    const auto& [from, to, channel] = connection;
    const auto add = [&](int id, const std::string& message) {
      problems.push_back({"R3", message, {}, {{}, step(id).line, 0}});
    };
    for (std::size_t i = 0; i < std::min(senders.size(), receivers.size()); ++i) {
      receiver[static_cast<std::size_t>(senders[i])] = receivers[i];
      sender[static_cast<std::size_t>(receivers[i])] = senders[i];
      if (step(senders[i]).count == step(receivers[i]).count) continue;
      add(receivers[i],
          fmt::format("{}: it receives {} chunks, but {} sends {}", name(receivers[i]),
                      step(receivers[i]).count, name(senders[i]), step(senders[i]).count));
    }
    if (senders.size() == receivers.size()) continue;
    const bool more_sent = senders.size() > receivers.size();
    const int odd = more_sent ? senders[receivers.size()] : receivers[senders.size()];
    add(odd,
        fmt::format("{}: {}: over the connection from gpu {} to gpu {} on channel {}, {} {} sent "
                    "and {} received",
                    name(odd), more_sent ? "nobody receives this one" : "it waits for ever", from,
                    to, channel, counted(senders.size(), "message"),
                    senders.size() == 1 ? "is" : "are", receivers.size()));
  }
}

MscclOrder run_steps(const MscclSteps& steps, int slots, int piece_chunks) {
  return Runner(steps, slots, piece_chunks).run();
}

MscclFifos fifos_of(const MscclSteps& steps) {
  const Slots slots = slots_of(steps.algo.protocol);
  int most = 1;
  for (int id = 0; id < steps.count(); ++id) most = std::max(most, steps.step(id).count);
  MscclFifos fifos;
  fifos.slots = slots.count;
  fifos.least_slots = least_slots(steps, most);
  if (fifos.least_slots > slots.count) {
    fifos.hangs_above_bytes = 0;
    return fifos;
  }
  if (runs(steps, slots.count, 1)) return fifos;
  // The largest pieces with which it hangs: those of messages whose chunks are larger than a slot
  // divided by one more.
  int hangs = 1, passes = most;
  while (hangs + 1 < passes) {
    const int middle = (hangs + passes) / 2;
    (runs(steps, slots.count, middle) ? passes : hangs) = middle;
  }
  fifos.hangs_above_bytes = slots.bytes / (hangs + 1) * steps.algo.chunks;
  return fifos;
}

}  // namespace espalier
