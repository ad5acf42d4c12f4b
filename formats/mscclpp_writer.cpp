// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/check.h"
#include "core/words.h"
#include "formats/json_text.h"
#include "formats/mscclpp_limits.h"
#include "formats/mscclpp_program.h"
#include "formats/mscclpp_reader.h"
#include "formats/mscclpp_schedule.h"
#include "ir/split_lanes.h"
#include "ir/stage_operands.h"
#include "ir/verify.h"
#include "topologies/profile.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;
using Plan = MscclppPlan;
using Access = Plan::Ref::Access;

constexpr Plan::Channel kChannels[] = {Plan::Channel::memory, Plan::Channel::port,
                                       Plan::Channel::group};

template <class List, class Value>
std::size_t index_of(const List& list, const Value& value) {
  return static_cast<std::size_t>(std::ranges::find(list, value) - list.begin());
}

Json json_of(const Plan::Ref& ref, std::size_t type, const MscclppTables& tables) {
  Json made;
  if (ref.access == Access::local) {
    made["type"] = letter_of(ref.buffer);
  } else if (ref.access == Access::remote) {
    made["buffer_id"] = index_of(tables.buffers[type], MscclppTables::Remote{ref.rank, ref.buffer});
  } else {
    made["switch_channel_id"] = index_of(tables.channels[type], ref.group);
  }
  made["index"] = ref.index;
  made["size"] = ref.size;
  return made;
}

Json json_of(const Plan::Op& op, const MscclppTables& tables) {
  const auto type = static_cast<std::size_t>(op.channel_type);
  Json made;
  made["name"] = op.type->name;
  for (const Plan::Ref& ref : op.sources) made["src_buff"].push_back(json_of(ref, type, tables));
  for (const Plan::Ref& ref : op.targets) made["dst_buff"].push_back(json_of(ref, type, tables));
  for (const int channel : op.channels) {
    made["channel_ids"].push_back(index_of(tables.channels[type], channel));
  }
  if (op.channel_type != Plan::Channel::none) made["channel_type"] = name_of(op.channel_type);
  if (!op.semaphores.empty()) made["semaphore_ids"] = op.semaphores;
  if (op.type->kind == Plan::Kind::reduce || op.type->kind == Plan::Kind::switch_reduce) {
    made["reduce_op"] = "sum";
  }
  return made;
}

/// Remote buffers of a GPU, each with the types of channels that reach it.
using RemoteBuffers = std::map<MscclppTables::Remote, std::set<Plan::Channel>>;

Json json_of(const Plan::ThreadBlock& block, std::size_t id, const RemoteBuffers& remote) {
  const MscclppTables tables = tables_of(block);
  Json made;
  made["id"] = id;
  made["ops"] = Json::array();
  for (const Plan::Op& op : block.ops) made["ops"].push_back(json_of(op, tables));
  made["channels"] = Json::array();
  made["remote_buffer_refs"] = Json::array();
  for (const Plan::Channel channel : kChannels) {
    const auto type = static_cast<std::size_t>(channel);
    if (!tables.channels[type].empty()) {
      made["channels"].push_back(
          {{"channel_type", name_of(channel)}, {"channel_ids", tables.channels[type]}});
    }
    Json ids = Json::array();
    for (const MscclppTables::Remote& buffer : tables.buffers[type]) {
      ids.push_back(std::distance(remote.begin(), remote.find(buffer)));
    }
    if (!ids.empty()) {
      made["remote_buffer_refs"].push_back(
          {{"access_channel_type", name_of(channel)}, {"remote_buffer_ids", ids}});
    }
  }
  return made;
}

RemoteBuffers remote_buffers(const Plan::Gpu& gpu) {
  RemoteBuffers all;
  for (const Plan::ThreadBlock& block : gpu.blocks) {
    const MscclppTables tables = tables_of(block);
    for (const Plan::Channel channel : kChannels) {
      for (const auto& buffer : tables.buffers[static_cast<std::size_t>(channel)]) {
        all[buffer].insert(channel);
      }
    }
  }
  return all;
}

