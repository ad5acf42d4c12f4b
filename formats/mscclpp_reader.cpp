// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/words.h"
#include "formats/json_text.h"
#include "formats/mscclpp_generation.h"
#include "ir/program.h"

namespace espalier {
namespace {

using nlohmann::json;
using Plan = MscclppPlan;
using Access = Plan::Ref::Access;

constexpr int kMaxIndex = std::numeric_limits<int>::max();

std::size_t at(Plan::Channel channel) { return static_cast<std::size_t>(channel); }
std::size_t at(Plan::Buffer buffer) { return static_cast<std::size_t>(buffer); }

std::string describe_path(const std::vector<JsonStep>& path) {
  std::string text;
  for (const JsonStep& step : path) {
    if (step.key.empty()) continue;
    const bool plural = step.index >= 0 && step.key.ends_with('s');
    const bool inner = step.key == "ops" && text.find("op ") != std::string::npos;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", inner ? "inner " : "",
                        plural ? step.key.substr(0, step.key.size() - 1) : step.key);
    if (step.index >= 0) text += fmt::format(" {}", step.index);
  }
  return text;
}

/// What a thread block's own numbers stand for.
struct BlockTables {
  std::array<std::vector<int>, 4> channels;
  std::array<std::vector<int>, 4> buffers;
};

struct RemoteBuffer {
  int rank = 0;
  Plan::Buffer buffer = Plan::Buffer::input;
  std::array<bool, 4> access{};
};

class Reader {
 public:
  Reader(const FormatText& text, std::vector<std::string>& notes)
      : json_(text.text, text.file, describe_path), notes_(notes) {
    refuse_older_generations(json_);
  }

  Plan read() {
    read_header();
    const json* gpus = json_.list(json_.root(), "gpus", "");
    if (gpus != nullptr && gpus->empty()) json_.problem("", "'gpus' is an empty list");
    json_.problems().throw_if_any();
    plan_.gpus.resize(gpus->size());
    remote_.resize(gpus->size());
    for (std::size_t i = 0; i < gpus->size(); ++i) read_gpu((*gpus)[i], static_cast<int>(i));
    json_.problems().throw_if_any();
    for (std::size_t i = 0; i < gpus->size(); ++i) read_blocks((*gpus)[i], static_cast<int>(i));
    json_.problems().throw_if_any();
    for (const auto& [key, count] : unread_) {
      notes_.push_back(fmt::format("{} is not read ({})", key, counted(count, "time")));
    }
    return std::move(plan_);
  }

 private:
  int ranks() const { return static_cast<int>(plan_.gpus.size()); }

  void note_unread(const json& object, const std::string& what,
                   std::initializer_list<std::string_view> known) {
    for (const auto& item : object.items()) {
      if (std::ranges::find(known, item.key()) == known.end() && unread_.size() < 16) {
        ++unread_[fmt::format("the key {} of {}", quote(item.key()), what)];
      }
    }
  }

  void read_header() {
    const json& root = json_.root();
    plan_.name = json_.word(root, "name", "").value_or("");
    plan_.collective = json_.word(root, "collective", "").value_or("");
    plan_.protocol = json_.word(root, "protocol", "").value_or("");
    plan_.in_place = json_.truth(root, "inplace", "").value_or(false);
    plan_.reuse_resources = json_.truth_or(root, "reuse_resources", "", false);
    plan_.double_scratch = json_.truth_or(root, "use_double_scratch_buffer", "", false);
    plan_.threads =
        static_cast<int>(json_.integer_or(root, "num_threads_per_block", "", 1, kMaxIndex, 1024));
    plan_.alignment = json_.integer_or(root, "buffer_alignment", "", 1, 1 << 30, 16);
    plan_.min_bytes = bytes_or("min_message_size", 0);
    plan_.max_bytes = bytes_or("max_message_size", ~std::uint64_t{0});
    if (plan_.min_bytes > plan_.max_bytes) {
      json_.problem("", fmt::format("'min_message_size' {} is larger than 'max_message_size' {}",
                                    plan_.min_bytes, plan_.max_bytes));
    }
    if (root.contains("protocol") && plan_.protocol != "Simple" && plan_.protocol != "LL") {
      json_.problem(
          "", fmt::format("'protocol' is {}, but must be Simple or LL", quote(plan_.protocol)));
    }
    note_unread(root, "the plan",
                {"name", "collective", "protocol", "inplace", "reuse_resources", "gpus",
                 "use_double_scratch_buffer", "num_threads_per_block", "buffer_alignment",
                 "min_message_size", "max_message_size"});
  }

