// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/expected_error.h"
#include "topologies/launch_costs.h"

namespace espalier {

/// What a link can be used for when routes are chosen.
enum class LinkClass : std::uint8_t { gpu_fabric, host, network };

/// Start-up costs by the length of a message: libraries announce a longer one first, agree on it,
/// and then fetch it.
struct StartUp {
  /// Of messages of more than so many bytes.
  struct Longer {
    double above_bytes = 0;
    double s = 0;
    bool operator==(const Longer&) const = default;
  };
  double s = 0;                     ///< of short ones, and of all where `longer` is empty
  std::vector<Longer> longer = {};  ///< in order of lengths, none cheaper than a shorter one

  double of(double bytes) const;
  double most_s() const { return longer.empty() ? s : longer.back().s; }
  /// Of what crosses both, for the larger of the two costs.
  void combine(const StartUp& other);
  /// Whatever the length.
  void add(double more_s);
  bool operator==(const StartUp&) const = default;
};

/// What a profile says of one link kind.
struct LinkProfile {
  double efficiency = 1;  ///< achieved / theoretical bandwidth, (0, 1]
  double overhead_s = 0;  ///< start-up cost of a transfer whose route's slowest kind this is
  std::vector<StartUp::Longer> longer = {};  ///< and of longer ones

  StartUp start_up() const { return {overhead_s, longer}; }
};

/// How the arithmetic of a combine is charged: not at all; as part of the copy, which kernels make;
/// as a kernel after copies by copy engines (`separate`); as a kernel that reads its operands where
/// they lie, while copies are made by copy engines (`reading`).
enum class ReductionMode : std::uint8_t { free, fused, separate, reading };

/// What ops in a switch (Op::in_switch) cost.
struct SwitchOps {
  /// Blocks pass on an op in slices.
  struct Slices {
    double below_bytes = 0;  ///< of ops that move less than this; 0: of all others
    double bytes = 0;        ///< of a slice
    double wire = 0;         ///< SwitchOps::wire of these; 0: that
    double fill_s = 0;       ///< of an op: until its first slice has passed all buffers on its way
    bool operator==(const Slices&) const = default;
  };
  /// Bytes that keep links busy for every byte of data, where those of other ops are 1: switches
  /// read and store at a lower rate than kernels write.
  double wire = 1;
  double call_s = 0;           ///< of a collective that has such ops, beside all else
  double slice_s = 0;          ///< a slice holds its block so long beside its bytes
  std::vector<Slices> slices;  ///< in order of sizes; empty: one slice

  /// For an op of `bytes`: what it costs beside its bytes, and what these are on the wire.
  double fixed_s(double bytes) const;
  double wire_of(double bytes) const;
  /// The same of a slice of `bytes`, as those have it that are cut into such slices.
  double wire_of_slice(double bytes) const;

  bool operator==(const SwitchOps&) const = default;

