// SPDX-License-Identifier: Apache-2.0
#include "ir/stage_operands.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "ir/builder.h"
#include "ir/op_order.h"
#include "ir/scratch_space.h"

namespace espalier {
namespace {

class Stager {
 public:
  Stager(const Program& program, const IsStaged& is_staged)
      : program_(program),
        is_staged_(is_staged),
        builder_(program.name, program.contract),
        next_lane_(static_cast<std::size_t>(program.places()), 0),
        scratch_(tmp_units(program), block_units(program.contract)) {
    for (int host = 0; host < program.hosts; ++host) builder_.add_host();
    for (int relay = 0; relay < program.relays; ++relay) builder_.add_relay();
    for (const Op& op : program.ops) {
      int& next = next_lane_[static_cast<std::size_t>(op.at)];
      next = std::max(next, op.lane + 1);
    }
  }

  void add(OpId id) {
    const Op& op = program_.ops[id];
    if (op.kind != OpKind::combine) {
      builder_.busy(op.kind, op.at, program_.duration_s(op), {.lane = op.lane});
      return;
    }
    std::vector<Slice> sources, written;
    for (std::size_t i = 0; i < op.src_count; ++i) {
      const Slice source = slice(program_.sources_of(op)[i], op.length);
      sources.push_back(is_staged_(op, i) ? brought(source, op) : source);
    }
    for_each_destination(program_, op,
                         [&](const Operand& one) { written.push_back(slice(one, op.length)); });
    const OpOptions how = options(op, op.lane, op.at);
    if (op.in_switch) {
      builder_.in_switch(written, sources, how);
    } else {
      builder_.combine(written.front(), sources, how);
    }
  }

  Program finish() { return builder_.finish(); }
  std::size_t staged() const { return staged_; }

 private:
  OpOptions options(const Op& op, int lane, PlaceId at) const {
    OpOptions how;
    how.lane = lane;
    how.at = at;
    if (op.via >= 0) how.via = program_.vias[static_cast<std::size_t>(op.via)];
    return how;
  }

  /// Copied by its owner to where the op is carried out.
  Slice brought(const Slice& source, const Op& op) {
    ++staged_;
    const Slice here = scratch_.take(op.at, source);
    const auto [lane, is_new] = lanes_.try_emplace({source.place, op.at, op.lane}, 0);
    if (is_new) lane->second = next_lane_[static_cast<std::size_t>(source.place)]++;
    builder_.copy(here, source, options(op, lane->second, source.place));
    return here;
  }

  const Program& program_;
  const IsStaged& is_staged_;
  Builder builder_;
  std::vector<int> next_lane_;  ///< by place
  ScratchSpace scratch_;
  std::map<std::tuple<PlaceId, PlaceId, int>, int> lanes_;  ///< by owner, and the lane served
  std::size_t staged_ = 0;
};

}  // namespace

Program stage_operands(const Program& program, const IsStaged& is_staged, std::size_t& staged) {
  Stager stager(program, is_staged);
  for (const OpId id : run_order(program, lane_chains(program))) stager.add(id);
  staged = stager.staged();
  return staged == 0 ? program : stager.finish();
}

}  // namespace espalier
