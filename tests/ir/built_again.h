// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/program.h"

namespace espalier {

/// The program with the dependencies that the builder derives from its data, op by op. \pre its ops
/// move data, and are in an order that would be right if they ran one by one
inline Program built_again(const Program& program) {
  Fold fold = program.fold;
  fold.dependency_groups.clear();
  Builder builder(program.name, program.contract, fold);
  for (int host = 0; host < program.hosts; ++host) builder.add_host();
  for (int relay = 0; relay < program.relays; ++relay) builder.add_relay();
  for (const Op& op : program.ops) {
    OpOptions options{.lane = op.lane, .at = op.at, .via = {}};
    if (op.via >= 0) options.via = program.vias[static_cast<std::size_t>(op.via)];
    std::vector<Slice> sources, destinations;
    for (const Operand& one : program.sources_of(op)) sources.push_back(slice(one, op.length));
    for_each_destination(
        program, op, [&](const Operand& one) { destinations.push_back(slice(one, op.length)); });
    if (op.in_switch) {
      builder.in_switch(destinations, sources, options);
    } else {
      builder.combine(destinations.front(), sources, options);
    }
  }
  return builder.finish();
}

}  // namespace espalier
