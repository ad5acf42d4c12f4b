// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/awaited_ops.h"
#include "sim/machine_resources.h"
#include "sim/one_of_alike.h"
#include "sim/op_shapes.h"
#include "sim/simulation.h"

namespace espalier {

/// What tells lanes apart, as far as it is not the same in all simulations of a program. Kinds
/// follow from which costs and which rates are equal, not from how large they are. A hash of 64
/// bits, as kinds themselves are told apart by such.
using KindsKey = std::uint64_t;
KindsKey kinds_key(const Simulation& of, OpShapes& shapes, const MachineResources& machine);

/// The kinds of a program's lanes, as they were found in some simulation.
struct KnownKinds {
  KindsKey key;
  AwaitedOps::Outlasting outlasting;
  std::optional<OneOfAlike> one;  ///< nothing: few are alike
  std::vector<OpId> spanning;     ///< first_and_last_ops, where there is one
};

/// Of one program, by what tells its lanes apart: the latest few.
class KindsOfProgram {
 public:
  /// Null: not known. Valid until something is added.
  const KnownKinds* find(const KindsKey& key, OpShapes& shapes) const;
  const KnownKinds& add(KnownKinds known);
  std::size_t size() const { return known_.size(); }

 private:
  std::deque<KnownKinds> known_;  ///< the latest comes first
};

}  // namespace espalier
