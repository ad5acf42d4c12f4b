// SPDX-License-Identifier: Apache-2.0
#include "ir/stripe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "ir/builder.h"
#include "ir/op_order.h"

namespace espalier {
namespace {

/// Scratch for all ordered pairs of a host memory stays addressable with these: 64 x 63 pairs of
/// 2^20 units are less than 2^32. (Ops that read several operands from one place take more.)
constexpr std::int64_t kMaxRanksOfHost = 64;
constexpr std::int64_t kMaxStripedUnits = std::int64_t{1} << 20;

/// Into how many a unit is cut, so that both parts, and every piece, are whole.
std::int64_t refinement(const Striping& striping) {
  const std::int64_t common = std::gcd(striping.host_percent, std::int64_t{100});
  const std::int64_t host_parts = striping.host_percent / common;
  return 100 / common * (striping.pieces / std::gcd(striping.pieces, host_parts));
}

bool is_pushed(const Program& program, const Op& op) {
  return op.src_count == 1 && program.sources_of(op)[0].place == op.at;
}

/// The host memory that both places have as ranks, or -1.
int common_host(const Striping& striping, PlaceId a, PlaceId b) {
  const auto ranks = static_cast<PlaceId>(striping.host_of_rank.size());
  if (a == b || a >= ranks || b >= ranks) return -1;
  const int host = striping.host_of_rank[static_cast<std::size_t>(a)];
  return host == striping.host_of_rank[static_cast<std::size_t>(b)] ? host : -1;
}

bool is_striped(const Program& program, const Striping& striping, const Op& op) {
  if (op.kind != OpKind::combine || op.via >= 0 || op.in_switch) return false;
  if (is_pushed(program, op)) return common_host(striping, op.at, op.dst.place) >= 0;
  if (op.at != op.dst.place) return false;
  return std::ranges::any_of(program.sources_of(op), [&](const Operand& source) {
    return common_host(striping, source.place, op.at) >= 0;
  });
}

bool divides(const Program& program, const Striping& striping) {
  return striping.host_percent > 0 && std::ranges::any_of(program.ops, [&](const Op& op) {
           return is_striped(program, striping, op);
         });
}

/// A range of units of an op, counted from the start of its slices.
struct Part {
  std::int64_t begin;
  std::int64_t length;
};

class Striper {
 public:
  Striper(const Program& program, const Striping& striping)
      : program_(program),
        striping_(striping),
        scale_(refinement(striping)),
        builder_(program.name, finer_contract(program, scale_)),
        tmp_units_(tmp_units(program)),
        starts_(program.ops.size()),
        ends_(program.ops.size()) {
    for (int host = 0; host < striping.hosts; ++host) builder_.add_host();
    for (int relay = 0; relay < program.relays; ++relay) builder_.add_relay();
    for (const Op& op : program.ops) first_new_lane_ = std::max(first_new_lane_, op.lane + 1);
  }

  void add(OpId id) {
    const Op& op = program_.ops[id];
    if (op.kind != OpKind::combine) {
      note(id, builder_.busy(op.kind, moved(op.at), program_.duration_s(op), {.lane = op.lane}));
    } else if (!is_striped(program_, striping_, op)) {
      note(id, combine(op, {0, op.length * scale_}, op.lane));
    } else {
      add_striped(id, op);
    }
    for (const OpId earlier : program_.dependencies_of(op)) {
      if (conflict(program_, program_.ops[earlier], op)) continue;
      for (const OpId start : starts_[id]) {
        for (const OpId end : ends_[earlier]) builder_.after(start, end);
      }
    }
  }

  Program finish() { return builder_.finish(); }

 private:
  static Contract finer_contract(const Program& program, std::int64_t scale) {
    Contract contract = program.contract;
    contract.units *= scale;
    return contract;
  }

  /// Relays come after host memories, of which there may be more now.
  PlaceId moved(PlaceId place) const {
    return place < program_.ranks() + program_.hosts ? place
                                                     : place + striping_.hosts - program_.hosts;
  }

  Slice slice_of(const Operand& operand, const Part& part) const {
    return {moved(operand.place), operand.buffer, operand.begin * scale_ + part.begin, part.length};
  }

  OpId combine(const Op& op, const Part& part, int lane) {
    sources_.clear();
    for (const Operand& source : program_.sources_of(op)) {
      sources_.push_back(slice_of(source, part));
    }
    OpOptions options{.lane = lane, .at = moved(op.at), .via = {}};
    if (op.via >= 0) options.via = program_.vias[static_cast<std::size_t>(op.via)];
    if (!op.in_switch) return builder_.combine(slice_of(op.dst, part), sources_, options);
    std::vector<Slice> written;
    for_each_destination(program_, op,
                         [&](const Operand& dst) { written.push_back(slice_of(dst, part)); });
    return builder_.in_switch(written, sources_, options);
  }

  void add_striped(OpId id, const Op& op) {
    const std::int64_t length = op.length * scale_;
    const std::int64_t by_host = length * striping_.host_percent / 100;
    const std::int64_t direct = length - by_host;
    if (direct > 0) note(id, combine(op, {0, direct}, op.lane));
    const std::int64_t piece = by_host / striping_.pieces;
    for (std::int64_t i = 0; i < striping_.pieces; ++i) {
      add_staged(id, op, {direct + i * piece, piece}, i);
    }
  }

