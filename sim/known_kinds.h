// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "run/target.h"
#include "sim/alike_costs.h"
#include "sim/awaited_ops.h"
#include "sim/back_to_back.h"
#include "sim/block_map.h"
#include "sim/flow_engine.h"
#include "sim/machine_resources.h"
#include "sim/one_of_alike.h"
#include "sim/op_flows.h"
#include "sim/op_graph.h"
#include "sim/op_shapes.h"
#include "sim/simulation.h"

namespace espalier {

/// What tells lanes apart, as far as it is not the same in all simulations of a program. Kinds
/// follow from which costs and which rates are equal, not from how large they are. A hash of 64
/// bits, as kinds themselves are told apart by such.
using KindsKey = std::uint64_t;
KindsKey kinds_key(const Simulation& of, OpShapes& shapes, const AlikeCosts& costs,
                   const MachineResources& machine);

/// The kinds of a program's lanes, as they were found in some simulation.
struct KnownKinds {
  KindsKey key;
  AwaitedOps::Outlasting outlasting;
  std::optional<OneOfAlike> one;    ///< nothing: few are alike
  std::optional<AlikeSpans> spans;  ///< likewise
  std::optional<OpGraph> graph;     ///< likewise; of that program, which stays where it is
};

/// A machine as a simulation has found it, on which kinds hold for messages of any size: only the
/// flows of one lane of each kind are still to be found. May outlive the router, and is not asked
/// then.
class KindsOnMachine {
 public:
  /// What tells simulations apart, but for the size of the message.
  struct Key {
    explicit Key(const Simulation& of);
    bool operator==(const Key&) const = default;

    const Program* program;
    Target target;
    std::uint64_t router;  ///< Router::id: another one may come to be at the same address
    BlockUse blocks;
  };

  /// What is known of a simulation's machine before its kinds are.
  struct Machine {
    /// Refers to the program and to the router of the simulation.
    Machine(const Simulation& of, FlowEngine& engine);

    const Key key;
    const BlockMap blocks;
    MachineResources resources;
  };

  /// `kinds`: with one of each. `numbers`: of the whole. `of_examples`: OneOfAlike's, for the
  /// message that was simulated.
  KindsOnMachine(std::unique_ptr<Machine> machine, std::shared_ptr<const KnownKinds> kinds,
                 const CostInputs& inputs, const ShapeNumbers& numbers,
                 std::vector<OpShapes::Shape> of_examples, std::int64_t transfers);

  const Key& key() const { return machine_->key; }
  const KnownKinds& kinds() const { return *kinds_; }
  MachineResources& resources() { return machine_->resources; }
  std::int64_t transfers() const { return transfers_; }
  /// Those of the ops of one of each kind, for a message of so many bytes. Valid as long as this.
  MachineFlows flows(double message_bytes);
  /// Whether ops await the same as in the simulation that the kinds were found in, and use the
  /// same. `of_examples`: for another message. `flows`: these, by `numbers`.
  bool holds_for(const std::vector<OpShapes::Shape>& of_examples, const ShapeNumbers& numbers,
                 OpFlows& flows) const;

 private:
  std::unique_ptr<Machine> machine_;
  std::shared_ptr<const KnownKinds> kinds_;
  AwaitedOps::Outlasting outlasting_;  ///< by shape of one of each
  CostInputs inputs_;
  std::vector<std::uint32_t> shapes_;  ///< of the whole, by op of one of each
  std::vector<OpShapes::Shape> of_examples_;
  std::int64_t transfers_;  ///< of the whole
};

/// Of one program, the latest few: on the machines that they were found on, which is looked at
/// first, and by what tells lanes apart, for machines of other figures. Copies share the machines.
class KindsOfProgram {
 public:
  /// Null: not known.
  std::shared_ptr<const KnownKinds> find(const KindsKey& key, OpShapes& shapes) const;
  std::shared_ptr<const KnownKinds> add(KnownKinds known);
  std::size_t size() const { return known_.size(); }

  /// Those on a simulation's machine; null: not known, or those of others have come since.
  KindsOnMachine* on_machine_of(const Simulation& of);
  /// In place of others on the same machine.
  void keep(std::shared_ptr<KindsOnMachine> latest);

 private:
  std::deque<std::shared_ptr<const KnownKinds>> known_;      ///< the latest comes first
  std::deque<std::shared_ptr<KindsOnMachine>> on_machines_;  ///< likewise
};

}  // namespace espalier