Json json_of(const Plan::Gpu& gpu, std::size_t id) {
  Json made;
  made["id"] = id;
  made["input_chunks"] = gpu.chunks[0];
  made["output_chunks"] = gpu.chunks[1];
  made["scratch_chunks"] = gpu.chunks[2];
  const RemoteBuffers remote = remote_buffers(gpu);
  made["threadblocks"] = Json::array();
  for (std::size_t k = 0; k < gpu.blocks.size(); ++k) {
    made["threadblocks"].push_back(json_of(gpu.blocks[k], k, remote));
  }
  made["channels"] = Json::array();
  for (const Plan::Channel channel : {Plan::Channel::memory, Plan::Channel::port}) {
    const std::vector<int>& peers = gpu.peers[static_cast<std::size_t>(channel)];
    if (!peers.empty()) {
      made["channels"].push_back({{"channel_type", name_of(channel)}, {"connected_to", peers}});
    }
  }
  for (const Plan::SwitchChannel& group : gpu.groups) {
    Json ranks;
    ranks["size"] = group.ranks.size();
    ranks["ranks"] = group.ranks;
    made["channels"].push_back({{"channel_type", "switch"},
                                {"buffer_type", letter_of(group.buffer)},
                                {"rank_groups", Json::array({ranks})}});
  }
  made["remote_buffers"] = Json::array();
  for (const auto& [buffer, channels] : remote) {
    Json types = Json::array();
    for (const Plan::Channel channel : channels) types.push_back(name_of(channel));
    made["remote_buffers"].push_back({{"rank", buffer.rank},
                                      {"type", letter_of(buffer.buffer)},
                                      {"access_channel_types", types}});
  }
  made["semaphores"] = Json::array();
  for (const std::int64_t value : gpu.semaphores) {
    made["semaphores"].push_back({{"init_value", value}});
  }
  return made;
}

