// SPDX-License-Identifier: Apache-2.0
#include "sim/block_interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/words.h"

namespace espalier {
namespace {

/// Bytes are doubles: what divides exactly must not look a little too large.
constexpr double kTolerance = 1e-9;
constexpr double kBytesPerGigabyte = 1e9;
constexpr std::size_t kMaxShown = 8;

std::int64_t divided_up(double bytes, double by) {
  return std::max<std::int64_t>(1, std::llround(std::ceil(bytes / by * (1 - kTolerance))));
}

}  // namespace

LoopPlan::LoopPlan(const BlockProgram& blocks, const Protocol& protocol, double message_bytes)
    : chunk_bytes(message_bytes / blocks.chunks) {
  const double most = protocol.loop_bytes > 0 ? protocol.loop_bytes : chunk_bytes;
  loop_bytes = std::min(chunk_bytes, most);
  if (chunk_bytes <= 0) return;
  loops = divided_up(chunk_bytes, most);
  last_bytes = chunk_bytes - static_cast<double>(loops - 1) * loop_bytes;
  piece_chunks =
      std::max<std::int64_t>(1, std::llround(std::floor(most / chunk_bytes + kTolerance)));
}

double LoopPlan::repeated(std::int64_t first_loops) const {
  if (first_loops >= loops) return 1;
  return chunk_bytes / (static_cast<double>(first_loops) * loop_bytes);
}

BlockInterpreter::BlockInterpreter(const BlockProgram& blocks, const Target& target,
                                   const LoopPlan& plan, std::int64_t loops,
                                   MachineResources& machine, const TimeUnit& unit,
                                   FlowEngine& engine)
    : program_(blocks),
      target_(target),
      protocol_(target.router->profile().protocol),
      plan_(plan),
      loops_(loops),
      steps_per_piece_(protocol_.step_bytes > 0
                           ? std::max(1.0, std::ceil(protocol_.loop_bytes / protocol_.step_bytes *
                                                     (1 - kTolerance)))
                           : 0),
      has_fifos_(steps_per_piece_ > 0 && target.router->profile().fifo_steps > 0),
      machine_(machine),
      unit_(unit),
      engine_(engine),
      loop_ends_(static_cast<std::size_t>(loops)) {
  make_blocks();
  connect();
}

void BlockInterpreter::make_blocks() {
  of_gpu_.resize(program_.gpus.size());
  for (int gpu = 0; gpu < program_.ranks(); ++gpu) {
    const NodeId node = target_.placement.ranks[static_cast<std::size_t>(gpu)];
    const std::string& model = target_.router->topology().node(node).model;
    const double send_gbps = figure_of(protocol_.block_gbps, model);
    const double copy_gbps = figure_of(protocol_.copy_gbps, model);
    int number = 0;
    for (const BlockProgram::Block& one : program_.gpus[static_cast<std::size_t>(gpu)]) {
      of_gpu_[static_cast<std::size_t>(gpu)].push_back(blocks_.size());
      Block& block = blocks_.emplace_back();
      block.program = &one;
      block.gpu = gpu;
      block.number = number++;
      block.loops_done.assign(one.steps.size(), 0);
      block.free_steps = target_.router->profile().fifo_steps;
      block.send_bytes_per_s = send_gbps * kBytesPerGigabyte;
      block.copy_bytes_per_s = (copy_gbps > 0 ? copy_gbps : send_gbps) * kBytesPerGigabyte;
      block.is_finished = one.steps.empty();
      if (!block.is_finished) ++running_;
    }
  }
}

/// FIFOs, and what their routes cost.
void BlockInterpreter::connect() {
  std::map<std::tuple<int, int, int>, std::size_t> receivers;  // from, to, channel
  for (std::size_t id = 0; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    if (block.program->recv < 0) continue;
    receivers[{block.program->recv, block.gpu, block.program->channel}] = id;
  }
  const auto held = protocol_.hold_s.find(LinkClass::gpu_fabric);
  for (std::size_t id = 0; id < blocks_.size(); ++id) {
    Block& block = blocks_[id];
    if (block.receive_hold_s == 0 && held != protocol_.hold_s.end()) {
      block.receive_hold_s = held->second;
    }
    const int peer = block.program->send;
    if (peer < 0) continue;
    const Path& path = machine_.path(block.gpu, peer, -1);
    block.send_hold_s = path.start_up.of(plan_.loop_bytes);
    block.landing_s = path.latency_s;
    block.resources = path.resources;
    block.alone = machine_.block(block.gpu, static_cast<std::uint16_t>(block.number), 1,
                                 path.narrowest_bytes_per_s);
    machine_.use_exchange(block.gpu, peer, Arrival::fresh, block.resources);
    machine_.use_sender(block.gpu, block.resources);
    const auto receiver = receivers.find({block.gpu, peer, block.program->channel});
    if (receiver == receivers.end()) continue;
    block.out = static_cast<int>(receiver->second);
    blocks_[receiver->second].in = static_cast<int>(id);
    blocks_[receiver->second].receive_hold_s = path.start_up.of(plan_.loop_bytes);
  }
}

void BlockInterpreter::start() {
  for (std::size_t id = 0; id < blocks_.size(); ++id) {
    if (!blocks_[id].is_finished) ready_.push_back(id);
  }
  run_ready();
}

void BlockInterpreter::on_flow_done(FlowToken token) {
  const std::size_t id = token;
  const bool has_to_send =
      !std::exchange(blocks_[id].is_sending, false) && step_of(blocks_[id]).sends;
  if (!has_to_send || send(id, {})) {
    end_part(id);
    ready_.push_back(id);
  }
  run_ready();
}

/// Blocks that can go on are appended and reached by this loop.
void BlockInterpreter::run_ready() {
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    const std::size_t id = ready_[i];
    while (!blocks_[id].is_finished && begin_part(id)) end_part(id);
  }
  ready_.clear();
}

