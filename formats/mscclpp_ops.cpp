// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/print.h"

namespace espalier {
namespace {

using Plan = MscclppPlan;
using Access = Plan::Ref::Access;

}  // namespace

MscclppOps::MscclppOps(const Program& program, const WritingOptions& options, Plan& plan)
    : program_(program), options_(options), plan_(plan) {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    all_inputs_ &=
        input_region(program.contract, rank).units >= output_region(program.contract, rank).units;
  }
}

void MscclppOps::refuse(OpId id, const std::string& why, const std::string& help) {
  problems_.push_back({"",
                       fmt::format("op {} ({}): {}", id, to_string(program_, id), why),
                       help,
                       {{}, program_.lines.empty() ? 0 : program_.lines[id], 0}});
}

bool MscclppOps::same_host(int rank, int peer) const {
  const std::vector<int>& hosts = options_.host_of_rank;
  return hosts.empty() ||
         hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(peer)];
}

Plan::Channel MscclppOps::channel_between(int rank, int peer) const {
  return same_host(rank, peer) ? Plan::Channel::memory : Plan::Channel::port;
}

/// In place, a rank's buffer has two names. Plans of the public language take that of the larger
/// region; all ranks take the same one, as switch channels need it.
Plan::Ref MscclppOps::ref(const Operand& operand, std::uint32_t length, int at) const {
  Plan::Ref made;
  made.access = operand.place == at ? Access::local : Access::remote;
  made.rank = operand.place;
  made.index = operand.begin;
  made.size = length;
  if (operand.buffer == Buffer::tmp) {
    made.buffer = Plan::Buffer::scratch;
  } else if (!program_.contract.in_place) {
    made.buffer = operand.buffer == Buffer::in ? Plan::Buffer::input : Plan::Buffer::output;
  } else {
    const Region in = input_region(program_.contract, operand.place);
    const Region out = output_region(program_.contract, operand.place);
    const bool in_result =
        operand.begin >= out.begin && operand.begin + length <= out.begin + out.units;
    const bool is_input = all_inputs_ || !in_result;
    made.buffer = is_input ? Plan::Buffer::input : Plan::Buffer::output;
    made.index -= is_input ? in.begin : out.begin;
  }
  return made;
}

Plan::Op MscclppOps::say(OpId id) {
  const Op& op = program_.ops[id];
  Plan::Op said;
  if (op.kind != OpKind::combine) {
    refuse(id, "a plan has no op that only computes or waits", "write the collective alone");
  } else if (op.in_switch) {
    say_in_switch(id, op, said);
  } else if (op.src_count == 1) {
    say_copy(id, op, said);
  } else {
    say_combine(id, op, said);
  }
  if (said.type == nullptr) said.type = find_mscclpp_op("nop");
  return said;
}

void MscclppOps::say_copy(OpId id, const Op& op, Plan::Op& said) {
  const Operand& source = program_.sources_of(op)[0];
  said.sources = {ref(source, op.length, op.at)};
  said.targets = {ref(op.dst, op.length, op.at)};
  if (source.place == op.at && op.dst.place == op.at) {
    said.type = find_mscclpp_op("copy");
  } else if (source.place == op.at) {
    said.type = find_mscclpp_op("put");
    said.channel_type = channel_between(op.at, op.dst.place);
  } else if (!same_host(op.at, source.place)) {
    refuse(id, fmt::format("rank {} reads rank {}, which is on another host", op.at, source.place),
           "let the source push the data there: `at` its place");
  } else {
    said.type = find_mscclpp_op("get");
    said.channel_type = Plan::Channel::memory;
  }
}