  /// The largest is 2^64 - 1, beyond what `integer` can say.
  std::uint64_t bytes_or(const char* key, std::uint64_t absent) {
    const json& root = json_.root();
    const auto found = root.find(key);
    if (found == root.end()) return absent;
    if (found->is_number_unsigned()) return found->get<std::uint64_t>();
    json_.problem(
        "", fmt::format("'{}' must be a number of bytes from 0 on, but is {}", key, shown(*found)));
    return absent;
  }

  void read_gpu(const json& gpu, int index) {
    const std::string where = fmt::format("gpu {}", index);
    if (!json_.is_object(gpu, where)) return;
    const auto id = json_.integer(gpu, "id", where, 0, kMaxIndex);
    if (id && *id != index) {
      json_.problem(where, fmt::format("its 'id' is {}, but must be {}: GPUs are numbered in order",
                                       *id, index));
    }
    Plan::Gpu& read = plan_.gpus[static_cast<std::size_t>(index)];
    constexpr const char* kChunks[] = {"input_chunks", "output_chunks", "scratch_chunks"};
    for (std::size_t b = 0; b < 3; ++b) {
      read.chunks[b] = json_.integer(gpu, kChunks[b], where, 0, kMaxUnits).value_or(0);
    }
    read_channels(gpu, index, read);
    read_remote_buffers(gpu, index);
    if (const json* semaphores = json_.list_or(gpu, "semaphores", where)) {
      for (std::size_t k = 0; k < semaphores->size(); ++k) {
        const std::string name = fmt::format("{}, semaphore {}", where, k);
        const json& semaphore = (*semaphores)[k];
        if (!json_.is_object(semaphore, name)) continue;
        read.semaphores.push_back(
            json_.integer(semaphore, "init_value", name, 0, kMaxIndex).value_or(0));
      }
    }
    note_unread(gpu, "a GPU",
                {"id", "input_chunks", "output_chunks", "scratch_chunks", "threadblocks",
                 "channels", "remote_buffers", "semaphores"});
  }

  void read_channels(const json& gpu, int index, Plan::Gpu& read) {
    const json* channels = json_.list(gpu, "channels", fmt::format("gpu {}", index));
    if (channels == nullptr) return;
    for (std::size_t k = 0; k < channels->size(); ++k) {
      const json& channel = (*channels)[k];
      const std::string where = fmt::format("gpu {}, channel {}", index, k);
      if (!json_.is_object(channel, where)) continue;
      const auto type = channel_type(channel, "channel_type", where);
      if (type == Plan::Channel::group) {
        read_group(channel, index, where, read);
      } else if (type) {
        for (const int peer : json_.integers(channel, "connected_to", where, 0, ranks() - 1)) {
          if (peer == index) json_.problem(where, "'connected_to' names the GPU itself");
          read.peers[at(*type)].push_back(peer);
        }
      }
      note_unread(channel, "a channel",
                  {"channel_type", "connected_to", "buffer_type", "rank_groups"});
    }
  }

  void read_group(const json& channel, int index, const std::string& where, Plan::Gpu& read) {
    const auto buffer = buffer_type(channel, "buffer_type", where);
    const json* groups = json_.list(channel, "rank_groups", where);
    if (groups == nullptr) return;
    for (const json& group : *groups) {
      if (!json_.is_object(group, where)) continue;
      Plan::SwitchChannel made{buffer.value_or(Plan::Buffer::input),
                               json_.integers(group, "ranks", where, 0, ranks() - 1)};
      const auto size = json_.integer(group, "size", where, 1, ranks());
      std::set<int> different(made.ranks.begin(), made.ranks.end());
      if (different.size() != made.ranks.size()) {
        json_.problem(where, "'ranks' of a group names a GPU twice");
      }
      if (!different.contains(index)) {
        json_.problem(where, fmt::format("'ranks' of a group lacks GPU {} itself", index));
      }
      if (size && static_cast<std::size_t>(*size) != made.ranks.size()) {
        json_.problem(where, fmt::format("'size' of a group is {}, but it has {}", *size,
                                         counted(made.ranks.size(), "rank")));
      }
      read.groups.push_back(std::move(made));
    }
  }

