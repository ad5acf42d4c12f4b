// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_op_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/words.h"
#include "ir/program.h"

namespace espalier {
namespace {

using nlohmann::json;
using Plan = MscclppPlan;
using Access = Plan::Ref::Access;

constexpr int kMaxIndex = std::numeric_limits<int>::max();

std::size_t at(Plan::Channel channel) { return static_cast<std::size_t>(channel); }

}  // namespace

void MscclppWords::note_unread(const json& object, const std::string& kind,
                               std::initializer_list<std::string_view> known) {
  for (const auto& item : object.items()) {
    if (std::ranges::find(known, item.key()) == known.end() && unread_.size() < 16) {
      ++unread_[fmt::format("the key {} of {}", quote(item.key()), kind)];
    }
  }
}

std::optional<Plan::Channel> MscclppWords::parse_channel(const json& value) {
  for (const auto channel : {Plan::Channel::memory, Plan::Channel::port, Plan::Channel::group}) {
    if (value.is_string() && value.get<std::string>() == name_of(channel)) return channel;
  }
  return {};
}

void MscclppWords::unknown_channel(const char* key, const json& value, const std::string& where) {
  json_.problem(where,
                fmt::format("'{}' must be memory, port or switch, but is {}", key, shown(value)));
}

std::optional<Plan::Channel> MscclppWords::channel_type(const json& object, const char* key,
                                                        const std::string& where) {
  const auto word = json_.word(object, key, where);
  if (!word) return {};
  const auto channel = parse_channel(object[key]);
  if (!channel) unknown_channel(key, object[key], where);
  return channel;
}

std::optional<Plan::Buffer> MscclppWords::buffer_type(const json& object, const char* key,
                                                      const std::string& where) {
  const auto word = json_.word(object, key, where);
  if (!word) return {};
  for (const auto buffer : {Plan::Buffer::input, Plan::Buffer::output, Plan::Buffer::scratch}) {
    if (*word == letter_of(buffer)) return buffer;
  }
  json_.problem(where,
                fmt::format("the buffer '{}' must be i, o or s, but is {}", key, quote(*word)));
  return {};
}

std::vector<MscclppPlan::Op> MscclppOpReader::read(const json& block, int gpu,
                                                   const MscclppBlockTables& tables,
                                                   const std::string& where) {
  tables_ = &tables;
  gpu_ = gpu;
  return read_ops(block, where, false);
}

std::vector<Plan::Op> MscclppOpReader::read_ops(const json& holder, const std::string& where,
                                                bool inner) {
  std::vector<Plan::Op> ops;
  const json* list = json_.list(holder, "ops", where);
  if (list == nullptr) return ops;
  for (std::size_t k = 0; k < list->size(); ++k) {
    const std::string name = fmt::format("{}, {}op {}", where, inner ? "inner " : "", k);
    Plan::Op op;
    op.line = json_.line_of(name);
    if (json_.is_object((*list)[k], name)) read_op((*list)[k], name, inner, op);
    ops.push_back(std::move(op));
  }
  return ops;
}

void MscclppOpReader::read_op(const json& object, const std::string& where, bool inner,
                              Plan::Op& op) {
  const auto name = json_.word(object, "name", where);
  if (!name) return;
  op.type = find_mscclpp_op(*name);
  if (op.type == nullptr || (inner && op.type->kind == Plan::Kind::pipeline)) {
    std::vector<std::string> known;
    for (const Plan::OpType& type : mscclpp_op_types()) known.emplace_back(type.name);
    json_.problem(where,
                  op.type == nullptr ? fmt::format("unknown operation {}", quote(*name))
                                     : "a pipeline stands within a pipeline",
                  op.type == nullptr ? did_you_mean(*name, known) : "");
    return;
  }
  words_.note_unread(
      object, "an op",
      {"name", "channel_ids", "channel_type", "src_buff", "dst_buff", "reduce_op", "semaphore_ids",
       "barrier_id", "num_threadblocks", "tbg_info", "iter_context", "ops"});
  if (object.contains("channel_type")) {
    op.channel_type =
        words_.channel_type(object, "channel_type", where).value_or(Plan::Channel::none);
  }
  if (op.type->has_data) {
    read_data(object, where, op);
  } else {
    read_control(object, where, op);
  }
}

void MscclppOpReader::read_control(const json& object, const std::string& where, Plan::Op& op) {
  const Plan::Gpu& gpu = plan_.gpus[static_cast<std::size_t>(gpu_)];
  switch (op.type->kind) {
    case Plan::Kind::signal:
    case Plan::Kind::wait:
    case Plan::Kind::flush:
      read_op_channels(object, where, op);
      if (op.channels.empty()) json_.problem(where, "'channel_ids' names no channel");
      if (op.type->flushes && op.channel_type == Plan::Channel::memory) {
        json_.problem(where, "only a port channel can be flushed");
      }
      break;
    case Plan::Kind::sem_acquire:
    case Plan::Kind::sem_release:
      op.semaphores = json_.integers(object, "semaphore_ids", where, 0,
                                     static_cast<int>(gpu.semaphores.size()) - 1);
      break;
    case Plan::Kind::barrier:
      op.barrier =
          static_cast<int>(json_.integer(object, "barrier_id", where, 0, kMaxIndex).value_or(0));
      op.barrier_blocks = static_cast<int>(
          json_.integer(object, "num_threadblocks", where, 1, kMaxIndex).value_or(1));
      break;
    case Plan::Kind::pipeline:
      read_pipeline(object, where, op);
      break;
    default:
      break;
  }
}

void MscclppOpReader::read_pipeline(const json& object, const std::string& where, Plan::Op& op) {
  const auto context = object.find("iter_context");
  if (context == object.end()) {
    json_.problem(where, "'iter_context' is missing");
  } else if (json_.is_object(*context, where + ", iter_context")) {
    op.unit_bytes = json_.integer(*context, "unit_size", where, 1, 0xffffffff).value_or(1);
    op.unit_chunks = json_.integer(*context, "num_chunks", where, 1, kMaxUnits).value_or(1);
  }
  op.body = read_ops(object, where, true);
}

void MscclppOpReader::read_op_channels(const json& object, const std::string& where, Plan::Op& op) {
  if (op.channel_type != Plan::Channel::memory && op.channel_type != Plan::Channel::port) {
    json_.problem(where, object.contains("channel_type")
                             ? "'channel_type' must be memory or port here"
                             : "'channel_type' is missing");
    return;
  }
  const std::vector<int>& mine = tables_->channels[at(op.channel_type)];
  if (mine.empty()) {
    json_.problem(where,
                  fmt::format("its threadblock has no {} channel", name_of(op.channel_type)));
    return;
  }
  const int last = static_cast<int>(mine.size()) - 1;
  for (const int id : json_.integers(object, "channel_ids", where, 0, last)) {
    op.channels.push_back(mine[static_cast<std::size_t>(id)]);
  }
}

void MscclppOpReader::read_data(const json& object, const std::string& where, Plan::Op& op) {
  const std::size_t before = json_.problems().all().size();
  const bool port_put = op.type->target == Access::remote && op.channel_type == Plan::Channel::port;
  if (port_put || (object.contains("channel_ids") && op.channel_type == Plan::Channel::memory)) {
    read_op_channels(object, where, op);
  }
  if (object.contains("tbg_info") && json_.is_object(object["tbg_info"], where + ", tbg_info")) {
    const json& group = object["tbg_info"];
    op.slices = static_cast<int>(json_.integer(group, "tbg_size", where, 1, 1024).value_or(1));
    op.slice = static_cast<int>(json_.integer(group, "tb_id", where, 0, op.slices - 1).value_or(0));
  }
  if (object.contains("reduce_op")) {
    op.reduce_op = json_.word(object, "reduce_op", where).value_or("");
  }
  op.sources = read_refs(object, "src_buff", where, op);
  op.targets = read_refs(object, "dst_buff", where, op);
  if (json_.problems().all().size() == before) check_refs(where, op, port_put);
}

std::vector<Plan::Ref> MscclppOpReader::read_refs(const json& object, const char* key,
                                                  const std::string& where, const Plan::Op& op) {
  std::vector<Plan::Ref> refs;
  const json* list = json_.list(object, key, where);
  if (list == nullptr) return refs;
  if (list->empty()) json_.problem(where, fmt::format("'{}' is an empty list", key));
  for (std::size_t k = 0; k < list->size(); ++k) {
    const std::string name = fmt::format("{}, {} {}", where, key, k);
    Plan::Ref ref;
    if (json_.is_object((*list)[k], name)) read_ref((*list)[k], name, op, ref);
    refs.push_back(ref);
  }
  return refs;
}

void MscclppOpReader::read_ref(const json& object, const std::string& where, const Plan::Op& op,
                               Plan::Ref& ref) {
  const std::size_t before = json_.problems().all().size();
  ref.rank = gpu_;
  if (object.contains("buffer_id")) {
    ref.access = Access::remote;
    resolve_remote(object, where, op, ref);
  } else if (object.contains("switch_channel_id")) {
    ref.access = Access::group;
    const std::vector<int>& mine = tables_->channels[at(Plan::Channel::group)];
    const auto id = json_.integer(object, "switch_channel_id", where, 0, kMaxIndex);
    if (id && static_cast<std::size_t>(*id) >= mine.size()) {
      json_.problem(where, fmt::format("'switch_channel_id' is {}, but its threadblock has {}", *id,
                                       counted(mine.size(), "switch channel")));
    } else if (id && mine[static_cast<std::size_t>(*id)] >= 0) {
      ref.group = mine[static_cast<std::size_t>(*id)];
      ref.buffer = plan_.gpus[static_cast<std::size_t>(gpu_)]
                       .groups[static_cast<std::size_t>(ref.group)]
                       .buffer;
    }
  } else {
    ref.buffer = words_.buffer_type(object, "type", where).value_or(Plan::Buffer::input);
    if (object.contains("rank") && object["rank"] != gpu_) {
      json_.problem(where, fmt::format("'rank' is {}, but a buffer without 'buffer_id' is the "
                                       "GPU's own",
                                       shown(object["rank"])));
    }
  }
  ref.index = json_.integer(object, "index", where, 0, kMaxUnits).value_or(0);
  ref.size = json_.integer(object, "size", where, 1, kMaxUnits).value_or(1);
  words_.note_unread(object, "a buffer reference",
                     {"type", "index", "size", "buffer_id", "switch_channel_id", "rank"});
  if (json_.problems().all().size() == before) check_bounds(where, ref);
}

void MscclppOpReader::resolve_remote(const json& object, const std::string& where,
                                     const Plan::Op& op, Plan::Ref& ref) {
  const auto id = json_.integer(object, "buffer_id", where, 0, kMaxIndex);
  if (op.channel_type != Plan::Channel::memory && op.channel_type != Plan::Channel::port) {
    json_.problem(where, "the op needs a 'channel_type', memory or port, to reach a remote buffer");
    return;
  }
  const std::vector<MscclppRemoteBuffer>& mine = tables_->buffers[at(op.channel_type)];
  if (!id) return;
  if (static_cast<std::size_t>(*id) >= mine.size()) {
    json_.problem(where,
                  fmt::format("'buffer_id' is {}, but 'remote_buffer_refs' of its "
                              "threadblock has {} for {} channels",
                              *id, counted(mine.size(), "buffer"), name_of(op.channel_type)));
    return;
  }
  const MscclppRemoteBuffer& buffer = mine[static_cast<std::size_t>(*id)];
  ref.rank = buffer.rank;
  ref.buffer = buffer.buffer;
}

void MscclppOpReader::check_bounds(const std::string& where, const Plan::Ref& ref) {
  std::vector<int> places = {ref.rank};
  if (ref.access == Access::group) {
    places = plan_.gpus[static_cast<std::size_t>(gpu_)]
                 .groups[static_cast<std::size_t>(ref.group)]
                 .ranks;
  }
  for (const int rank : places) {
    const std::int64_t chunks =
        plan_.gpus[static_cast<std::size_t>(rank)].chunks[static_cast<std::size_t>(ref.buffer)];
    if (ref.index + ref.size <= chunks) continue;
    json_.problem(where, fmt::format("'index' and 'size' reach up to chunk {}, but buffer '{}' of "
                                     "gpu {} has {}",
                                     ref.index + ref.size, letter_of(ref.buffer), rank,
                                     counted(static_cast<std::size_t>(chunks), "chunk")));
    return;
  }
}

void MscclppOpReader::check_refs(const std::string& where, const Plan::Op& op, bool port_put) {
  const Plan::OpType& type = *op.type;
  const std::size_t sources = op.sources.size();
  const std::size_t targets = op.targets.size();
  const bool pairs = type.kind == Plan::Kind::put || type.kind == Plan::Kind::get;
  const bool one_source = type.kind == Plan::Kind::copy || type.kind == Plan::Kind::spread ||
                          type.kind == Plan::Kind::switch_reduce;
  const auto fixed = static_cast<std::size_t>(type.local_targets);
  const bool only_local = fixed > 0 && type.target == Access::local;
  if ((pairs && sources != targets) || (one_source && sources != 1) ||
      (type.kind == Plan::Kind::switch_reduce && targets != 1) || targets < fixed ||
      (only_local && targets != fixed)) {
    json_.problem(where, fmt::format("{} has {} in 'src_buff' and {} in 'dst_buff'", type.name,
                                     counted(sources, "buffer"), counted(targets, "buffer")));
    return;
  }
  for (std::size_t k = 0; k < sources; ++k) {
    const Access wanted = type.reads && k == 0 ? Access::local : type.source;
    check_access(fmt::format("{}, src_buff {}", where, k), op, op.sources[k], wanted);
  }
  for (std::size_t k = 0; k < targets; ++k) {
    const Access wanted = k < fixed ? Access::local : type.target;
    check_access(fmt::format("{}, dst_buff {}", where, k), op, op.targets[k], wanted);
  }
  if (port_put) check_port(where, op);
  if (type.kind == Plan::Kind::put && op.channel_type == Plan::Channel::memory) {
    check_memory_put(where, op);
  }
}

/// What handlePut of the executor (execution_kernel.hpp) does through a memory channel.
void MscclppOpReader::check_memory_put(const std::string& where, const Plan::Op& op) {
  if (op.type->signals) {
    json_.problem(where,
                  fmt::format("{} signals through port channels only: through a memory channel it "
                              "puts, and nobody is told",
                              op.type->name),
                  "a put, and a signal after a nop");
  }
  for (const Plan::Ref& source : op.sources) {
    if (source.buffer == op.sources.front().buffer || op.type->target_packets) continue;
    json_.problem(where,
                  fmt::format("src_buff names buffers '{}' and '{}', but through a memory channel "
                              "all is taken from the first one",
                              letter_of(op.sources.front().buffer), letter_of(source.buffer)),
                  "a put for each buffer");
    return;
  }
}

void MscclppOpReader::check_access(const std::string& where, const Plan::Op& op,
                                   const Plan::Ref& ref, Access wanted) {
  constexpr std::string_view kMeaning[] = {"the GPU's own ('type')", "remote ('buffer_id')",
                                           "of a switch channel ('switch_channel_id')"};
  if (ref.access != wanted) {
    json_.problem(where, fmt::format("{} takes a buffer that is {} here", op.type->name,
                                     kMeaning[static_cast<std::size_t>(wanted)]));
  }
  if (ref.size != op.sources[0].size) {
    json_.problem(where, fmt::format("'size' is {}, but that of src_buff 0 is {}", ref.size,
                                     op.sources[0].size));
  }
  if (wanted == Access::remote && op.channel_type == Plan::Channel::port &&
      op.type->kind != Plan::Kind::put && op.type->kind != Plan::Kind::spread) {
    json_.problem(where, fmt::format("{} can't go through a port channel", op.type->name),
                  "GPUs of other hosts can only be written to: put the data there");
  }
}

void MscclppOpReader::check_port(const std::string& where, const Plan::Op& op) {
  if (op.channels.size() != op.targets.size()) {
    json_.problem(where, fmt::format("it has {} in 'channel_ids' for {}",
                                     counted(op.channels.size(), "channel"),
                                     counted(op.targets.size(), "destination")));
    return;
  }
  for (std::size_t k = 0; k < op.channels.size(); ++k) {
    if (op.channels[k] < 0) continue;
    const int peer = plan_.gpus[static_cast<std::size_t>(gpu_)]
                         .peers[at(Plan::Channel::port)][static_cast<std::size_t>(op.channels[k])];
    if (peer == op.targets[k].rank) continue;
    json_.problem(where, fmt::format("its channel leads to gpu {}, but its buffer lies on gpu {}",
                                     peer, op.targets[k].rank));
  }
}

}  // namespace espalier