double BlockInterpreter::loop_bytes(const Block& block) const {
  return block.loop == plan_.loops - 1 ? plan_.last_bytes : plan_.loop_bytes;
}

int BlockInterpreter::pieces(const Block& block) const {
  return static_cast<int>((step_of(block).chunks + plan_.piece_chunks - 1) / plan_.piece_chunks);
}

double BlockInterpreter::piece_bytes(const Block& block) const {
  const std::int64_t left = step_of(block).chunks - block.piece * plan_.piece_chunks;
  return static_cast<double>(std::min(left, plan_.piece_chunks)) * loop_bytes(block);
}

/// Only what FIFOs pass on is cut.
int BlockInterpreter::parts(const Block& block) const {
  const BlockProgram::Step& step = step_of(block);
  if (!step.sends && !step.receives) return 1;
  const double bytes = piece_bytes(block);
  const auto at_most = [&](int wanted, double min_bytes) {
    if (min_bytes <= 0) return wanted;
    return static_cast<int>(std::min<std::int64_t>(wanted, divided_up(bytes, min_bytes)));
  };
  return std::max(at_most(protocol_.slices_per_op, protocol_.min_slice_bytes),
                  at_most(protocol_.streamed_parts, protocol_.pass_bytes));
}

/// What a part costs beside its bytes: streamed ones after the first are nothing by themselves.
double BlockInterpreter::hold_s(const Block& block, double hold_s) const {
  return block.part > 0 && protocol_.streamed_parts > 1 ? 0 : hold_s;
}

/// Copying or adding up within the GPU.
double BlockInterpreter::local_s(const Block& block) const {
  const double bytes = part_bytes(block);
  const double own_s = hold_s(block, block.receive_hold_s);
  const double free_bytes = own_s > 0 ? std::min(bytes, protocol_.pass_bytes) : 0;
  if (block.copy_bytes_per_s <= 0) return own_s;
  constexpr double kAccessesOfCopy = 2;
  return own_s + (bytes - free_bytes) * step_of(block).accesses /
                     (kAccessesOfCopy * block.copy_bytes_per_s);
}

