// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_writer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/msccl_steps_writer.h"

namespace espalier {
namespace {

/// A thread block to be.
struct Block {
  PlaceId gpu = 0;
  int lane = -1;  ///< of the program, or -1: it serves the other end of another's transfers
  int send = -1;
  int recv = -1;
  int channel = -1;
};

/// One end of a connection: GPU, whether it sends, and the peer. A channel has each once.
using End = std::tuple<PlaceId, bool, int>;

/// Assigns transfers to thread blocks, and these to channels.
class Wiring {
 public:
  /// `is_shared`: lanes also take the other ends of others' transfers.
  Wiring(const Program& program, bool is_shared) : program_(program), is_shared_(is_shared) {
    for (const Op& op : program.ops) add_lane(op);
    for (std::size_t i = 0; i < blocks_.size(); ++i) join_ends(i);
  }

  /// False when two connections of a thread block can't have the same channel.
  bool connect() {
    const std::size_t lanes = blocks_.size();
    for (std::size_t i = 0; i < lanes; ++i) {
      if (blocks_[i].send >= 0) connect_sender(i);
    }
    for (std::size_t i = 0; i < lanes; ++i) {
      if (receives_itself_[i] && !sender_of_.contains(i) && !connect_receiver(i)) return false;
    }
    return is_possible_ && assign_channels();
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  int channels() const { return channels_; }
  std::size_t of_lane(PlaceId gpu, int lane) const { return by_lane_.at({gpu, lane}); }
  /// The thread block that receives what a lane's sends.
  std::size_t receiver(std::size_t sender) const { return receiver_of_.at(sender); }
  std::size_t sender(std::size_t receiver) const { return sender_of_.at(receiver); }

 private:
  void add_lane(const Op& op) {
    const auto [entry, is_new] = by_lane_.try_emplace({op.at, op.lane}, blocks_.size());
    if (is_new) {
      blocks_.push_back({op.at, op.lane});
      receives_itself_.push_back(false);
    }
    const std::size_t number = entry->second;
    Block& block = blocks_[number];
    for_each_transfer(program_, op, [&](PlaceId from, PlaceId to) {
      if (from == op.at) {
        block.send = to;
      } else {
        block.recv = from;
        receives_itself_[number] = true;
      }
    });
  }

  std::size_t root(std::size_t block) {
    while (parent_[block] != block) block = parent_[block] = parent_[parent_[block]];
    return block;
  }

  std::set<End> ends_of(std::size_t block) const {
    std::set<End> ends;
    const Block& one = blocks_[block];
    if (one.send >= 0) ends.insert({one.gpu, true, one.send});
    if (one.recv >= 0) ends.insert({one.gpu, false, one.recv});
    return ends;
  }

  void join_ends(std::size_t block) {
    parent_.push_back(block);
    ends_.push_back(ends_of(block));
  }

  /// Puts two thread blocks on one channel, unless that has one end twice.
  bool join(std::size_t a, std::size_t b) {
    a = root(a), b = root(b);
    if (a == b) return true;
    if (ends_[a].size() < ends_[b].size()) std::swap(a, b);
    if (std::ranges::any_of(ends_[b], [&](const End& end) { return ends_[a].contains(end); })) {
      return false;
    }
    ends_[a].merge(ends_[b]);
    parent_[b] = a;
    return true;
  }

  /// Gives a thread block one more end, if its channel does not have it.
  bool take_end(std::size_t block, const End& end) { return ends_[root(block)].insert(end).second; }

  std::size_t add_block(PlaceId gpu, int send, int recv) {
    blocks_.push_back({gpu, -1, send, recv});
    receives_itself_.push_back(false);
    join_ends(blocks_.size() - 1);
    return blocks_.size() - 1;
  }

  void link(std::size_t sender, std::size_t receiver) {
    receiver_of_[sender] = receiver;
    sender_of_[receiver] = sender;
  }

  /// Who receives what lane `sender` sends: the lane of the same number there, if it receives from
  /// this GPU or nobody, and else a thread block of its own.
  void connect_sender(std::size_t sender) {
    const Block from = blocks_[sender];
    const auto same = by_lane_.find({from.send, from.lane});
    if (same != by_lane_.end() && !sender_of_.contains(same->second)) {
      const std::size_t receiver = same->second;
      const bool is_free = is_shared_ && blocks_[receiver].recv == -1;
      if (is_free && take_end(receiver, {from.send, false, from.gpu})) {
        if (join(sender, receiver)) {
          blocks_[receiver].recv = from.gpu;
          link(sender, receiver);
          return;
        }
        ends_[root(receiver)].erase({from.send, false, from.gpu});
      }
      if (blocks_[receiver].recv == from.gpu && join(sender, receiver)) {
        link(sender, receiver);
        return;
      }
    }
    const std::size_t receiver = add_block(from.send, -1, from.gpu);
    is_possible_ = is_possible_ && join(sender, receiver);
    link(sender, receiver);
  }

  /// Who sends what lane `receiver` fetches.
  bool connect_receiver(std::size_t receiver) {
    const Block to = blocks_[receiver];
    const auto same = by_lane_.find({to.recv, to.lane});
    if (is_shared_ && same != by_lane_.end() && blocks_[same->second].send == -1 &&
        take_end(same->second, {to.recv, true, to.gpu})) {
      if (join(same->second, receiver)) {
        blocks_[same->second].send = to.gpu;
        link(same->second, receiver);
        return true;
      }
      ends_[root(same->second)].erase({to.recv, true, to.gpu});
    }
    const std::size_t sender = add_block(to.recv, to.gpu, -1);
    link(sender, receiver);
    return join(sender, receiver);
  }

  /// The first channel on which nobody has the same ends, for one set of joined blocks after the
  /// other.
  bool assign_channels() {
    std::vector<std::set<End>> taken;
    std::vector<std::map<std::pair<PlaceId, bool>, int>> counts;
    std::map<std::size_t, int> channel_of;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::size_t set = root(i);
      if (!channel_of.contains(set)) {
        std::map<std::pair<PlaceId, bool>, int> wanted;
        for (const auto& [gpu, is_sender, peer] : ends_[set]) ++wanted[{gpu, is_sender}];
        const auto fits = [&](std::size_t channel) {
          return std::ranges::none_of(
                     ends_[set], [&](const End& end) { return taken[channel].contains(end); }) &&
                 std::ranges::all_of(wanted, [&](const auto& one) {
                   return counts[channel][one.first] + one.second <= MscclLimits::kBlocksOfChannel;
                 });
        };
        std::size_t channel = 0;
        while (channel < taken.size() && !fits(channel)) ++channel;
        if (channel == taken.size()) {
          taken.emplace_back();
          counts.emplace_back();
        }
        taken[channel].insert(ends_[set].begin(), ends_[set].end());
        for (const auto& [end, count] : wanted) counts[channel][end] += count;
        channel_of[set] = static_cast<int>(channel);
      }
      blocks_[i].channel = channel_of[set];
    }
    channels_ = std::max<int>(1, static_cast<int>(taken.size()));
    return true;
  }