void MscclppOps::say_combine(OpId id, const Op& op, Plan::Op& said) {
  if (op.dst.place != op.at) {
    refuse(id, "it combines at one place and stores the result at another only",
           "combine where the result belongs, or combine locally and copy the result");
    return;
  }
  std::size_t remote = 0;
  for (const Operand& source : program_.sources_of(op)) {
    said.sources.push_back(ref(source, op.length, op.at));
    if (source.place == op.at) continue;
    ++remote;
    if (same_host(op.at, source.place)) continue;
    refuse(id, fmt::format("rank {} reads rank {}, which is on another host", op.at, source.place),
           "copy the data into scratch of the rank that combines, and combine there");
    return;
  }
  said.targets = {ref(op.dst, op.length, op.at)};
  if (remote == 0) {
    said.type = find_mscclpp_op("re");
    return;
  }
  if (remote + 1 != said.sources.size()) {
    refuse(id,
           fmt::format("it combines {} local and {} remote slices, but rre of MSCCL++ takes one "
                       "local slice first and remote ones after it",
                       said.sources.size() - remote, remote),
           "combine the local slices first, or copy a remote one into scratch");
    return;
  }
  said.type = find_mscclpp_op("rre");
  said.channel_type = Plan::Channel::memory;
  const auto local = std::ranges::find(said.sources, Access::local, &Plan::Ref::access);
  // The first two may change places without any difference.
  reordered_ += local > said.sources.begin() + 1;
  std::rotate(said.sources.begin(), local, local + 1);
}

int MscclppOps::group_of(int at, const std::vector<Operand>& operands) {
  Plan::SwitchChannel wanted;
  Plan::Ref first = ref(operands[0], 1, -1);
  for (const Operand& operand : operands) {
    const Plan::Ref here = ref(operand, 1, -1);
    if (here.buffer != first.buffer || here.index != first.index) return -1;
    wanted.ranks.push_back(operand.place);
  }
  wanted.buffer = first.buffer;
  std::ranges::sort(wanted.ranks);
  if (!std::ranges::binary_search(wanted.ranks, at) || wanted.ranks.size() < 2) return -1;
  const auto is_wanted = [&](const Plan::SwitchChannel& channel) {
    return channel.buffer == wanted.buffer && channel.ranks == wanted.ranks;
  };
  std::vector<Plan::SwitchChannel>& mine = plan_.gpus[static_cast<std::size_t>(at)].groups;
  const auto found = std::ranges::find_if(mine, is_wanted);
  if (found != mine.end()) return static_cast<int>(found - mine.begin());
  // All members connect to their channels in order, so each gets this one now.
  for (const int rank : wanted.ranks) {
    plan_.gpus[static_cast<std::size_t>(rank)].groups.push_back(wanted);
  }
  return static_cast<int>(mine.size()) - 1;
}

void MscclppOps::say_in_switch(OpId id, const Op& op, Plan::Op& said) {
  const auto sources = program_.sources_of(op);
  std::vector<Operand> targets = {op.dst};
  for (const Operand& copy : program_.copies_of(op)) targets.push_back(copy);
  const auto in_group = [&](const std::vector<Operand>& operands) {
    Plan::Ref made = ref(operands[0], op.length, -1);
    made.access = Access::group;
    made.rank = op.at;
    made.group = group_of(op.at, operands);
    return made;
  };
  const char* const help =
      "let the op read from and store to the same units of a buffer at every rank of a group, its "
      "own included, as `nvls` does for allreduce";
  for (const Operand& operand : targets) {
    if (same_host(op.at, operand.place)) continue;
    refuse(id, "it reaches another host, and switch channels end at one", help);
    return;
  }
  said.channel_type = Plan::Channel::group;
  said.targets = {in_group(targets)};
  if (sources.size() == 1 && sources[0].place == op.at) {
    said.type = find_mscclpp_op("gstore");
    said.sources = {ref(sources[0], op.length, op.at)};
  } else {
    said.type = find_mscclpp_op("glres");
    said.sources = {in_group({sources.begin(), sources.end()})};
  }
  if (said.targets[0].group < 0 ||
      (said.sources[0].access == Access::group && said.sources[0].group < 0)) {
    refuse(id,
           "no switch channel of MSCCL++ joins its slices: glres reads one slice of a group of "
           "ranks and stores to such a slice, gstore stores to one",
           help);
    said.type = nullptr;
  }
}

}  // namespace espalier
