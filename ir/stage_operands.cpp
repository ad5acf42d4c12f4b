// SPDX-License-Identifier: Apache-2.0
#include "ir/stage_operands.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "ir/builder.h"
#include "ir/op_order.h"

namespace espalier {
namespace {

class Stager {
 public:
  Stager(const Program& program, const IsStaged& is_staged)
      : program_(program),
        is_staged_(is_staged),
        builder_(program.name, program.contract),
        block_(block_units(program.contract)),
        next_lane_(static_cast<std::size_t>(program.places()), 0),
        free_(tmp_units(program)) {
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
    // Behind all else, at the same position within a block.
    std::int64_t& free = free_[static_cast<std::size_t>(op.at)];
    const std::int64_t begin = (free + block_ - 1) / block_ * block_ + source.begin % block_;
    free = begin + source.length;
    const Slice here{op.at, Buffer::tmp, begin, source.length};
    const auto [lane, is_new] = lanes_.try_emplace({source.place, op.at, op.lane}, 0);
    if (is_new) lane->second = next_lane_[static_cast<std::size_t>(source.place)]++;
    builder_.copy(here, source, options(op, lane->second, source.place));
    return here;
  }

  const Program& program_;
  const IsStaged& is_staged_;
  Builder builder_;
  std::int64_t block_;
  std::vector<int> next_lane_;                              ///< by place
  std::vector<std::int64_t> free_;                          ///< scratch, by place
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
