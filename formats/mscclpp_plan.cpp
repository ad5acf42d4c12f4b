// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace espalier {
namespace {

using Kind = MscclppPlan::Kind;
using Access = MscclppPlan::Ref::Access;

constexpr Access kHere = Access::local;
constexpr Access kThere = Access::remote;
constexpr Access kGroup = Access::group;

/// Names and meanings are those of src/core/executor/execution_plan.cc and
/// src/core/include/execution_kernel.hpp of microsoft/mscclpp, version 0.9.
constexpr MscclppPlan::OpType kOps[] = {
    {.name = "nop", .kind = Kind::nop},
    {.name = "barrier", .kind = Kind::barrier},
    {.name = "sem_acquire", .kind = Kind::sem_acquire},
    {.name = "sem_release", .kind = Kind::sem_release},
    {.name = "signal", .kind = Kind::signal},
    {.name = "rlxsignal", .kind = Kind::signal, .relaxed = true},
    {.name = "wait", .kind = Kind::wait},
    {.name = "rlxwait", .kind = Kind::wait, .relaxed = true},
    {.name = "flush", .kind = Kind::flush, .flushes = true},
    {.name = "put", .kind = Kind::put, .target = kThere, .has_data = true},
    {.name = "pws", .kind = Kind::put, .target = kThere, .has_data = true, .signals = true},
    {.name = "pwsf",
     .kind = Kind::put,
     .target = kThere,
     .has_data = true,
     .signals = true,
     .flushes = true},
    {.name = "ppkt", .kind = Kind::put, .target = kThere, .target_packets = true, .has_data = true},
    {.name = "rppkt",
     .kind = Kind::spread,
     .target = kThere,
     .source_packets = true,
     .target_packets = true,
     .has_data = true},
    {.name = "get", .kind = Kind::get, .source = kThere, .has_data = true},
    {.name = "copy", .kind = Kind::copy, .local_targets = 1, .has_data = true},
    {.name = "cpkt",
     .kind = Kind::copy,
     .local_targets = 1,
     .target_packets = true,
     .has_data = true},
    {.name = "upkt",
     .kind = Kind::copy,
     .local_targets = 1,
     .source_packets = true,
     .has_data = true},
    {.name = "re", .kind = Kind::reduce, .local_targets = 1, .reads = true, .has_data = true},
    {.name = "res",
     .kind = Kind::reduce,
     .target = kThere,
     .local_targets = 1,
     .reads = true,
     .has_data = true},
    {.name = "rre",
     .kind = Kind::reduce,
     .source = kThere,
     .local_targets = 1,
     .reads = true,
     .has_data = true},
    {.name = "rres",
     .kind = Kind::reduce,
     .source = kThere,
     .target = kThere,
     .local_targets = 1,
     .reads = true,
     .has_data = true},
    {.name = "repkt",
     .kind = Kind::reduce,
     .local_targets = 1,
     .reads = true,
     .source_packets = true,
     .has_data = true},
    {.name = "respkt",
     .kind = Kind::reduce,
     .target = kThere,
     .local_targets = 1,
     .reads = true,
     .source_packets = true,
     .target_packets = true,
     .has_data = true},
    {.name = "recpkt",
     .kind = Kind::reduce,
     .local_targets = 2,
     .reads = true,
     .source_packets = true,
     .target_packets = true,
     .has_data = true},
    {.name = "recspkt",
     .kind = Kind::reduce,
     .target = kThere,
     .local_targets = 2,
     .reads = true,
     .source_packets = true,
     .target_packets = true,
     .has_data = true},
    {.name = "gstore", .kind = Kind::spread, .target = kGroup, .has_data = true},
    {.name = "glres",
     .kind = Kind::switch_reduce,
     .source = kGroup,
     .target = kGroup,
     .has_data = true},
    {.name = "pipeline", .kind = Kind::pipeline},
};

}  // namespace

std::span<const MscclppPlan::OpType> mscclpp_op_types() { return kOps; }

const MscclppPlan::OpType* find_mscclpp_op(std::string_view name) {
  const auto* found = std::ranges::find(kOps, name, &MscclppPlan::OpType::name);
  return found == std::end(kOps) ? nullptr : found;
}

