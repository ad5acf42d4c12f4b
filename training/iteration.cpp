// SPDX-License-Identifier: Apache-2.0
#include "training/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace espalier {

namespace {

using Lane = std::pair<PlaceId, int>;

constexpr std::int64_t kMaxTmpUnits = std::numeric_limits<std::uint32_t>::max();

Contract whole_contract(const IterationPlan& plan) {
  Contract contract;
  contract.ranks = plan.ranks;
  contract.units = 0;
  contract.in_place = true;
  for (const Exchange& exchange : plan.exchanges) contract.units += exchange.units;
  return contract;
}

/// Appends ops as plain data: the dependencies of a stage are known already, and hold for any share
/// of the message.
class IterationWriter {
 public:
  explicit IterationWriter(const IterationPlan& plan) : plan_(plan) {
    Program& program = made_.program;
    program.name = "training";
    program.contract = whole_contract(plan);
    for (const Exchange& exchange : plan.exchanges) {
      for (const auto& stage : exchange.stages) {
        CHECK(stage.program->ranks() == plan.ranks && stage.program->contract.in_place);
        CHECK(0 <= stage.share && stage.share < stage.shares);
        program.hosts = std::max(program.hosts, stage.program->hosts);
        program.relays = std::max(program.relays, stage.program->relays);
      }
    }
  }

  Iteration write() {
    write_passes();
    std::int64_t begin = 0;
    for (std::size_t number = 0; number < plan_.exchanges.size(); ++number) {
      const Exchange& exchange = plan_.exchanges[number];
      made_.first_part.push_back(begin_part(fmt::format("bucket {}", number)));
      bool first = true;
      for (const ExchangeStage& stage : exchange.stages) {
        begin_stage(stage, exchange, std::exchange(first, false));
        const std::int64_t from = exchange.units * stage.share / stage.shares;
        const std::int64_t to = exchange.units * (stage.share + 1) / stage.shares;
        write_stage(*stage.program, begin + from, to - from);
      }
      begin += exchange.units;
    }
    return std::move(made_);
  }

 private:
  std::size_t begin_part(std::string name) {
    made_.parts.push_back(std::move(name));
    return made_.parts.size() - 1;
  }

  /// `op` without its dependencies, which are added.
  OpId append(Op op, std::vector<OpId> dependencies) {
    Program& program = made_.program;
    std::ranges::sort(dependencies);
    if (program.dependencies.size() + dependencies.size() > kMaxTmpUnits) refuse("dependencies");
    op.dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
    op.dep_count = static_cast<std::uint32_t>(dependencies.size());
    program.dependencies.insert(program.dependencies.end(), dependencies.begin(),
                                dependencies.end());
    program.ops.push_back(op);
    made_.part_of.push_back(static_cast<std::uint32_t>(made_.parts.size() - 1));
    return static_cast<OpId>(program.ops.size() - 1);
  }

  /// \p kind compute or wait
  Op busy(OpKind kind, PlaceId place, int lane, double seconds) {
    Op op;
    op.kind = kind;
    op.dst = {place, static_cast<std::uint32_t>(made_.program.durations_s.size()), Buffer::tmp};
    op.at = place;
    op.lane = static_cast<std::uint16_t>(lane);
    made_.program.durations_s.push_back(seconds);
    return op;
  }

  void write_passes() {
    begin_part("forward");
    for (PlaceId rank = 0; rank < plan_.ranks; ++rank) {
      append(busy(OpKind::compute, rank, kComputeLane, plan_.forward_s), {});
    }
    made_gradient_.resize(plan_.gradients.size());
    for (std::size_t gradient = 0; gradient < plan_.gradients.size(); ++gradient) {
      begin_part("backward " + plan_.gradients[gradient]);
      for (PlaceId rank = 0; rank < plan_.ranks; ++rank) {
        const OpId op =
            append(busy(OpKind::compute, rank, kComputeLane, plan_.backward_s[gradient]), {});
        if (rank == 0) made_gradient_[gradient] = op;
      }
    }
  }

  /// Where a stage's places are in the iteration, whose hosts and relays may be more.
  PlaceId place_of(const Program& stage, PlaceId place) const {
    const PlaceNumber number = place_number(stage, place);
    if (number.kind == PlaceKind::rank) return place;
    if (number.kind == PlaceKind::host) return plan_.ranks + number.number;
    return plan_.ranks + made_.program.hosts + number.number;
  }