 private:
  const Slices* slices_for(double bytes) const;
};

/// How the blocks of a runtime write data and say that it is there, such as NCCL's Simple, LL and
/// LL128. docs/topologies.md has the constants and where they come from.
struct Protocol {
  std::string name;   ///< "simple", "ll"; empty: the runtime has no protocols
  std::string title;  ///< one line about it
  double wire = 1;    ///< bytes on links for every byte of data, flags included
  double call_s = 0;  ///< of a collective, beside Profile::call_overhead_s
  /// What an op costs beside its bytes when the slowest class of its route is this, until its
  /// result can be used: the latency of the route is part of it. Each further slice of it (see
  /// `slice_bytes`) costs as much again, or what it holds the block for.
  std::map<LinkClass, double> hop_s;
  /// How much of a hop holds the block; the rest is latency, as where a NIC and its proxy pass data
  /// on while the block goes on. Not listed: all but the latency of the links.
  std::map<LinkClass, double> hold_s;
  /// By the beginning of the receiving GPU's model: by how much a hop over the GPU fabric is
  /// longer, and holds the block for longer, as where receivers fetch the data and have to wait for
  /// it.
  std::map<std::string, double> hop_more_s;
  double min_op_s = 0;  ///< no op over a link takes less until its result can be used
  /// GB/s of data in which the sender's proxy looks for flags before it posts a message, by the
  /// maker of CPUs (cpu_maker.h). Not listed: the GPU says when all is there.
  std::map<std::string, double> checked_gbps;
  /// The blocks of a GPU begin together, so that all pause for a hop at the same time and their
  /// links idle. Whoever is ahead has the links to itself, and gets further ahead, until blocks
  /// have drifted apart: after so many ops over links of a lane its pauses fall into the transfers
  /// of others. An op over the GPU fabric then takes as long as pause and bytes take by themselves,
  /// and its links are busy meanwhile. 0: they stay in step.
  int drift_ops = 0;
  /// Blocks pass on an op in slices: as many as make none longer than this (0: one), and no fewer
  /// than `slices_per_op`, unless they would be shorter than `min_slice_bytes`.
  double slice_bytes = 0;
  double min_slice_bytes = 0;
  int slices_per_op = 1;
  /// A lane whose ops add up operands of several peers reads so much of each in lockstep at its
  /// beginning: the blocks of all GPUs that do so begin with the same peer and go on to the same
  /// next one, so that they share its links each time, until they have drifted apart. 0: GPUs begin
  /// with different peers.
  double lockstep_bytes = 0;
  double step_bytes = 0;  ///< of a FIFO's step; 0: there are no FIFOs
  // Of interpreters (Profile::interprets) alone:
  double loop_bytes = 0;  ///< of a chunk, moved in one pass over the steps; 0: all of it
  /// What all threads of a block move at once: it takes no longer than what an op costs anyway.
  double pass_bytes = 0;
  /// Words that carry their own flags can be used as they come: a receiver begins with the first of
  /// so many parts of an op while the others are sent. Parts cost nothing of their own.
  int streamed_parts = 1;
  /// What a block has written is still on its way, at this rate, when it goes on; 0: at any.
  double drain_gbps = 0;
  /// GB/s of data that one block moves, and that a GPU's blocks send together, by the beginning of
  /// the GPU's model; "other": of the rest. Not listed: as fast as its links.
  std::map<std::string, double> block_gbps;
  std::map<std::string, double> gpu_gbps;
  /// GB/s at which a block copies within the memory of its GPU, such as out of a FIFO, for
  /// interpreters and BlockUse::ops_per_local. Not listed: block_gbps.
  std::map<std::string, double> copy_gbps;
  std::vector<std::string> not_on;  ///< beginnings of models that cannot use it
  bool over_host_links = true;      ///< false: between GPUs it needs the GPU fabric or a network
  /// Ops in switches are made with it, too, in its own slices and at its own hops; with the one for
  /// bulk data they always are.
  bool in_switch = false;

