// SPDX-License-Identifier: Apache-2.0
#include "ir/instances.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/check.h"
#include "ir/builder.h"
#include "ir/op_order.h"

namespace espalier {
namespace {

class Replicator {
 public:
  Replicator(const Program& program, int count)
      : program_(program),
        count_(count),
        block_(block_units(program.contract)),
        builder_(program.name, wider(program.contract, count)) {
    for (int host = 0; host < program.hosts; ++host) builder_.add_host();
    for (int relay = 0; relay < program.relays; ++relay) builder_.add_relay();
    for (const Op& op : program.ops) lanes_ = std::max(lanes_, op.lane + 1);
    CHECK(lanes_ * count - 1 <= std::numeric_limits<std::uint16_t>::max());
  }

  void add(const Op& op) {
    if (op.kind != OpKind::combine) {
      builder_.busy(op.kind, op.at, program_.duration_s(op), {.lane = op.lane});
      return;
    }
    for (int instance = 0; instance < count_; ++instance) {
      // Operands are at the same position within a block (R4), so they end with it together.
      for (std::int64_t done = 0; done < op.length;) {
        const std::int64_t rest = block_ - (op.dst.begin + done) % block_;
        const std::int64_t length = std::min<std::int64_t>(op.length - done, rest);
        add_part(op, instance, done, length);
        done += length;
      }
    }
  }

  Program finish() { return builder_.finish(); }

 private:
  static Contract wider(Contract contract, int count) {
    contract.units *= count;
    return contract;
  }

  void add_part(const Op& op, int instance, std::int64_t done, std::int64_t length) {
    const auto part = [&](const Operand& operand) {
      const std::int64_t unit = operand.begin + done;
      const std::int64_t begin =
          unit / block_ * block_ * count_ + instance * block_ + unit % block_;
      return Slice{operand.place, operand.buffer, begin, length};
    };
    std::vector<Slice> sources, written;
    for (const Operand& source : program_.sources_of(op)) sources.push_back(part(source));
    for_each_destination(program_, op, [&](const Operand& one) { written.push_back(part(one)); });
    OpOptions how{.lane = instance * lanes_ + op.lane, .at = op.at, .via = {}};
    if (op.via >= 0) how.via = program_.vias[static_cast<std::size_t>(op.via)];
    if (op.in_switch) {
      builder_.in_switch(written, sources, how);
    } else {
      builder_.combine(written.front(), sources, how);
    }
  }

  const Program& program_;
  int count_;
  std::int64_t block_;
  int lanes_ = 1;
  Builder builder_;
};

}  // namespace

Program instances(const Program& program, int count) {
  CHECK(count >= 1 && program.contract.units * count <= kMaxUnits);
  if (count == 1) return program;
  Replicator replicator(program, count);
  for (const OpId id : run_order(program, lane_chains(program))) {
    replicator.add(program.ops[id]);
  }
  return replicator.finish();
}

}  // namespace espalier
