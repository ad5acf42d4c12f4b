// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/words.h"

namespace espalier {
namespace {

using Plan = MscclppPlan;
using Kind = Plan::Kind;
using Access = Plan::Ref::Access;

class Limits {
 public:
  explicit Limits(const Plan& plan) : plan_(plan) {}

  std::vector<Diagnostic> check() {
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      for (std::size_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        check_block(static_cast<int>(g), static_cast<int>(b), plan_.gpus[g].blocks[b]);
      }
    }
    if (plan_.threads > 1024) {
      exceed("the plan", plan_.line, static_cast<std::size_t>(plan_.threads),
             "threads of a threadblock", 1024);
    }
    return std::move(problems_);
  }

 private:
  void exceed(const std::string& who, int line, std::size_t count, std::string_view what,
              int most) {
    if (count <= static_cast<std::size_t>(most)) return;
    problems_.push_back({"limit",
                         fmt::format("{}: it has {} {}, but the executor of MSCCL++ takes at most "
                                     "{}",
                                     who, count, what, most),
                         "",
                         {{}, line, 0}});
  }

  void check_block(int gpu, int number, const Plan::ThreadBlock& block) {
    const std::string who = fmt::format("gpu {}, threadblock {}", gpu, number);
    std::size_t ops = block.ops.size();
    for (const Plan::Op& op : block.ops) ops += op.body.size();
    exceed(who, block.line, ops, "ops", kMscclppOps);
    for (const auto type : {Plan::Channel::memory, Plan::Channel::port, Plan::Channel::group}) {
      const auto t = static_cast<std::size_t>(type);
      exceed(who, block.line, static_cast<std::size_t>(block.channels[t]),
             fmt::format("{} channels", name_of(type)), kMscclppChannels);
      exceed(who, block.line, static_cast<std::size_t>(block.remote_buffers[t]),
             fmt::format("remote buffers for {} channels", name_of(type)), kMscclppChannels);
    }
    for (std::size_t k = 0; k < block.ops.size(); ++k) {
      MscclppOpPlace place{gpu, number, static_cast<int>(k), -1};
      check_op(place, block.ops[k]);
      for (const Plan::Op& inner : block.ops[k].body) {
        ++place.inner;
        check_op(place, inner);
      }
    }
  }

  void check_op(const MscclppOpPlace& place, const Plan::Op& op) {
    const std::string who = fmt::format("{} ({})", describe(place), op.type->name);
    exceed(who, op.line, op.channels.size(), "channels", kMscclppOpChannels);
    exceed(who, op.line, op.sources.size(), "sources", kMscclppOpBuffers);
    exceed(who, op.line, op.targets.size(), "destinations", kMscclppOpBuffers);
    exceed(who, op.line, op.semaphores.size(), "semaphores", kMscclppOpSemaphores);
    exceed(who, op.line, op.body.size(), "ops in its pipeline", kMscclppPipelineOps);
    if (op.type->kind == Kind::barrier) {
      exceed(who, op.line, static_cast<std::size_t>(op.barrier) + 1,
             "as its barrier's number, from 1 on,", kMscclppBarriers);
    }
  }

  const Plan& plan_;
  std::vector<Diagnostic> problems_;
};

bool waits(Kind kind) { return kind == Kind::wait || kind == Kind::sem_acquire; }

/// By its first threads alone, each after what it did before.
bool is_control(const Plan::Op& op) {
  return !op.type->has_data || op.channel_type == Plan::Channel::port;
}

bool announces(const Plan::Op& op) {
  return op.type->kind == Kind::signal || op.type->kind == Kind::sem_release || op.type->signals;
}

/// By several threads.
bool is_wide(const Plan::Op& op) { return op.channels.size() + op.semaphores.size() > 1; }

}  // namespace

const char* MscclppNops::conflict(const Earlier& earlier, const Earlier& now) {
  const bool threads_before = !is_control(*earlier.op);
  const bool threads_now = !is_control(*now.op);
  if (waits(earlier.op->type->kind) && threads_now) return "which waits for its data";
  if (threads_before && announces(*now.op)) return "the data of which it announces";
  if (!threads_before && !threads_now) {
    const bool holds = waits(earlier.op->type->kind) || earlier.op->type->flushes;
    const bool goes_on = announces(*now.op) || now.op->type->has_data;
    return holds && goes_on && (is_wide(*earlier.op) || is_wide(*now.op)) ? "which other threads do"
                                                                          : nullptr;
  }
  for (const Touched& a : earlier.touched) {
    for (const Touched& b : now.touched) {
      if ((a.writes || b.writes) && a.rank == b.rank && a.buffer == b.buffer && a.begin < b.end &&
          b.begin < a.end) {
        return "which touches the same data";
      }
    }
  }
  return nullptr;
}

