// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// A program with one fault, and which.
struct Mutant {
  std::string kind;
  Program program;
};

/// Makes all single faults of the kinds below, and of each op.
class Mutator {
 public:
  explicit Mutator(const Program& original) : original_(original) {}

  std::vector<Mutant> all() {
    for (OpId id = 0; id < original_.ops.size(); ++id) {
      break_order(id);
      if (original_.ops[id].kind != OpKind::combine) continue;
      break_destination(id);
      break_sources(id);
    }
    return std::move(all_);
  }

 private:
  template <class Change>
  void add(std::string kind, Change&& change) {
    Program mutant = original_;
    change(mutant);
    all_.push_back({std::move(kind), std::move(mutant)});
  }

  void break_order(OpId id) {
    const Op& op = original_.ops[id];
    for (std::uint32_t d = op.dep_begin; d < op.dep_begin + op.dep_count; ++d) {
      add("drop a dependency", [&](Program& p) {
        std::swap(p.dependencies[d], p.dependencies[op.dep_begin + op.dep_count - 1]);
        --p.ops[id].dep_count;
      });
      if (original_.dependencies[d] > 0) {
        add("dependency one op earlier", [&](Program& p) { --p.dependencies[d]; });
      }
    }
    if (id + 1 < original_.ops.size()) {
      add("swap with the next op", [&](Program& p) { std::swap(p.ops[id], p.ops[id + 1]); });
    }
    add("drop an op", [&](Program& p) {
      p.durations_s = {0};
      p.ops[id].kind = OpKind::compute;
      p.ops[id].src_count = 0;
      p.ops[id].dst = {p.ops[id].at, 0, Buffer::tmp};
      p.ops[id].length = 0;
    });
    add("another lane", [&](Program& p) { p.ops[id].lane = 7; });
  }

  void break_destination(OpId id) {
    const Op& op = original_.ops[id];
    add("destination one unit on", [&](Program& p) { ++p.ops[id].dst.begin; });
    add("destination one block on", [&](Program& p) {
      p.ops[id].dst.begin += static_cast<std::uint32_t>(block_units(p.contract));
    });
    add("destination on the next rank", [&](Program& p) {
      p.ops[id].dst.place = (op.dst.place + 1) % p.places();
      if (op.at == op.dst.place) p.ops[id].at = p.ops[id].dst.place;
    });
    add("destination in scratch", [&](Program& p) { p.ops[id].dst.buffer = Buffer::tmp; });
    if (op.length > 1) add("one unit shorter", [&](Program& p) { --p.ops[id].length; });
    add("all one unit on", [&](Program& p) {
      ++p.ops[id].dst.begin;
      for (std::uint32_t s = 0; s < op.src_count; ++s) ++p.sources[op.src_begin + s].begin;
    });
  }

  void break_sources(OpId id) {
    const Op& op = original_.ops[id];
    if (op.src_count > 1) {
      add("drop a source", [&](Program& p) { --p.ops[id].src_count; });
    }
    for (std::uint32_t s = op.src_begin; s < op.src_begin + op.src_count; ++s) {
      add("source on the next rank", [&](Program& p) {
        Operand& source = p.sources[s];
        const PlaceId old = std::exchange(source.place, (source.place + 1) % p.places());
        if (op.at == old) p.ops[id].at = source.place;
      });
      add("source one block on", [&](Program& p) {
        p.sources[s].begin += static_cast<std::uint32_t>(block_units(p.contract));
      });
      for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
        if (buffer == original_.sources[s].buffer) continue;
        add("source in another buffer", [&](Program& p) { p.sources[s].buffer = buffer; });
      }
    }
  }

  const Program& original_;
  std::vector<Mutant> all_;
};

}  // namespace espalier
