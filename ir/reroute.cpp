// SPDX-License-Identifier: Apache-2.0
#include "ir/reroute.h"

#include <algorithm>
#include <vector>

#include "ir/builder.h"
#include "ir/op_order.h"

namespace espalier {
namespace {

/// Writes the program anew.
class Rerouter {
 public:
  Rerouter(const Program& program, const WayBetween& way)
      : program_(program),
        way_(way),
        builder_(program.name, program.contract),
        first_(program.ops.size()),
        last_(program.ops.size()) {
    for (int host = 0; host < program.hosts; ++host) builder_.add_host();
    for (int relay = 0; relay < program.relays; ++relay) builder_.add_relay();
  }

  /// False when the op cannot be written so.
  bool add(OpId id) {
    const Op& op = program_.ops[id];
    if (op.kind != OpKind::combine) {
      first_[id] = last_[id] =
          builder_.busy(op.kind, op.at, program_.duration_s(op), {.lane = op.lane});
    } else if (!add_combine(id, op)) {
      return false;
    }
    for (const OpId earlier : program_.dependencies_of(op)) {
      if (!conflict(program_, program_.ops[earlier], op))
        builder_.after(first_[id], last_[earlier]);
    }
    return true;
  }

  Program finish() { return builder_.finish(); }

 private:
  /// The path that the op names, or the one it is to take.
  std::string via(const Op& op, PlaceId from, PlaceId to) const {
    if (op.via >= 0) return program_.vias[static_cast<std::size_t>(op.via)];
    return way_(from, to);
  }

  bool add_combine(OpId id, const Op& op) {
    const Slice dst = slice(op.dst, op.length);
    std::vector<Slice> sources;
    for (const Operand& source : program_.sources_of(op)) {
      sources.push_back(slice(source, op.length));
    }
    OpOptions how{.lane = op.lane, .at = op.at, .via = {}};
    if (op.in_switch) {
      std::vector<Slice> written;
      for_each_destination(program_, op,
                           [&](const Operand& one) { written.push_back(slice(one, op.length)); });
      const std::string way = op.via < 0 ? "" : program_.vias[static_cast<std::size_t>(op.via)];
      how.via = way;
      first_[id] = last_[id] = builder_.in_switch(written, sources, how);
      return true;
    }
    // One op for all sources that come the same way; those at `at` go with those before them.
    std::string way;
    std::vector<Slice> read;
    bool is_first = true;
    bool is_open = true;  // no way yet
    const auto flush = [&] {
      how.via = way;
      last_[id] = builder_.combine(dst, read, how);
      if (is_first) first_[id] = last_[id];
      is_first = false;
      read = {dst};
    };
    if (op.dst.place != op.at) {
      way = via(op, op.at, op.dst.place);
      is_open = false;
    }
    for (const Slice& source : sources) {
      const bool is_here = source.place == op.at;
      const std::string next = is_here ? way : via(op, source.place, op.at);
      if (!is_here && !is_open && next != way) {
        const bool is_read_later =
            std::find(sources.begin(), sources.end(), dst) != sources.end() &&
            sources.front() != dst;
        if (op.dst.place != op.at || is_read_later) return false;
        flush();
      }
      if (!is_here) {
        way = next;
        is_open = false;
      }
      read.push_back(source);
    }
    flush();
    return true;
  }

  const Program& program_;
  const WayBetween& way_;
  Builder builder_;
  std::vector<OpId> first_;  ///< by op
  std::vector<OpId> last_;
};

}  // namespace

std::optional<Program> reroute(const Program& program, const WayBetween& way) {
  Rerouter rerouter(program, way);
  for (const OpId id : run_order(program, lane_chains(program))) {
    if (!rerouter.add(id)) return std::nullopt;
  }
  return rerouter.finish();
}

}  // namespace espalier