  void read_remote_buffers(const json& gpu, int index) {
    const json* buffers = json_.list(gpu, "remote_buffers", fmt::format("gpu {}", index));
    if (buffers == nullptr) return;
    for (std::size_t k = 0; k < buffers->size(); ++k) {
      const json& buffer = (*buffers)[k];
      const std::string where = fmt::format("gpu {}, remote_buffer {}", index, k);
      if (!json_.is_object(buffer, where)) continue;
      RemoteBuffer read;
      const auto rank = json_.integer(buffer, "rank", where, 0, ranks() - 1);
      read.rank = static_cast<int>(rank.value_or(0));
      if (rank && read.rank == index) json_.problem(where, "'rank' is the GPU itself");
      read.buffer = buffer_type(buffer, "type", where).value_or(Plan::Buffer::input);
      if (const json* types = json_.list(buffer, "access_channel_types", where)) {
        for (const json& type : *types) {
          if (const auto channel = parse_channel(type)) {
            read.access[at(*channel)] = true;
          } else {
            unknown_channel("access_channel_types", type, where);
          }
        }
      }
      remote_[static_cast<std::size_t>(index)].push_back(read);
      note_unread(buffer, "a remote buffer", {"rank", "type", "access_channel_types"});
    }
  }

  static std::optional<Plan::Channel> parse_channel(const json& value) {
    for (const auto channel : {Plan::Channel::memory, Plan::Channel::port, Plan::Channel::group}) {
      if (value.is_string() && value.get<std::string>() == name_of(channel)) return channel;
    }
    return {};
  }

  void unknown_channel(const char* key, const json& value, const std::string& where) {
    json_.problem(where,
                  fmt::format("'{}' must be memory, port or switch, but is {}", key, shown(value)));
  }

  std::optional<Plan::Channel> channel_type(const json& object, const char* key,
                                            const std::string& where) {
    const auto word = json_.word(object, key, where);
    if (!word) return {};
    const auto channel = parse_channel(object[key]);
    if (!channel) unknown_channel(key, object[key], where);
    return channel;
  }

