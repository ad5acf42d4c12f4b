// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/words.h"
#include "formats/msccl_algo.h"
#include "ir/builder.h"
#include "ir/op_order.h"
#include "ir/print.h"
#include "ir/scratch_space.h"
#include "ir/stage_operands.h"

namespace espalier {
namespace {

constexpr std::size_t kMostNamed = 8;  ///< problems that are spelt out

bool has_label(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::reducescatter:
    case Collective::alltoall:
    case Collective::broadcast:
    case Collective::reduce:
      return true;
    default:
      return false;
  }
}

void require_sayable(const Program& program) {
  DiagnosticList problems;
  if (!has_label(program.contract.collective)) {
    problems.add({}, fmt::format("MSCCL has no {}", to_string(program.contract.collective)));
  }
  if (program.hosts > 0) problems.add({}, "MSCCL's thread blocks don't use host memory");
  if (program.relays > 0) {
    problems.add({}, "every GPU of an MSCCL algorithm is a rank, but this has relays");
  }
  std::size_t found = 0;
  const auto refuse = [&](OpId op, const std::string& why) {
    if (++found > kMostNamed) return;
    problems.add({}, fmt::format("op {} ({}): {}", op, to_string(program, op), why));
  };
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind != OpKind::combine) refuse(id, "MSCCL's steps move data, and do nothing else");
    if (op.in_switch) refuse(id, "MSCCL's steps don't use switches");
    if (op.via >= 0) refuse(id, "MSCCL does not let a program choose the way");
  }
  if (!program.vias.empty()) {
    problems.add({}, "the program names ways over the machine",
                 "--links fabric, or optimal:fabric=1, plan without");
  }
  if (found > kMostNamed) problems.add({}, fmt::format("and {} ops more", found - kMostNamed));
  problems.throw_if_any(ErrorKind::unsupported);
}

/// The largest part of a chunk that every slice of the program is a multiple of.
std::int64_t common_units(const Program& program) {
  std::int64_t common = block_units(program.contract);
  const auto include = [&](std::int64_t units) { common = std::gcd(common, units); };
  for (const Op& op : program.ops) {
    include(op.length);
    include(op.dst.begin);
    for (const Operand& source : program.sources_of(op)) include(source.begin);
  }
  return common;
}

/// A lane of the new program before it has a number: that of an op of the program given, by the
/// place that carries it out.
struct LaneKey {
  PlaceId place = 0;
  int lane = 0;
  bool is_fetched = false;  ///< copies that their destination fetched become pushes of its own
  auto operator<=>(const LaneKey&) const = default;
};

/// An op of the new program.
struct Part {
  Slice dst;
  std::vector<Slice> sources;
  PlaceId at = 0;
  LaneKey lane;

  int peer_sent() const { return dst.place != at ? dst.place : -1; }
  int peer_received() const {
    const auto remote =
        std::ranges::find_if(sources, [&](const Slice& source) { return source.place != at; });
    return remote == sources.end() ? -1 : remote->place;
  }
};

class Lowering {
 public:
  Lowering(const Program& program, bool one_way)
      : program_(program),
        one_way_(one_way),
        scale_(common_units(program)),
        scratch_(scaled(tmp_units(program), scale_), block_units(program.contract) / scale_) {}

  MscclLowering lower() {
    const LaneChains lanes = lane_chains(program_);
    for (const OpId op : run_order(program_, lanes)) add_op(op);
    number_lanes();
    MscclLowering lowered;
    lowered.program = build();
    lowered.changes = changes();
    return lowered;
  }

 private:
  static std::vector<std::int64_t> scaled(std::vector<std::int64_t> units, std::int64_t scale) {
    for (std::int64_t& one : units) one /= scale;
    return units;
  }

  Slice scaled(const Operand& operand, std::int64_t begin, std::int64_t length) const {
    return {operand.place, operand.buffer, operand.begin / scale_ + begin, length};
  }