  /// The stage begins at each of its places. Of several stages only the first waits for gradients.
  void begin_stage(const ExchangeStage& begun, const Exchange& exchange, bool waits_for_gradient) {
    const Program& stage = *begun.program;
    starts_.assign(static_cast<std::size_t>(made_.program.places()), 0);
    const std::size_t gradient = plan_.overlap ? exchange.ready_after : plan_.gradients.size() - 1;
    for (PlaceId own = 0; own < stage.places(); ++own) {
      const PlaceId place = place_of(stage, own);
      std::vector<OpId> dependencies;
      if (waits_for_gradient && place < plan_.ranks) {
        dependencies.push_back(made_gradient_[gradient] + static_cast<OpId>(place));
      }
      for (const auto& [lane, op] : touching_[place]) dependencies.push_back(op);
      const double call_s = place < plan_.ranks ? plan_.call_s + begun.call_s : 0;
      starts_[place] = append(busy(OpKind::wait, place, kStartLane, call_s), dependencies);
      touching_[place].clear();
    }
  }

  /// On the units [begin, begin + units) of the message.
  void write_stage(const Program& stage, std::int64_t begin, std::int64_t units) {
    const auto first_op = static_cast<OpId>(made_.program.ops.size());
    std::set<std::pair<Lane, PlaceId>> joined;
    std::vector<OpId> dependencies;
    for (const Op& op : stage.ops) {
      const Lane lane{place_of(stage, op.at), op.lane + kFirstExchangeLane};
      if (lane.second > std::numeric_limits<std::uint16_t>::max()) refuse("lanes");
      dependencies.clear();
      for (const OpId earlier : stage.dependencies_of(op)) {
        dependencies.push_back(first_op + earlier);
      }
      const auto touch = [&](PlaceId place) {
        if (joined.emplace(lane, place).second) dependencies.push_back(starts_[place]);
        touching_[place][lane] = static_cast<OpId>(made_.program.ops.size());
      };
      touch(lane.first);
      if (op.kind == OpKind::combine) {
        for_each_destination(stage, op,
                             [&](const Operand& dst) { touch(place_of(stage, dst.place)); });
        for (const Operand& source : stage.sources_of(op)) touch(place_of(stage, source.place));
      }
      append(share_of(stage, op, units, begin, lane), dependencies);
    }
  }

  /// The op on its share of the units [begin, begin + units) of the message.
  Op share_of(const Program& stage, const Op& op, std::int64_t units, std::int64_t begin,
              const Lane& lane) {
    if (op.kind != OpKind::combine) {
      return busy(op.kind, lane.first, lane.second, stage.duration_s(op));
    }
    const std::int64_t block = stage.contract.units;
    const std::int64_t offset = op.dst.begin % block;
    CHECK(offset + op.length <= block);
    const std::int64_t first = units * offset / block;
    const std::int64_t length = units * (offset + op.length) / block - first;
    if (length == 0) return busy(OpKind::wait, lane.first, lane.second, 0);
    const auto place = [&](const Operand& operand) {
      CHECK(operand.begin % block == offset);
      const std::int64_t at = operand.begin / block * made_.program.contract.units + begin + first;
      if (at + length > kMaxTmpUnits) refuse("scratch");
      return Operand{place_of(stage, operand.place), static_cast<std::uint32_t>(at),
                     operand.buffer};
    };
    Op share = op;
    share.dst = place(op.dst);
    share.length = static_cast<std::uint32_t>(length);
    share.at = lane.first;
    share.lane = static_cast<std::uint16_t>(lane.second);
    share.src_begin = static_cast<std::uint32_t>(made_.program.sources.size());
    for (const Operand& source : stage.sources_of(op)) {
      made_.program.sources.push_back(place(source));
    }
    for (const Operand& copy : stage.copies_of(op)) made_.program.sources.push_back(place(copy));
    if (op.via >= 0) share.via = via_id(stage.vias[op.via]);
    return share;
  }

  std::int16_t via_id(const std::string& via) {
    const auto [entry, is_new] =
        via_ids_.try_emplace(via, static_cast<std::int16_t>(made_.program.vias.size()));
    if (is_new) made_.program.vias.push_back(via);
    return entry->second;
  }

  [[noreturn]] static void refuse(const char* what) {
    throw Error(ErrorKind::unsupported,
                fmt::format("an iteration has more {} than a program may have", what),
                "a larger fusion buffer makes fewer buckets");
  }

  const IterationPlan& plan_;
  Iteration made_;
  std::vector<OpId> made_gradient_;  ///< by gradient: the op of rank 0; those of others follow
  std::vector<OpId> starts_;         ///< by place: where the stage being written begins
  /// By place: per lane, the last op of the latest stage there that touches its memory.
  std::map<PlaceId, std::map<Lane, OpId>> touching_;
  std::map<std::string, std::int16_t> via_ids_;
};

}  // namespace

Iteration build_iteration(const IterationPlan& plan) {
  CHECK(plan.ranks >= 1 && !plan.gradients.empty() && !plan.exchanges.empty());
  CHECK(plan.backward_s.size() == plan.gradients.size());
  for (const Exchange& exchange : plan.exchanges) {
    CHECK(exchange.units >= 1 && exchange.ready_after < plan.gradients.size());
  }
  return IterationWriter(plan).write();
}

}  // namespace espalier