  const Program& program_;
  bool is_shared_;
  std::vector<Block> blocks_;
  std::vector<bool> receives_itself_;  ///< by block: its lane fetches
  std::map<std::pair<PlaceId, int>, std::size_t> by_lane_;
  std::map<std::size_t, std::size_t> receiver_of_, sender_of_;  ///< ends of connections
  std::vector<std::size_t> parent_;                             ///< sets of joined blocks
  std::vector<std::set<End>> ends_;                             ///< by the root of a set
  bool is_possible_ = true;
  int channels_ = 1;
};

/// Ops by how many others come before them on the longest way: those of one level run side by side.
std::vector<std::vector<OpId>> levels_of(const Program& program) {
  std::vector<std::size_t> level(program.ops.size(), 0);
  std::map<std::pair<PlaceId, int>, std::size_t> of_lane;
  std::vector<std::vector<OpId>> levels;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    std::size_t& lane = of_lane[{op.at, op.lane}];
    level[id] = lane;
    for (const OpId earlier : program.dependencies_of(op)) {
      level[id] = std::max(level[id], level[earlier] + 1);
    }
    lane = level[id] + 1;
    if (levels.size() <= level[id]) levels.resize(level[id] + 1);
    levels[level[id]].push_back(id);
  }
  return levels;
}

/// Writes one end of an op.
class OpWriter {
 public:
  OpWriter(const Program& program, const Wiring& wiring, MscclStepsWriter& writer)
      : program_(program), wiring_(wiring), writer_(writer) {}

  void write_sending(OpId id) { write(id, true); }
  /// Or all of it, where nothing is sent.
  void write_rest(OpId id) { write(id, false); }

 private:
  using Kind = MscclAlgo::Kind;

  void write(OpId id, bool sending) {
    const Op& op = program_.ops[id];
    const std::size_t own = wiring_.of_lane(op.at, op.lane);
    const auto sources = program_.sources_of(op);
    const Slice dst = slice(op.dst, op.length);
    std::vector<Slice> operands;
    for (const Operand& source : sources) operands.push_back(slice(source, op.length));
    const auto remote = std::ranges::find_if(
        operands, [&](const Slice& operand) { return operand.place != op.at; });
    if (remote != operands.end()) {
      // Fetched: the peer's thread block sends it.
      const std::size_t other = remote == operands.begin() ? 1 : 0;
      if (sending) writer_.add(wiring_.sender(own), Kind::s, *remote, dst);
      if (!sending) writer_.add(own, Kind::rrc, operands[other], dst);
    } else if (op.dst.place != op.at) {
      if (sending) writer_.add(own, Kind::s, operands[0], dst);
      if (!sending) writer_.add(wiring_.receiver(own), Kind::r, operands[0], dst);
    } else if (!sending) {
      writer_.add_up(own, operands, dst);
    }
  }

  const Program& program_;
  const Wiring& wiring_;
  MscclStepsWriter& writer_;
};

}  // namespace

std::optional<MscclAlgo> write_msccl_steps(const Program& program, bool one_way,
                                           const WritingOptions& options) {
  Wiring wiring(program, !one_way);
  if (!wiring.connect()) return std::nullopt;
  MscclStepsWriter writer(program, options);
  // Thread blocks of lanes have the numbers of lanes.
  for (const bool of_lanes : {true, false}) {
    for (std::size_t i = 0; i < wiring.blocks().size(); ++i) {
      const Block& block = wiring.blocks()[i];
      if ((block.lane >= 0) == of_lanes) {
        writer.add_block(i, block.gpu, block.lane, {block.send, block.recv, block.channel, {}, 0});
      }
    }
  }
  // What GPUs have is sent before they wait for each other, as in a ring.
  OpWriter ends(program, wiring, writer);
  for (const std::vector<OpId>& level : levels_of(program)) {
    for (const OpId op : level) ends.write_sending(op);
    for (const OpId op : level) ends.write_rest(op);
  }
  return writer.finish(wiring.channels());
}

}  // namespace espalier