  /// To host memory, then what the op does, from there: by the host where the op was a push.
  void add_staged(OpId id, const Op& op, const Part& part, std::int64_t index) {
    const std::span<const Operand> operands = program_.sources_of(op);
    sources_.clear();
    int host = -1;
    for (auto source = operands.begin(); source != operands.end(); ++source) {
      sources_.push_back(slice_of(*source, part));
      const int common = common_host(striping_, source->place, op.dst.place);
      if (common < 0) continue;
      host = common;
      const auto nth = std::count_if(operands.begin(), source, [&](const Operand& other) {
        return other.place == source->place;
      });
      const Slice staged = staging(host, {source->place, op.dst.place, nth}, sources_.back());
      const int lane = lane_at(source->place, {op.at, op.lane});
      const OpId copied = builder_.copy(staged, sources_.back(), {.lane = lane});
      if (index == 0) starts_[id].push_back(copied);
      sources_.back() = staged;
    }
    CHECK(host >= 0);
    const PlaceId at = is_pushed(program_, op) ? host_place(host) : op.at;
    const int lane = lane_at(at, {op.at, op.lane});
    const OpId arrived =
        builder_.combine(slice_of(op.dst, part), sources_, {.lane = lane, .at = at, .via = {}});
    if (index + 1 == striping_.pieces) ends_[id].push_back(arrived);
  }

  PlaceId host_place(int host) const { return program_.ranks() + host; }

  /// Whose scratch it is: an ordered pair of ranks, and which of the operands that an op reads from
  /// the first of them.
  using Stretch = std::tuple<PlaceId, PlaceId, std::ptrdiff_t>;

  /// The stretch of the host memory, where the source's units are in theirs (rule R4).
  Slice staging(int host, const Stretch& stretch, const Slice& source) {
    const std::int64_t units = builder_.contract().units;
    std::map<Stretch, std::int64_t>& known = stretches_[host];
    const auto next = static_cast<std::int64_t>(known.size());
    const std::int64_t index = known.try_emplace(stretch, next).first->second;
    const std::int64_t own =
        host < program_.hosts ? tmp_units_[static_cast<std::size_t>(host_place(host))] : 0;
    const std::int64_t first = (own + program_.contract.units - 1) / program_.contract.units;
    return builder_.tmp(host_place(host), (first + index) * units + source.begin % units,
                        source.length);
  }

  /// A lane of the place that no op of the program uses, one for each lane whose ops it serves:
  /// what goes through host memory keeps the order of that lane.
  using Lane = std::pair<PlaceId, int>;
  int lane_at(PlaceId place, const Lane& served) {
    std::map<Lane, int>& lanes = new_lanes_[place];
    const int next = first_new_lane_ + static_cast<int>(lanes.size());
    return lanes.try_emplace(served, next).first->second;
  }

  void note(OpId id, OpId added) {
    starts_[id].push_back(added);
    ends_[id].push_back(added);
  }

  const Program& program_;
  const Striping& striping_;
  const std::int64_t scale_;
  Builder builder_;
  const std::vector<std::int64_t> tmp_units_;  ///< by place of the program, in its units
  int first_new_lane_ = 0;
  std::map<int, std::map<Stretch, std::int64_t>> stretches_;  ///< by host memory
  std::map<PlaceId, std::map<Lane, int>> new_lanes_;          ///< by place
  std::vector<std::vector<OpId>> starts_;  ///< by op: its parts that wait for no other part
  std::vector<std::vector<OpId>> ends_;    ///< by op: its parts that no other part waits for
  std::vector<Slice> sources_;             ///< of the op in the making
};

}  // namespace

std::optional<std::string> cannot_stripe(std::int64_t units, const Striping& striping) {
  CHECK(striping.host_percent >= 0 && striping.host_percent <= 100 && striping.pieces >= 1);
  if (striping.host_percent == 0) return std::nullopt;
  std::map<int, std::int64_t> ranks_of_host;
  for (const int host : striping.host_of_rank) {
    if (host >= 0 && ++ranks_of_host[host] > kMaxRanksOfHost) {
      return fmt::format(
          "copies through a host memory are possible for at most {} GPUs of that memory",
          kMaxRanksOfHost);
    }
  }
  if (units > kMaxStripedUnits / refinement(striping)) {
    return fmt::format(
        "divided into parts of one percent, its message would have more than {} units",
        kMaxStripedUnits);
  }
  return std::nullopt;
}

std::optional<std::string> nothing_to_stripe(const Program& program, const Striping& striping) {
  if (divides(program, striping)) return std::nullopt;
  std::vector<int> hosts = striping.host_of_rank;
  std::erase_if(hosts, [](int host) { return host < 0; });
  if (hosts.empty()) return "no rank reaches a host memory";
  std::ranges::sort(hosts);
  if (std::ranges::adjacent_find(hosts) == hosts.end()) return "no two ranks share a host memory";
  return "no transfer between two ranks of one host memory can be divided";
}

Program stripe(const Program& program, const Striping& striping) {
  CHECK(striping.host_of_rank.size() == static_cast<std::size_t>(program.ranks()));
  CHECK(program.hosts == 0 || program.hosts == striping.hosts);
  CHECK(program.lines.empty() && !cannot_stripe(program.contract.units, striping));
  if (!divides(program, striping)) return program;
  Striper striper(program, striping);
  const std::vector<OpId> order = run_order(program, lane_chains(program));
  CHECK(order.size() == program.ops.size());
  for (const OpId op : order) striper.add(op);
  return striper.finish();
}

}  // namespace espalier