std::string text_of(const Plan& plan) {
  Json made;
  made["name"] = plan.name;
  made["collective"] = plan.collective;
  made["protocol"] = plan.protocol;
  made["inplace"] = plan.in_place;
  made["reuse_resources"] = plan.reuse_resources;
  made["gpus"] = Json::array();
  for (std::size_t k = 0; k < plan.gpus.size(); ++k) {
    made["gpus"].push_back(json_of(plan.gpus[k], k));
  }
  made["num_threads_per_block"] = plan.threads;
  made["use_double_scratch_buffer"] = plan.double_scratch;
  made["buffer_alignment"] = plan.alignment;
  made["min_message_size"] = plan.min_bytes;
  made["max_message_size"] = plan.max_bytes;
  return made.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// An op's data, whatever its number and the order of its sources.
struct Said {
  Operand dst;
  std::uint32_t length;
  bool in_switch;
  std::vector<Operand> sources;
  std::vector<Operand> copies;
  bool operator==(const Said&) const = default;
};

std::vector<std::vector<Said>> by_lane(const Program& program) {
  std::map<std::pair<int, int>, std::vector<Said>> lanes;
  for (const Op& op : program.ops) {
    const auto sources = program.sources_of(op);
    std::vector<Operand> targets = {op.dst};
    for (const Operand& copy : program.copies_of(op)) targets.push_back(copy);
    Said said{op.dst, op.length, op.in_switch, {sources.begin(), sources.end()}, {}};
    const auto order = [](const Operand& a, const Operand& b) {
      return std::tie(a.place, a.buffer, a.begin) < std::tie(b.place, b.buffer, b.begin);
    };
    std::ranges::sort(said.sources, order);
    std::ranges::sort(targets, order);
    said.dst = targets[0];
    said.copies = std::move(targets);
    lanes[{op.at, op.lane}].push_back(std::move(said));
  }
  std::vector<std::vector<Said>> all;
  for (auto& [lane, ops] : lanes) all.push_back(std::move(ops));
  return all;
}

/// The guard of the writer: a plan that would not do what the program does is never handed out.
void read_back(const Program& program, const std::string& text) {
  std::vector<ForeignNote> notes;
  const ForeignProgram back =
      mscclpp_program(read_mscclpp_plan({text, "the plan written"}, notes), "the plan written");
  CHECK(back.verification.ok() && back.has_program && notes.empty());
  CHECK(back.program.contract == program.contract);
  CHECK(by_lane(back.program) == by_lane(program));
}

void require_sayable(const Program& program, const WritingOptions& options) {
  std::vector<Diagnostic> problems;
  const auto refuse = [&](std::string message, std::string help) {
    problems.push_back({"", std::move(message), std::move(help), {}});
  };
  if (program.hosts > 0) {
    refuse(fmt::format(
               "the program has {}, and a plan of MSCCL++ has GPUs that are ranks only",
               counted(static_cast<std::size_t>(program.hosts), "host memory", "host memories")),
           "take an algorithm without host memories (host_share=0)");
  }
  if (program.relays > 0) {
    refuse(fmt::format("the program has {}, and a plan of MSCCL++ has GPUs that are ranks only",
                       counted(static_cast<std::size_t>(program.relays), "relay")),
           "take an algorithm without relays");
  }
  if (!program.vias.empty()) {
    refuse("the program names ways over the machine, and MSCCL++ has its own",
           "--links fabric, or optimal:fabric=1, plan without");
  }
  if (!options.host_of_rank.empty() &&
      options.host_of_rank.size() != static_cast<std::size_t>(program.ranks())) {
    refuse(fmt::format("hosts are given for {}, but the program has {}",
                       counted(options.host_of_rank.size(), "rank"),
                       counted(static_cast<std::size_t>(program.ranks()), "rank")),
           "");
  }
  if (!problems.empty()) throw Error(ErrorKind::unsupported, std::move(problems));
  const Verification found = verify(program);
  if (!found.ok()) throw Error(ErrorKind::input, found.problems);
}

/// Nothing reads another host. Sums read other GPUs of the same host beside one operand that lies
/// at hand, and else come to scratch altogether.
bool is_out_of_reach(const Program& program, const Op& op, std::size_t i,
                     const WritingOptions& options) {
  const auto sources = program.sources_of(op);
  const auto host = [&](PlaceId rank) {
    return options.host_of_rank.empty() ? 0 : options.host_of_rank[static_cast<std::size_t>(rank)];
  };
  const auto is_readable = [&](const Operand& one) {
    return one.place != op.at && host(one.place) == host(op.at);
  };
  if (op.in_switch || sources[i].place == op.at) return false;
  if (!is_readable(sources[i])) return true;
  if (sources.size() == 1) return false;
  const auto at_hand =
      static_cast<std::ptrdiff_t>(sources.size()) - std::ranges::count_if(sources, is_readable);
  return at_hand > 1 || (at_hand == 0 && i == 0);
}

/// Where thread blocks have room for fewer ops than a lane, several carry it out, one after the
/// other.
void write_in_parts(const Program& program, const WritingOptions& options, Written& written) {
  constexpr std::array<int, 4> kOps{0, 12, 8, 5};  ///< of a lane; 0: all
  for (const int most : kOps) {
    const Program parts = most == 0 ? program : split_lanes(program, most);
    std::vector<std::string> notes;
    try {
      written.text = text_of(mscclpp_plan_of(parts, options, notes));
    } catch (const Error& error) {
      const bool is_full = std::ranges::any_of(
          error.diagnostics(), [](const Diagnostic& one) { return one.rule == "limit"; });
      if (!is_full || most == kOps.back()) throw;
      continue;
    }
    read_back(parts, written.text);
    if (most > 0) {
      notes.push_back(fmt::format(
          "lanes go on in another thread block after {} ops each: the executor takes {} "
          "with their signals and waits",
          most, kMscclppOps));
    }
    written.notes.insert(written.notes.end(), notes.begin(), notes.end());
    written.is_reshaped |= most > 0;
    return;
  }
}

}  // namespace

Written write_mscclpp_plan(const Program& program, const WritingOptions& options) {
  require_sayable(program, options);
  Written written;
  std::size_t staged = 0;
  const Program local = stage_operands(
      program,
      [&](const Op& op, std::size_t i) { return is_out_of_reach(program, op, i, options); },
      staged);
  if (staged > 0) {
    written.notes.push_back(
        fmt::format("{} of other GPUs come to scratch first", counted(staged, "operand")));
    written.is_reshaped = true;
  }
  if (!options.protocol.empty() && lower_case(options.protocol) != "simple") {
    written.notes.push_back(
        fmt::format("written for protocol Simple, although {} was asked for", options.protocol));
  }
  write_in_parts(local, options, written);
  return written;
}

}  // namespace espalier