  void add_op(OpId id) {
    const Op& op = program_.ops[id];
    const std::int64_t length = op.length / scale_;
    const std::int64_t most = MscclLimits::kChunksOfStep;
    // As few pieces as there can be, of nearly equal length.
    const std::int64_t pieces = (length + most - 1) / most;
    if (pieces > 1) ++cut_;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t begin = length * piece / pieces;
      const std::int64_t end = length * (piece + 1) / pieces;
      std::vector<Slice> sources;
      for (const Operand& source : program_.sources_of(op)) {
        sources.push_back(scaled(source, begin, end - begin));
      }
      fold(id, scaled(op.dst, begin, end - begin), sources);
    }
  }

  void fold(OpId id, const Slice& dst, std::span<const Slice> sources) {
    const Op& op = program_.ops[id];
    if (sources.size() == 1) {
      copy(id, dst, sources.front());
      return;
    }
    if (op.at != dst.place) {
      // Added up where the op is carried out, and sent on.
      const Slice sum = scratch_.take(op.at, dst);
      add_up(id, sum, sources);
      copy(id, dst, sum);
      return;
    }
    add_up(id, dst, sources);
  }

  /// From left to right.
  void add_up(OpId id, const Slice& dst, std::span<const Slice> sources) {
    const PlaceId place = dst.place;
    const LaneKey lane{place, program_.ops[id].lane};
    // Steps add to what is there, so the sum begins where no later operand lies.
    const bool overwrites = std::ranges::any_of(
        sources.subspan(1), [&](const Slice& one) { return overlap(one, dst); });
    const std::vector<Slice> operands(sources.begin(), sources.end());
    if (operands.size() == 2 || !overwrites) {
      add({dst, operands, place, lane});
      return;
    }
    const Slice sum = scratch_.take(place, dst);
    add({sum, operands, place, lane});
    copy(id, dst, sum);
  }

  void copy(OpId id, const Slice& dst, const Slice& source) {
    const Op& op = program_.ops[id];
    const bool is_fetched = source.place != dst.place && op.at != source.place;
    if (is_fetched && op.src_count == 1) ++turned_;
    add({dst, {source}, source.place, {source.place, op.lane, is_fetched}});
  }

  void add(Part part) {
    const LaneKey& key = part.lane;
    if (part.peer_sent() >= 0) sends_to_[key].insert(part.peer_sent());
    if (part.peer_received() >= 0) receives_from_[key].insert(part.peer_received());
    lanes_.insert(key);
    parts_.push_back(std::move(part));
  }

  /// Lanes with more peers than a thread block has become several: the i-th peer sent to goes with
  /// the i-th peer received from.
  void number_lanes() {
    std::map<PlaceId, int> next;
    for (const LaneKey& key : lanes_) {
      int& number = next[key.place];
      const std::set<int>& sends = sends_to_[key];
      const std::set<int>& receives = receives_from_[key];
      const bool is_split = one_way_ && !sends.empty() && !receives.empty();
      const std::size_t lanes = is_split
                                    ? sends.size() + receives.size()
                                    : std::max({sends.size(), receives.size(), std::size_t{1}});
      int at = number;
      for (const int peer : receives) numbers_[{key, false, peer}] = at++;
      if (!is_split) at = number;
      for (const int peer : sends) numbers_[{key, true, peer}] = at++;
      numbers_[{key, false, -1}] = number;
      if (lanes > 1) ++divided_;
      number += static_cast<int>(lanes);
    }
  }

  int lane_of(const Part& part) const {
    if (part.peer_sent() >= 0) return numbers_.at({part.lane, true, part.peer_sent()});
    return numbers_.at({part.lane, false, part.peer_received()});
  }

  /// Parts are in an order in which they can run. Dependencies follow from data flow, which is all
  /// that steps of different GPUs can be ordered by.
  Program build() const {
    Contract contract = program_.contract;
    contract.units /= scale_;
    Builder builder(program_.name, contract);
    for (const Part& part : parts_) {
      OpOptions options;
      options.lane = lane_of(part);
      options.at = part.at;
      builder.combine(part.dst, part.sources, options);
    }
    return builder.finish();
  }

  /// Dependencies that data flow does not show.
  std::size_t count_dropped() const {
    std::size_t dropped = 0;
    for (const Op& op : program_.ops) {
      for (const OpId earlier : program_.dependencies_of(op)) {
        if (!conflict(program_, op, program_.ops[earlier])) ++dropped;
      }
    }
    return dropped;
  }

  std::vector<std::string> changes() const {
    std::vector<std::string> all;
    const auto note = [&](std::size_t count, const char* one, const char* many) {
      if (count > 0) all.push_back(fmt::format("{} {}", count, count == 1 ? one : many));
    };
    note(turned_, "copy is pushed by its source, not fetched",
         "copies are pushed by their sources, not fetched");
    note(divided_, "lane with several peers is several thread blocks",
         "lanes with several peers are several thread blocks each");
    note(count_dropped(), "dependency that data flow does not show is left out",
         "dependencies that data flow does not show are left out");
    note(cut_, "op is cut into steps of at most 71 chunks",
         "ops are cut into steps of at most 71 chunks");
    return all;
  }

  const Program& program_;
  bool one_way_;
  std::int64_t scale_;  ///< units of the program given that are a chunk
  std::vector<Part> parts_;
  ScratchSpace scratch_;
  std::set<LaneKey> lanes_;
  std::map<LaneKey, std::set<int>> sends_to_, receives_from_;
  std::map<std::tuple<LaneKey, bool, int>, int> numbers_;  ///< by peer, and whether it is sent to
  std::size_t turned_ = 0, divided_ = 0, cut_ = 0;
};

}  // namespace

MscclLowering lower_to_msccl(const Program& program, bool one_way) {
  require_sayable(program);
  // A thread block receives from one peer. What comes from several goes to scratch, side by side,
  // and is added up there.
  std::size_t staged = 0;
  const Program local = stage_operands(
      program,
      [&](const Op& op, std::size_t i) {
        const auto sources = program.sources_of(op);
        const auto is_remote = [&](const Operand& one) { return one.place != op.at; };
        if (sources.size() == 1 || !is_remote(sources[i])) return false;
        return sources.size() > 2 || (i == 0 && is_remote(sources[1]));
      },
      staged);
  MscclLowering lowered = Lowering(local, one_way).lower();
  if (staged > 0) {
    lowered.changes.insert(lowered.changes.begin(), fmt::format("{} of sums come to scratch first",
                                                                counted(staged, "operand")));
  }
  return lowered;
}

}  // namespace espalier