/// True when the part takes no time at all.
bool BlockInterpreter::begin_part(std::size_t id) {
  Block& block = blocks_[id];
  Ticks begin = engine_.now();
  block.lacks = what_lacks(block, begin);
  if (block.lacks != Lacks::nothing) return false;
  const BlockProgram::Step& step = step_of(block);
  double seconds = 0;
  if (!step.awaits.empty() && block.piece == 0 && block.part == 0) {
    seconds += target_.router->profile().dependence_s;
  }
  if (step.accesses > 0) seconds += local_s(block);
  const Ticks time = TimeUnit::between(engine_.now(), begin) + unit_.from_s(seconds);
  if (step.accesses == 0) return send(id, time);
  if (time.value <= 0) return !step.sends || send(id, {});
  engine_.start({}, time, 0, static_cast<FlowToken>(id));
  return false;
}

/// True when that takes no time. The first pass is contained in what sending costs anyway.
bool BlockInterpreter::send(std::size_t id, Ticks wait) {
  Block& block = blocks_[id];
  const double bytes = part_bytes(block);
  const double pass_s = block.send_bytes_per_s > 0
                            ? std::min(bytes, protocol_.pass_bytes) / block.send_bytes_per_s
                            : 0;
  const double own_s = std::max(hold_s(block, block.send_hold_s) - pass_s, 0.0);
  machine_.count(span_of(block.resources), bytes * plan_.repeated(loops_));
  if (block.alone != kNoResource) machine_.count(block.alone, bytes * plan_.repeated(loops_));
  ++transfers_;
  const Ticks latency = wait + unit_.from_s(own_s);
  const bool moves = bytes > 0 && (!block.resources.empty() || block.alone != kNoResource);
  if (latency.value <= 0 && !moves) return true;
  block.is_sending = true;
  engine_.start(span_of(block.resources), block.alone, latency, bytes, static_cast<FlowToken>(id));
  return false;
}

/// What a block has to wait for before its part, and otherwise the date at which that may begin.
/// The steps of the FIFO are taken then.
BlockInterpreter::Lacks BlockInterpreter::what_lacks(Block& block, Ticks& begin) {
  const BlockProgram::Step& step = step_of(block);
  for (const BlockProgram::Awaited& one : step.awaits) {
    const std::size_t other =
        of_gpu_[static_cast<std::size_t>(block.gpu)][static_cast<std::size_t>(one.block)];
    const Block& awaited = blocks_[other];
    if (awaited.loops_done[static_cast<std::size_t>(one.step)] <= block.loop) {
      return Lacks::dependence;
    }
  }
  if (step.receives) {
    CHECK(block.in >= 0);
    const std::deque<Ticks>& visible = blocks_[static_cast<std::size_t>(block.in)].visible;
    if (visible.empty()) return Lacks::data;
    begin = std::max(begin, visible.front());
  }
  if (step.sends && !take_steps(block, begin)) return Lacks::steps;
  return Lacks::nothing;
}

/// Those that were returned first are used again first.
bool BlockInterpreter::take_steps(Block& block, Ticks& begin) {
  if (!has_fifos_) return true;
  const double needed = steps_per_piece_ / parts(block);
  Ticks date = begin;
  while (block.free_steps < needed * (1 - kTolerance) && !block.returned.empty()) {
    block.free_steps += block.returned.front().steps;
    date = std::max(date, block.returned.front().date);
    block.returned.pop_front();
  }
  if (block.free_steps < needed * (1 - kTolerance)) return false;
  block.free_steps -= needed;
  begin = date;
  return true;
}