  /// What ops in switches cost with it, by GPU model, where those with bulk data cost `of_bulk`.
  /// \pre it is not the protocol for bulk data
  std::map<std::string, SwitchOps> switch_ops(
      const std::map<std::string, SwitchOps>& of_bulk) const;
};

/// How a program that was written for a runtime's blocks uses them.
struct BlockUse {
  bool one_per_lane = false;  ///< each lane is a block of its own, however many there are
  double rate = 1;  ///< share of a block's rate that it reaches: it has fewer threads than others
  int slices_per_op = 0;  ///< instead of Protocol::slices_per_op; 0: that
  /// Of so many ops over links that a lane makes in a row, there is one more that stays in the GPU,
  /// such as out of a FIFO, or into one: each op is the longer by its share. 0: there is none.
  int ops_per_local = 0;
  bool ops_are_slices = false;  ///< ops in switches are not cut further (SwitchOps::slices)
  /// Words carry their own flags, so that a receiver begins with the first of what is sent. An op
  /// that goes on where the one before it in the program ended is a further part of the same send,
  /// and costs nothing but its bytes.
  bool streams = false;
  int launched = 0;  ///< blocks that a GPU launches; 0: as many as its lanes have
  bool operator==(const BlockUse&) const = default;
};

/// A runtime: what moves the bytes, at which rates and costs. docs/topologies.md.
struct Profile {
  std::string name;            ///< "ideal", "kernel:ll", or the user's
  std::string title;           ///< one line about it
  std::string like;            ///< the profile that it began with; empty: none
  bool uses_measured = false;  ///< Link::measured_gbps, if known, overrides `efficiency`
  bool models_memory = false;  ///< node memory bandwidth is contended for
  ReductionMode reduction = ReductionMode::free;
  /// An op that fetches operands holds its lane until they have come. Otherwise whoever has them
  /// sends them, and their way holds nobody's lane, as in the postal model and LogP.
  bool gets_wait = true;
  /// The profile that a vendor's library runs under on machines where this one is used; empty: this
  /// one itself.
  std::string library;
  double call_overhead_s = 0;     ///< of a collective, before anything moves: a launch
  double local_overhead_s = 0;    ///< start-up of an op with no remote operand
  double reduce_overhead_s = 0;   ///< start-up of a kernel that only reduces, by a GPU
  double staging_overhead_s = 0;  ///< extra start-up of a route through host memory
  /// What the thread on the host that posts the network's messages for a GPU, its proxy, takes for
  /// each that is sent or received, one after the other; and by the maker of CPUs (cpu_maker.h) by
  /// how much more. A hop over the network (Protocol::hop_s) contains that of its own message.
  double message_s = 0;
  std::map<std::string, double> message_more_s;
  int blocks = 0;  ///< that a GPU has for communication; 0: any number
  /// Blocks that have no lane of their own share the ops of the others' lanes; otherwise a lane is
  /// one block.
  bool splits_lanes = false;
  LaunchCosts launch;  ///< what the host does for a call, which a benchmark sees
  int fifo_steps = 0;  ///< of a FIFO from a block to a peer (Protocol::step_bytes)
  /// Files with the steps of thread blocks are carried out as they are, by an interpreter such as
  /// MSCCL's (ir/block_program.h).
  bool interprets = false;
  double dependence_s = 0;  ///< a step of an interpreter that waits for other blocks of its GPU
  /// By the beginning of the GPU's model: the profile that takes this one's place on machines whose
  /// GPUs are all such.
  std::map<std::string, std::string> on_models;
  /// By the beginning of the GPU's model, "other" for the rest, and "network" for switches of the
  /// network. Empty: no kernel here makes ops in switches; and those that do, do so with the
  /// protocol for bulk data, or one that says so (Protocol::in_switch).
  std::map<std::string, SwitchOps> in_switch;
  std::map<std::string, LinkProfile> links;  ///< by link kind; absent: efficiency 1, no overhead
  std::vector<Protocol> protocols;           ///< those there are, the one for bulk data first
  Protocol protocol;                         ///< the one in use
  /// How far simulations under it were from measurements. Changed figures have not been compared:
  /// a profile that begins with those of another one, or changes them, has none but its own.
  std::vector<ComparedError> errors;

  /// As the runtime does with this protocol: named "kernel:ll", its call costs included.
  /// \pre it is one of `protocols`
  Profile under(const std::string& protocol_name) const;
  /// The same, or under the protocol for bulk data where none is named: "kernel" itself then, as
  /// the protocol is open.
  Profile in_use(const std::string& protocol_name) const;
  /// Null when there is none: for GPUs of this model, in a switch of the network or else near them.
  const SwitchOps* switch_ops(std::string_view model, bool in_network) const;
  /// Leaves out blocks, protocols and the cost of a call: for what was measured op by op.
  void forget_blocks();
};

/// What an op over a link costs beside its bytes: "3.40 us", "14.0 us (simple), 4.00 us (ll128)".
std::string cost_text(const Profile& profile, const std::string& link_kind, LinkClass link_class);

/// The figure for a GPU model of a table by beginnings of models (Protocol::block_gbps): that of
/// the longest one, of "other", or 0.
double figure_of(const std::map<std::string, double>& by_model, std::string_view model);

/// Protocols are named as "ll", whether LL or ll is written.
std::string lower_case(std::string_view name);

/// "kernel:ll" is runtime "kernel" with protocol "ll"; without one, the protocol is open.
struct ProfileWord {
  std::string runtime;
  std::string protocol;
};
ProfileWord profile_word(std::string_view spec);

}  // namespace espalier