  std::optional<Plan::Buffer> buffer_type(const json& object, const char* key,
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

  void read_blocks(const json& gpu, int index) {
    const json* blocks = json_.list(gpu, "threadblocks", fmt::format("gpu {}", index));
    if (blocks == nullptr) return;
    for (std::size_t k = 0; k < blocks->size(); ++k) {
      const json& block = (*blocks)[k];
      const std::string where = fmt::format("gpu {}, threadblock {}", index, k);
      Plan::ThreadBlock read;
      if (json_.is_object(block, where)) read_block(block, index, where, k, read);
      plan_.gpus[static_cast<std::size_t>(index)].blocks.push_back(std::move(read));
    }
  }

  void read_block(const json& block, int gpu, const std::string& where, std::size_t number,
                  Plan::ThreadBlock& read) {
    const auto id = json_.integer(block, "id", where, 0, kMaxIndex);
    if (id && static_cast<std::size_t>(*id) != number) {
      json_.problem(where, fmt::format("its 'id' is {}, but must be {}: thread blocks are numbered "
                                       "in order",
                                       *id, number));
    }
    BlockTables tables;
    read_block_channels(block, gpu, where, tables);
    read_block_buffers(block, gpu, where, tables);
    for (std::size_t type = 0; type < 4; ++type) {
      read.channels[type] = static_cast<int>(tables.channels[type].size());
      read.remote_buffers[type] = static_cast<int>(tables.buffers[type].size());
    }
    tables_ = &tables;
    gpu_ = gpu;
    read.ops = read_ops(block, where, false);
    note_unread(block, "a threadblock", {"id", "ops", "channels", "remote_buffer_refs"});
  }

  void read_block_channels(const json& block, int gpu, const std::string& where,
                           BlockTables& tables) {
    const json* channels = json_.list(block, "channels", where);
    if (channels == nullptr) return;
    const Plan::Gpu& of = plan_.gpus[static_cast<std::size_t>(gpu)];
    for (const json& channel : *channels) {
      if (!json_.is_object(channel, where)) continue;
      const auto type = channel_type(channel, "channel_type", where);
      if (!type) continue;
      const std::size_t there =
          *type == Plan::Channel::group ? of.groups.size() : of.peers[at(*type)].size();
      const std::size_t before = json_.problems().all().size();
      for (const int id : json_.integers(channel, "channel_ids", where, 0,
                                         std::max(static_cast<int>(there) - 1, 0))) {
        if (there == 0 && json_.problems().all().size() == before) {
          json_.problem(where,
                        fmt::format("it names a {} channel, but the GPU has none", name_of(*type)));
        }
        tables.channels[at(*type)].push_back(there == 0 ? -1 : id);
      }
    }
  }

  void read_block_buffers(const json& block, int gpu, const std::string& where,
                          BlockTables& tables) {
    const json* refs = json_.list_or(block, "remote_buffer_refs", where);
    if (refs == nullptr) return;
    const auto& buffers = remote_[static_cast<std::size_t>(gpu)];
    for (const json& ref : *refs) {
      if (!json_.is_object(ref, where)) continue;
      const auto type = channel_type(ref, "access_channel_type", where);
      const json* ids = json_.list(ref, "remote_buffer_ids", where);
      if (!type || ids == nullptr || ids->empty()) continue;
      if (buffers.empty()) {
        json_.problem(where, "it refers to remote buffers, but the GPU has none");
        continue;
      }
      const int last = static_cast<int>(buffers.size()) - 1;
      for (const int id : json_.integers(ref, "remote_buffer_ids", where, 0, last)) {
        if (!buffers[static_cast<std::size_t>(id)].access[at(*type)]) {
          json_.problem(where,
                        fmt::format("it reaches remote buffer {} through a {} channel, which "
                                    "that buffer's 'access_channel_types' lacks",
                                    id, name_of(*type)));
        }
        tables.buffers[at(*type)].push_back(id);
      }
    }
  }

  std::vector<Plan::Op> read_ops(const json& holder, const std::string& where, bool inner) {
    std::vector<Plan::Op> ops;
    const json* list = json_.list(holder, "ops", where);
    if (list == nullptr) return ops;
    for (std::size_t k = 0; k < list->size(); ++k) {
      const std::string name = fmt::format("{}, {}op {}", where, inner ? "inner " : "", k);
      Plan::Op op;
      if (json_.is_object((*list)[k], name)) read_op((*list)[k], name, inner, op);
      ops.push_back(std::move(op));
    }
    return ops;
  }

  void read_op(const json& object, const std::string& where, bool inner, Plan::Op& op) {
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
    note_unread(
        object, "an op",
        {"name", "channel_ids", "channel_type", "src_buff", "dst_buff", "reduce_op",
         "semaphore_ids", "barrier_id", "num_threadblocks", "tbg_info", "iter_context", "ops"});
    if (object.contains("channel_type")) {
      op.channel_type = channel_type(object, "channel_type", where).value_or(Plan::Channel::none);
    }
    if (op.type->has_data) {
      read_data(object, where, op);
    } else {
      read_control(object, where, op);
    }
  }

  void read_control(const json& object, const std::string& where, Plan::Op& op) {
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

  void read_pipeline(const json& object, const std::string& where, Plan::Op& op) {
    const auto context = object.find("iter_context");
    if (context == object.end()) {
      json_.problem(where, "'iter_context' is missing");
    } else if (json_.is_object(*context, where + ", iter_context")) {
      op.unit_bytes = json_.integer(*context, "unit_size", where, 1, 0xffffffff).value_or(1);
      op.unit_chunks = json_.integer(*context, "num_chunks", where, 1, kMaxUnits).value_or(1);
    }
    op.body = read_ops(object, where, true);
  }

  void read_op_channels(const json& object, const std::string& where, Plan::Op& op) {
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

  void read_data(const json& object, const std::string& where, Plan::Op& op) {
    const std::size_t before = json_.problems().all().size();
    const bool port_put =
        op.type->target == Access::remote && op.channel_type == Plan::Channel::port;
    if (port_put || (object.contains("channel_ids") && op.channel_type == Plan::Channel::memory)) {
      read_op_channels(object, where, op);
    }
    if (object.contains("tbg_info") && json_.is_object(object["tbg_info"], where + ", tbg_info")) {
      const json& group = object["tbg_info"];
      op.slices = static_cast<int>(json_.integer(group, "tbg_size", where, 1, 1024).value_or(1));
      op.slice =
          static_cast<int>(json_.integer(group, "tb_id", where, 0, op.slices - 1).value_or(0));
    }
    if (object.contains("reduce_op")) {
      op.reduce_op = json_.word(object, "reduce_op", where).value_or("");
    }
    op.sources = read_refs(object, "src_buff", where, op);
    op.targets = read_refs(object, "dst_buff", where, op);
    if (json_.problems().all().size() == before) check_refs(where, op, port_put);
  }

  std::vector<Plan::Ref> read_refs(const json& object, const char* key, const std::string& where,
                                   const Plan::Op& op) {
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

  void read_ref(const json& object, const std::string& where, const Plan::Op& op, Plan::Ref& ref) {
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
        json_.problem(where, fmt::format("'switch_channel_id' is {}, but its threadblock has {}",
                                         *id, counted(mine.size(), "switch channel")));
      } else if (id && mine[static_cast<std::size_t>(*id)] >= 0) {
        ref.group = mine[static_cast<std::size_t>(*id)];
        ref.buffer = plan_.gpus[static_cast<std::size_t>(gpu_)]
                         .groups[static_cast<std::size_t>(ref.group)]
                         .buffer;
      }
    } else {
      ref.buffer = buffer_type(object, "type", where).value_or(Plan::Buffer::input);
      if (object.contains("rank") && object["rank"] != gpu_) {
        json_.problem(where, fmt::format("'rank' is {}, but a buffer without 'buffer_id' is the "
                                         "GPU's own",
                                         shown(object["rank"])));
      }
    }
    ref.index = json_.integer(object, "index", where, 0, kMaxUnits).value_or(0);
    ref.size = json_.integer(object, "size", where, 1, kMaxUnits).value_or(1);
    note_unread(object, "a buffer reference",
                {"type", "index", "size", "buffer_id", "switch_channel_id", "rank"});
    if (json_.problems().all().size() == before) check_bounds(where, ref);
  }

  void resolve_remote(const json& object, const std::string& where, const Plan::Op& op,
                      Plan::Ref& ref) {
    const auto id = json_.integer(object, "buffer_id", where, 0, kMaxIndex);
    if (op.channel_type != Plan::Channel::memory && op.channel_type != Plan::Channel::port) {
      json_.problem(where,
                    "the op needs a 'channel_type', memory or port, to reach a remote buffer");
      return;
    }
    const std::vector<int>& mine = tables_->buffers[at(op.channel_type)];
    if (!id) return;
    if (static_cast<std::size_t>(*id) >= mine.size()) {
      json_.problem(where,
                    fmt::format("'buffer_id' is {}, but 'remote_buffer_refs' of its "
                                "threadblock has {} for {} channels",
                                *id, counted(mine.size(), "buffer"), name_of(op.channel_type)));
      return;
    }
    const RemoteBuffer& buffer =
        remote_[static_cast<std::size_t>(gpu_)]
               [static_cast<std::size_t>(mine[static_cast<std::size_t>(*id)])];
    ref.rank = buffer.rank;
    ref.buffer = buffer.buffer;
  }

  /// In place, the runtime has one buffer with two names: the larger count holds.
  std::int64_t chunks_of(int rank, Plan::Buffer buffer) const {
    const Plan::Gpu& gpu = plan_.gpus[static_cast<std::size_t>(rank)];
    return gpu.chunks[at(buffer)];
  }

  void check_bounds(const std::string& where, const Plan::Ref& ref) {
    std::vector<int> places = {ref.rank};
    if (ref.access == Access::group) {
      places = plan_.gpus[static_cast<std::size_t>(gpu_)]
                   .groups[static_cast<std::size_t>(ref.group)]
                   .ranks;
    }
    for (const int rank : places) {
      const std::int64_t chunks = chunks_of(rank, ref.buffer);
      if (ref.index + ref.size <= chunks) continue;
      json_.problem(where,
                    fmt::format("'index' and 'size' reach up to chunk {}, but buffer '{}' of "
                                "gpu {} has {}",
                                ref.index + ref.size, letter_of(ref.buffer), rank,
                                counted(static_cast<std::size_t>(chunks), "chunk")));
      return;
    }
  }

  void check_refs(const std::string& where, const Plan::Op& op, bool port_put) {
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
  }

  void check_access(const std::string& where, const Plan::Op& op, const Plan::Ref& ref,
                    Access wanted) {
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

  void check_port(const std::string& where, const Plan::Op& op) {
    if (op.channels.size() != op.targets.size()) {
      json_.problem(where, fmt::format("it has {} in 'channel_ids' for {}",
                                       counted(op.channels.size(), "channel"),
                                       counted(op.targets.size(), "destination")));
      return;
    }
    for (std::size_t k = 0; k < op.channels.size(); ++k) {
      if (op.channels[k] < 0) continue;
      const int peer =
          plan_.gpus[static_cast<std::size_t>(gpu_)]
              .peers[at(Plan::Channel::port)][static_cast<std::size_t>(op.channels[k])];
      if (peer == op.targets[k].rank) continue;
      json_.problem(where, fmt::format("its channel leads to gpu {}, but its buffer lies on gpu {}",
                                       peer, op.targets[k].rank));
    }
  }

  JsonText json_;
  std::vector<std::string>& notes_;
  Plan plan_;
  std::vector<std::vector<RemoteBuffer>> remote_;
  std::map<std::string, std::size_t> unread_;
  const BlockTables* tables_ = nullptr;  ///< of the thread block at hand
  int gpu_ = 0;
};

}  // namespace

MscclppPlan read_mscclpp_plan(const FormatText& text, std::vector<std::string>& notes) {
  return Reader(text, notes).read();
}

}  // namespace espalier
