// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/words.h"
#include "formats/json_text.h"
#include "formats/mscclpp_generation.h"
#include "formats/mscclpp_op_reader.h"
#include "ir/program.h"

namespace espalier {
namespace {

using nlohmann::json;
using Plan = MscclppPlan;

constexpr int kMaxIndex = std::numeric_limits<int>::max();
/// A thread block is a lane.
constexpr std::size_t kMaxBlocks = 1 << 16;

std::size_t at(Plan::Channel channel) { return static_cast<std::size_t>(channel); }

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

class Reader {
 public:
  Reader(const FormatText& text, std::vector<ForeignNote>& notes)
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
    for (const auto& [key, count] : words_.unread()) {
      notes_.push_back({fmt::format("{} is not read ({})", key, counted(count, "time"))});
    }
    return std::move(plan_);
  }

 private:
  int ranks() const { return static_cast<int>(plan_.gpus.size()); }

  void read_header() {
    const json& root = json_.root();
    plan_.line = json_.line_of("");
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
    words_.note_unread(root, "the plan",
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
    words_.note_unread(gpu, "a GPU",
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
      const auto type = words_.channel_type(channel, "channel_type", where);
      if (type == Plan::Channel::group) {
        read_group(channel, index, where, read);
      } else if (type) {
        for (const int peer : json_.integers(channel, "connected_to", where, 0, ranks() - 1)) {
          if (peer == index) json_.problem(where, "'connected_to' names the GPU itself");
          read.peers[at(*type)].push_back(peer);
        }
      }
      words_.note_unread(channel, "a channel",
                         {"channel_type", "connected_to", "buffer_type", "rank_groups"});
    }
  }

  void read_group(const json& channel, int index, const std::string& where, Plan::Gpu& read) {
    const auto buffer = words_.buffer_type(channel, "buffer_type", where);
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
      MscclppRemoteBuffer read;
      const auto rank = json_.integer(buffer, "rank", where, 0, ranks() - 1);
      read.rank = static_cast<int>(rank.value_or(0));
      if (rank && read.rank == index) json_.problem(where, "'rank' is the GPU itself");
      read.buffer = words_.buffer_type(buffer, "type", where).value_or(Plan::Buffer::input);
      if (const json* types = json_.list(buffer, "access_channel_types", where)) {
        for (const json& type : *types) {
          if (const auto channel = words_.parse_channel(type)) {
            read.access[at(*channel)] = true;
          } else {
            words_.unknown_channel("access_channel_types", type, where);
          }
        }
      }
      remote_[static_cast<std::size_t>(index)].push_back(read);
      words_.note_unread(buffer, "a remote buffer", {"rank", "type", "access_channel_types"});
    }
  }

  void read_blocks(const json& gpu, int index) {
    const json* blocks = json_.list(gpu, "threadblocks", fmt::format("gpu {}", index));
    if (blocks == nullptr) return;
    if (blocks->size() > kMaxBlocks) {
      json_.problem(fmt::format("gpu {}", index),
                    fmt::format("it has {} threadblocks, but at most {} are read", blocks->size(),
                                kMaxBlocks));
      return;
    }
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
    MscclppBlockTables tables;
    read_block_channels(block, gpu, where, tables);
    read_block_buffers(block, gpu, where, tables);
    for (std::size_t type = 0; type < 4; ++type) {
      read.channels[type] = static_cast<int>(tables.channels[type].size());
      read.remote_buffers[type] = static_cast<int>(tables.buffers[type].size());
    }
    read.line = json_.line_of(where);
    read.ops = ops_.read(block, gpu, tables, where);
    words_.note_unread(block, "a threadblock", {"id", "ops", "channels", "remote_buffer_refs"});
  }

  void read_block_channels(const json& block, int gpu, const std::string& where,
                           MscclppBlockTables& tables) {
    const json* channels = json_.list(block, "channels", where);
    if (channels == nullptr) return;
    const Plan::Gpu& of = plan_.gpus[static_cast<std::size_t>(gpu)];
    for (const json& channel : *channels) {
      if (!json_.is_object(channel, where)) continue;
      const auto type = words_.channel_type(channel, "channel_type", where);
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
                          MscclppBlockTables& tables) {
    const json* refs = json_.list_or(block, "remote_buffer_refs", where);
    if (refs == nullptr) return;
    const auto& buffers = remote_[static_cast<std::size_t>(gpu)];
    for (const json& ref : *refs) {
      if (!json_.is_object(ref, where)) continue;
      const auto type = words_.channel_type(ref, "access_channel_type", where);
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
        tables.buffers[at(*type)].push_back(buffers[static_cast<std::size_t>(id)]);
      }
    }
  }

  JsonText json_;
  std::vector<ForeignNote>& notes_;
  Plan plan_;
  std::vector<std::vector<MscclppRemoteBuffer>> remote_;
  MscclppWords words_{json_};
  MscclppOpReader ops_{json_, words_, plan_};
};

}  // namespace

MscclppPlan read_mscclpp_plan(const FormatText& text, std::vector<ForeignNote>& notes) {
  return Reader(text, notes).read();
}

}  // namespace espalier
