// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/error.h"
#include "ir/block_program.h"
#include "sim/flow_engine.h"
#include "sim/machine_resources.h"

namespace espalier {

/// How an interpreter cuts a message of `message_bytes`.
struct LoopPlan {
  double chunk_bytes = 0;         ///< of the whole message
  double loop_bytes = 0;          ///< of every chunk, in one pass over the steps
  std::int64_t loops = 1;         ///< passes; the last one may move less
  double last_bytes = 0;          ///< of every chunk, in the last one
  std::int64_t piece_chunks = 1;  ///< that go in one piece, where a step has several

  /// How often what the first loops move is moved altogether.
  double repeated(std::int64_t first_loops) const;

  LoopPlan(const BlockProgram& blocks, const Protocol& protocol, double message_bytes);
};

/// Carries out thread blocks on the flow engine, step by step, as MSCCL's interpreter does:
///
/// - A step begins when the steps that it waits for are done for this loop; waiting costs
///   Profile::dependence_s. Its chunks go in pieces, each in parts: the protocol's slices
///   (Protocol::slices_per_op), or parts that are used as they come (streamed_parts).
/// - A part that is received has to be visible; one that is sent needs its steps of the FIFO. All
///   parts of a piece take the steps of a chunk together (loop_bytes / step_bytes).
/// - A block then works on the part alone: it copies or adds up within its GPU, at copy_gbps for
/// one
///   read and one write of every byte, and sends, at block_gbps or what its links leave it. Each of
///   the two costs what a hop holds, in which the first `pass_bytes` are contained.
/// - What was sent is visible after the latency of a hop and what drain_gbps says; steps of the
///   FIFO are free again after that latency.
///
/// Memory and arithmetic of a GPU are not contended for: blocks reach a fraction of them.
class BlockInterpreter {
 public:
  /// Refers to its arguments. Simulates the first `loops` loops of the plan.
  BlockInterpreter(const BlockProgram& blocks, const Target& target, const LoopPlan& plan,
                   std::int64_t loops, MachineResources& machine, const TimeUnit& unit,
                   FlowEngine& engine);

  void start();
  /// A flow of block number `token` has ended.
  void on_flow_done(FlowToken token);

  /// By loop, when all blocks had done with it. \pre the engine is dry and `is_done`
  std::vector<double> loop_ends_s() const;
  bool is_done() const { return running_ == 0; }
  std::int64_t transfers() const { return transfers_; }
  /// Which blocks never end, and what they wait for. \pre the engine is dry and not `is_done`
  std::vector<Diagnostic> explain_stuck() const;

 private:
  enum class Lacks : std::uint8_t { nothing, dependence, data, steps };

  struct Block {
    const BlockProgram::Block* program = nullptr;
    int gpu = 0;
    int number = 0;
    int in = -1;   ///< the block whose FIFO it receives from
    int out = -1;  ///< the block that receives what it sends
    std::int64_t loop = 0;
    std::size_t step = 0;
    int piece = 0;
    int part = 0;
    bool is_sending = false;
    bool is_finished = false;
    Lacks lacks = Lacks::nothing;
    std::vector<std::int64_t> loops_done;  ///< by step
    ResourceList resources;                ///< what sending uses
    ResourceId alone = kNoResource;        ///< and nobody else does
    double send_hold_s = 0;
    double landing_s = 0;
    double receive_hold_s = 0;
    double send_bytes_per_s = 0;
    double copy_bytes_per_s = 0;
    // The FIFO from this block to `out`.
    struct Returned {
      Ticks date;
      double steps = 0;
    };
    std::deque<Ticks> visible;  ///< parts, by the date from which they can be read
    std::deque<Returned> returned;
    double free_steps = 0;
  };

  void make_blocks();
  void connect();
  void run_ready();
  bool begin_part(std::size_t id);
  bool send(std::size_t id, Ticks wait);
  Lacks what_lacks(Block& block, Ticks& begin);
  bool take_steps(Block& block, Ticks& begin);
  void end_part(std::size_t id);
  void end_step(std::size_t id);
  void wake(std::size_t id, Lacks reason);

  const BlockProgram::Step& step_of(const Block& block) const {
    return block.program->steps[block.step];
  }
  double loop_bytes(const Block& block) const;
  double piece_bytes(const Block& block) const;
  int pieces(const Block& block) const;
  int parts(const Block& block) const;
  double part_bytes(const Block& block) const { return piece_bytes(block) / parts(block); }
  double hold_s(const Block& block, double hold_s) const;
  double local_s(const Block& block) const;
  std::string name_of(const Block& block) const;
  std::string what_it_lacks(const Block& block) const;

  const BlockProgram& program_;
  const Target& target_;
  const Protocol& protocol_;
  const LoopPlan plan_;
  const std::int64_t loops_;
  const double steps_per_piece_;
  const bool has_fifos_;
  MachineResources& machine_;
  const TimeUnit unit_;
  FlowEngine& engine_;
  std::vector<Block> blocks_;
  std::vector<std::vector<std::size_t>> of_gpu_;  ///< by GPU and thread block
  std::vector<Ticks> loop_ends_;
  std::vector<std::size_t> ready_;  ///< blocks that may be able to go on
  std::size_t running_ = 0;
  std::int64_t transfers_ = 0;
};

}  // namespace espalier
