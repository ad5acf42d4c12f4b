// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"
#include "sim/block_map.h"
#include "sim/machine_resources.h"
#include "sim/op_costs.h"
#include "topologies/profile.h"

namespace espalier {

/// What an op starts at one time, whatever else is under way.
struct FlowList {
  /// First it waits for its latency, then it moves its bytes.
  struct Flow {
    double latency_s = 0;
    double bytes = 0;
    ResourceId alone = kNoResource;  ///< what no other flow uses meanwhile
    std::uint32_t first_resource = 0;
    std::uint32_t resource_count = 0;
    mutable FlowKind kind = kUnknownKind;  ///< FlowEngine::start
  };

  boost::container::small_vector<Flow, 1> flows;
  ResourceList resources;      ///< of all flows
  double landing_s = 0;        ///< so long after the flows the result is where it belongs
  std::int64_t transfers = 0;  ///< between places (see for_each_transfer)

  std::span<const ResourceId> resources_of(const Flow& flow) const {
    return {resources.data() + flow.first_resource, flow.resource_count};
  }
  void clear();
  /// The flow that the resources behind those of the flows before it are for.
  void add(double latency_s, double bytes, ResourceId alone = kNoResource);
};

/// Who knows the flows of ops.
class OpFlows {
 public:
  virtual ~OpFlows() = default;
  OpFlows() = default;
  OpFlows(const OpFlows&) = delete;
  OpFlows& operator=(const OpFlows&) = delete;

  /// Of an op that begins. Valid until the next call.
  virtual const FlowList& begin(OpId id) = 0;
  /// Of one whose operands have come: they are added up. \pre reduces_separately
  virtual const FlowList& reduce(OpId id) = 0;
  virtual bool reduces_separately(OpId id) const = 0;
  virtual double bytes_per_s(ResourceId resource) const = 0;
};

/// The rate of the narrowest of what a flow uses.
double narrowest_bytes_per_s(const OpFlows& flows, const FlowList& list,
                             const FlowList::Flow& flow);
/// What the flows take at least, all at once: as if each had all that it uses for itself.
double least_s(const OpFlows& flows, const FlowList& list);

/// Finds them on a machine, which counts what they carry. Dispatcher says what ops cost.
class MachineFlows final : public OpFlows {
 public:
  /// Refers to its arguments. `message_bytes`: the whole message, which `units` divide. `text`: of
  /// the program; null: nothing is known of it.
  MachineFlows(const Program& program, const BlockMap& blocks, const Profile& profile,
               double message_bytes, MachineResources& machine, TextFindings* text = nullptr);
  /// `turns`, `groups`: as OpCosts takes them.
  MachineFlows(const Program& program, const BlockMap& blocks, const Profile& profile,
               double message_bytes, MachineResources& machine, std::vector<OpTurn> turns,
               int groups);

  const FlowList& begin(OpId id) override;
  const FlowList& reduce(OpId id) override;
  /// `made`: what begin(id) returns, from what it returned for an op that differs from this one in
  /// nothing but its lane. False: not that easily, and `made` is as it was.
  bool begin_on_lane(OpId id, OpId other, const FlowList& known, FlowList& made);
  /// Those that another op of the same shape starts, or so many others.
  const FlowList& again(const FlowList& list, double times = 1);
  bool reduces_separately(OpId id) const override {
    return costs_.reduces_separately(program_.ops[id]);
  }
  double bytes_per_s(ResourceId resource) const override { return machine_.bytes_per_s(resource); }
  /// What its flows depend on beside its places and its length.
  OpTurn turn_of(const Op& op) const { return costs_.turn_of(op); }
  /// OpCosts::turn_rules
  std::optional<TurnRules> turn_rules() const { return costs_.turn_rules(); }
  /// OpCosts::is_settled
  bool is_settled(const Op& op) const { return costs_.is_settled(op); }

 private:
  void stream(const Op& op);
  void pass_switch(const Op& op);
  void arrive(const Op& op);
  void add(double latency_s, double bytes, ResourceId alone = kNoResource);
  void count(const FlowList::Flow& flow, std::span<const ResourceId> resources, double times = 1);
  void send_message(const Path& path, double bytes);

  const Program& program_;
  const BlockMap& blocks_;
  const Profile& profile_;
  MachineResources& machine_;
  const OpCosts costs_;
  FlowList list_;
  std::vector<Transfer> transfers_;  ///< of the op that is looked at
};

}  // namespace espalier