std::string_view letter_of(MscclppPlan::Buffer buffer) {
  constexpr std::string_view kLetters[] = {"i", "o", "s"};
  return kLetters[static_cast<std::size_t>(buffer)];
}

std::string_view name_of(MscclppPlan::Channel channel) {
  constexpr std::string_view kNames[] = {"none", "memory", "port", "switch"};
  return kNames[static_cast<std::size_t>(channel)];
}

MscclppTables tables_of(const MscclppPlan::ThreadBlock& block) {
  MscclppTables tables;
  const auto once = [](auto& list, const auto& value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
  };
  for (const MscclppPlan::Op& op : block.ops) {
    const auto type = static_cast<std::size_t>(op.channel_type);
    for (const int channel : op.channels) once(tables.channels[type], channel);
    for (const auto* refs : {&op.sources, &op.targets}) {
      for (const MscclppPlan::Ref& ref : *refs) {
        if (ref.access == Access::group) once(tables.channels[type], ref.group);
        if (ref.access == Access::remote) {
          once(tables.buffers[type], MscclppTables::Remote{ref.rank, ref.buffer});
        }
      }
    }
  }
  return tables;
}

std::string describe(const MscclppOpPlace& place) {
  std::string text = fmt::format("gpu {}, threadblock {}, op {}", place.gpu, place.block, place.op);
  if (place.inner >= 0) text += fmt::format(", inner op {}", place.inner);
  return text;
}

std::vector<std::vector<MscclppEnd>> other_ends(const MscclppPlan& plan,
                                                MscclppPlan::Channel channel) {
  const auto type = static_cast<std::size_t>(channel);
  std::map<std::pair<int, int>, std::vector<int>> between;  // channels of a GPU to a peer
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    const std::vector<int>& peers = plan.gpus[gpu].peers[type];
    for (std::size_t k = 0; k < peers.size(); ++k) {
      between[{static_cast<int>(gpu), peers[k]}].push_back(static_cast<int>(k));
    }
  }
  std::vector<std::vector<MscclppEnd>> ends(plan.gpus.size());
  for (std::size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
    std::map<int, std::size_t> seen;
    for (const int peer : plan.gpus[gpu].peers[type]) {
      const auto back = between.find({peer, static_cast<int>(gpu)});
      const std::size_t k = seen[peer]++;
      const bool paired = back != between.end() && k < back->second.size();
      ends[gpu].push_back({peer, paired ? back->second[k] : -1});
    }
  }
  return ends;
}

MscclppHosts hosts_of(const MscclppPlan& plan) {
  MscclppHosts hosts;
  std::vector<int>& host = hosts.of_rank;
  host.resize(plan.gpus.size());
  std::iota(host.begin(), host.end(), 0);
  // The host's number is that of its first GPU.
  const auto join = [&](int a, int b) {
    const int first =
        std::min(host[static_cast<std::size_t>(a)], host[static_cast<std::size_t>(b)]);
    const int other =
        std::max(host[static_cast<std::size_t>(a)], host[static_cast<std::size_t>(b)]);
    if (first != other) std::ranges::replace(host, other, first);
  };
  const auto peers = [&](int gpu, MscclppPlan::Channel channel) -> const std::vector<int>& {
    return plan.gpus[static_cast<std::size_t>(gpu)].peers[static_cast<std::size_t>(channel)];
  };
  const int gpus = static_cast<int>(plan.gpus.size());
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (const int peer : peers(gpu, MscclppPlan::Channel::memory)) join(gpu, peer);
    for (const auto& group : plan.gpus[static_cast<std::size_t>(gpu)].groups) {
      for (const int rank : group.ranks) join(gpu, rank);
    }
  }
  bool leads_out = false;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (const int peer : peers(gpu, MscclppPlan::Channel::port)) {
      const bool is_same =
          host[static_cast<std::size_t>(gpu)] == host[static_cast<std::size_t>(peer)];
      leads_out |= !is_same;
      if (is_same && hosts.same.first == hosts.same.second) hosts.same = {gpu, peer};
    }
  }
  if (!leads_out) host.clear();
  return hosts;
}

}  // namespace espalier