/// Packets carry their own order, so reading and writing them needs no nop.
std::vector<MscclppNops::Touched> MscclppNops::touched_by(const Plan::Op& op, int gpu) const {
  std::vector<Touched> all;
  const auto add = [&](const Plan::Ref& ref, bool writes, bool packets) {
    if (packets) return;
    std::vector<int> ranks = {ref.rank};
    if (ref.access == Access::group) {
      ranks = plan_.gpus[static_cast<std::size_t>(gpu)]
                  .groups[static_cast<std::size_t>(ref.group)]
                  .ranks;
    }
    const std::int64_t begin = ref.index + ref.size * op.slice / op.slices;
    const std::int64_t end = ref.index + (ref.size * (op.slice + 1) + op.slices - 1) / op.slices;
    for (const int rank : ranks) all.push_back({rank, ref.buffer, begin, end, writes});
  };
  for (std::size_t k = 0; k < op.sources.size(); ++k) {
    add(op.sources[k], false, op.type->source_packets && (k > 0 || !op.type->reads));
  }
  for (std::size_t k = 0; k < op.targets.size(); ++k) {
    add(op.targets[k], true, op.type->target_packets && (k > 0 || !op.type->reads));
  }
  return all;
}

const Plan::Op* MscclppNops::unflushed(const Earlier& now, int gpu) const {
  const auto peer = [&](const Plan::Op& op) {
    return plan_.gpus[static_cast<std::size_t>(gpu)].peers[static_cast<std::size_t>(
        op.channel_type)][static_cast<std::size_t>(op.channels.front())];
  };
  for (const Earlier& put : in_flight_) {
    if (now.op->type->kind == Kind::sem_release) return put.op;
    // A signal follows the put on its own channel, but may overtake it on another one.
    const bool signals = now.op->type->kind == Kind::signal && !now.op->channels.empty();
    const bool same_channel =
        now.op->channel_type == Plan::Channel::port && now.op->channels == put.op->channels;
    if (signals && !same_channel && now.op->channels.size() == 1 &&
        peer(*now.op) == peer(*put.op)) {
      return put.op;
    }
    for (const Touched& source : put.touched) {
      for (const Touched& target : now.touched) {
        if (!source.writes && target.writes && source.rank == target.rank &&
            source.buffer == target.buffer && source.begin < target.end &&
            target.begin < source.end) {
          return put.op;
        }
      }
    }
  }
  return nullptr;
}

void MscclppNops::keep_in_flight(const Earlier& now) {
  if (now.op->type->flushes) {
    std::erase_if(in_flight_, [&](const Earlier& put) {
      return std::ranges::all_of(put.op->channels, [&](int channel) {
        return std::ranges::find(now.op->channels, channel) != now.op->channels.end();
      });
    });
  } else if (now.op->type->kind == Kind::put && now.op->channel_type == Plan::Channel::port &&
             in_flight_.size() < static_cast<std::size_t>(kMscclppOps)) {
    in_flight_.push_back(now);
  }
}

MscclppNops::Missing MscclppNops::before(const Plan::Op& op, int gpu) const {
  const Earlier now{&op, touched_by(op, gpu)};
  if (const Plan::Op* put = unflushed(now, gpu)) return {put, "which may go on", true};
  for (const Earlier& earlier : since_) {
    if (const char* why = conflict(earlier, now)) return {earlier.op, why};
  }
  return {};
}

void MscclppNops::take(const Plan::Op& op, int gpu) {
  if (op.type->kind == Kind::nop || op.type->kind == Kind::barrier) {
    since_.clear();
    return;
  }
  Earlier now{&op, touched_by(op, gpu)};
  keep_in_flight(now);
  // Longer thread blocks exceed a limit that is reported.
  if (since_.size() < static_cast<std::size_t>(kMscclppOps)) since_.push_back(std::move(now));
}

std::vector<std::string> missing_mscclpp_nops(const Plan& plan) {
  std::vector<std::string> found;
  MscclppNops nops(plan);
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    const int gpu = static_cast<int>(g);
    for (std::size_t b = 0; b < plan.gpus[g].blocks.size(); ++b) {
      nops.begin_block();
      MscclppOpPlace place{gpu, static_cast<int>(b), -1, -1};
      const auto pass = [&](const Plan::Op& op) {
        const MscclppNops::Missing missing = nops.before(op, gpu);
        nops.take(op, gpu);
        if (missing.earlier == nullptr) return;
        found.push_back(
            fmt::format("{} ({}) may overtake a {} of its threadblock, {}: a {} must "
                        "stand between them",
                        describe(place), op.type->name, missing.earlier->type->name, missing.why,
                        missing.is_flush ? "flush" : "nop"));
      };
      for (const Plan::Op& op : plan.gpus[g].blocks[b].ops) {
        ++place.op;
        place.inner = -1;
        pass(op);
        for (const Plan::Op& inner : op.body) {
          ++place.inner;
          pass(inner);
        }
      }
    }
  }
  return found;
}

std::vector<Diagnostic> check_mscclpp_limits(const MscclppPlan& plan) {
  return Limits(plan).check();
}

}  // namespace espalier