void BlockInterpreter::end_part(std::size_t id) {
  Block& block = blocks_[id];
  const BlockProgram::Step& step = step_of(block);
  const int parts = this->parts(block);
  const Ticks now = engine_.now();
  if (step.receives) {
    Block& sender = blocks_[static_cast<std::size_t>(block.in)];
    sender.visible.pop_front();
    sender.returned.push_back({now + unit_.from_s(sender.landing_s), steps_per_piece_ / parts});
    wake(static_cast<std::size_t>(block.in), Lacks::steps);
  }
  if (step.sends) {
    const double drain_s = protocol_.drain_gbps > 0
                               ? part_bytes(block) / (protocol_.drain_gbps * kBytesPerGigabyte)
                               : 0;
    block.visible.push_back(now + unit_.from_s(block.landing_s + drain_s));
    if (block.out >= 0) wake(static_cast<std::size_t>(block.out), Lacks::data);
  }
  if (++block.part < parts) return;
  block.part = 0;
  if (++block.piece < pieces(block)) return;
  block.piece = 0;
  end_step(id);
}

void BlockInterpreter::end_step(std::size_t id) {
  Block& block = blocks_[id];
  block.loops_done[block.step] = block.loop + 1;
  for (const std::size_t other : of_gpu_[static_cast<std::size_t>(block.gpu)]) {
    wake(other, Lacks::dependence);
  }
  if (++block.step < block.program->steps.size()) return;
  block.step = 0;
  Ticks& end = loop_ends_[static_cast<std::size_t>(block.loop)];
  end = std::max(end, engine_.now());
  if (++block.loop < loops_) return;
  block.is_finished = true;
  --running_;
}

void BlockInterpreter::wake(std::size_t id, Lacks reason) {
  if (blocks_[id].lacks != reason) return;
  blocks_[id].lacks = Lacks::nothing;
  ready_.push_back(id);
}

std::vector<double> BlockInterpreter::loop_ends_s() const {
  CHECK(is_done());
  std::vector<double> seconds;
  for (const Ticks end : loop_ends_) seconds.push_back(unit_.to_s(end));
  return seconds;
}

std::string BlockInterpreter::name_of(const Block& block) const {
  const BlockProgram::Step& step = step_of(block);
  return fmt::format("gpu {}, thread block {}, step {} ({})", block.gpu, block.number, step.number,
                     step.kind);
}

std::string BlockInterpreter::what_it_lacks(const Block& block) const {
  if (block.lacks == Lacks::data) {
    const Block& sender = blocks_[static_cast<std::size_t>(block.in)];
    return sender.is_finished ? "a message that nobody sends"
                              : fmt::format("a message, while {} waits itself", name_of(sender));
  }
  if (block.lacks == Lacks::steps) {
    const std::string to =
        fmt::format("room in its FIFO to gpu {}, which nobody empties", block.program->send);
    if (block.out < 0) return to;
    return fmt::format("{} before {} is done", to,
                       name_of(blocks_[static_cast<std::size_t>(block.out)]));
  }
  std::vector<std::string> awaited;
  for (const BlockProgram::Awaited& one : step_of(block).awaits) {
    const Block& other =
        blocks_[of_gpu_[static_cast<std::size_t>(block.gpu)][static_cast<std::size_t>(one.block)]];
    const auto step = static_cast<std::size_t>(one.step);
    if (other.loops_done[step] > block.loop) continue;
    awaited.push_back(
        fmt::format("step {} of thread block {}", other.program->steps[step].number, one.block));
  }
  return join(awaited, " and ");
}

std::vector<Diagnostic> BlockInterpreter::explain_stuck() const {
  std::vector<Diagnostic> problems(1);
  std::size_t shown = 0;  // of all that wait
  // FIFOs that are full first: they are why the others wait.
  for (const bool is_full : {true, false}) {
    for (const Block& block : blocks_) {
      if (block.is_finished || (block.lacks == Lacks::steps) != is_full) continue;
      if (++shown > kMaxShown) break;
      problems.push_back({{},
                          fmt::format("{} waits for {}", name_of(block), what_it_lacks(block)),
                          {},
                          {program_.file, step_of(block).line, 0}});
    }
  }
  problems.front().message = fmt::format("the algorithm hangs: {} of {} never end", running_,
                                         counted(blocks_.size(), "thread block"));
  problems.front().suggestion =
      "smaller messages, another protocol, or blocks that receive before they fill a FIFO";
  problems.front().where.file = program_.file;
  return problems;
}

}  // namespace espalier
