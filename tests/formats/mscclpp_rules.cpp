// SPDX-License-Identifier: Apache-2.0
#include "tests/formats/mscclpp_rules.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace espalier {
namespace {

using nlohmann::json;

class Rules {
 public:
  explicit Rules(std::string_view text) : plan_(json::parse(text)) {}

  std::string check() {
    for (const char* key : {"name", "collective", "protocol"}) need(plan_[key].is_string(), key);
    need(plan_["inplace"].is_boolean(), "inplace");
    need(plan_["max_message_size"] >= plan_["min_message_size"], "message sizes");
    const json& gpus = plan_["gpus"];
    for (std::size_t g = 0; g < gpus.size(); ++g) check_gpu(gpus[g], g);
    check_ends();
    return broken_;
  }

 private:
  void need(bool holds, const std::string& rule) {
    if (!holds && broken_.size() < 2000) broken_ += rule + "\n";
  }

  void check_gpu(const json& gpu, std::size_t g) {
    const std::string name = fmt::format("gpu {}", g);
    need(gpu["id"] == g, name + ": id");
    need(gpu["input_chunks"] > 0 && gpu["output_chunks"] > 0, name + ": divides by 0");
    std::map<std::string, std::size_t> channels;
    for (const json& channel : gpu["channels"]) {
      const auto type = channel["channel_type"].get<std::string>();
      if (type == "switch") {
        ++channels[type];
        for (const json& group : channel["rank_groups"]) {
          need(group["size"] == group["ranks"].size(), name + ": group size");
          groups_[group["ranks"].dump() + channel["buffer_type"].dump()].insert(g);
        }
        continue;
      }
      for (const json& peer : channel["connected_to"]) {
        need(peer != g && peer < plan_["gpus"].size(), name + ": peer");
        ++connections_[{type, g, peer.get<std::size_t>()}];
        ++channels[type];
      }
    }
    for (const json& buffer : gpu["remote_buffers"]) {
      need(buffer["rank"] != g && buffer["rank"] < plan_["gpus"].size(), name + ": buffer rank");
    }
    for (std::size_t b = 0; b < gpu["threadblocks"].size(); ++b) {
      check_block(gpu, g, b, channels);
    }
  }

  void check_block(const json& gpu, std::size_t g, std::size_t b,
                   std::map<std::string, std::size_t>& channels) {
    const json& block = gpu["threadblocks"][b];
    const std::string name = fmt::format("gpu {}, threadblock {}", g, b);
    need(block["id"] == b, name + ": id");
    need(block["ops"].size() <= 64, name + ": ops");
    std::map<std::string, std::vector<std::size_t>> mine;
    for (const json& channel : block["channels"]) {
      const auto type = channel["channel_type"].get<std::string>();
      for (const json& id : channel["channel_ids"]) {
        need(id < channels[type], name + ": channel id");
        mine[type].push_back(id);
      }
      need(mine[type].size() <= 16, name + ": channels");
    }
    std::map<std::string, std::vector<json>> buffers;
    for (const json& ref : block["remote_buffer_refs"]) {
      const auto type = ref["access_channel_type"].get<std::string>();
      for (const json& id : ref["remote_buffer_ids"]) {
        need(id < gpu["remote_buffers"].size(), name + ": remote buffer id");
        const json& buffer = gpu["remote_buffers"][id.get<std::size_t>()];
        bool accessible = false;
        for (const json& access : buffer["access_channel_types"]) accessible |= access == type;
        need(accessible, name + ": access type");
        buffers[type].push_back(buffer);
      }
      need(buffers[type].size() <= 16, name + ": remote buffers");
    }
    for (std::size_t k = 0; k < block["ops"].size(); ++k) {
      check_op(block["ops"][k], gpu, fmt::format("{}, op {}", name, k), mine, buffers);
    }
  }

  void check_op(const json& op, const json& gpu, const std::string& name,
                std::map<std::string, std::vector<std::size_t>>& mine,
                std::map<std::string, std::vector<json>>& buffers) {
    const std::string type = op.value("channel_type", "none");
    if (op.contains("channel_ids")) {
      need(op["channel_ids"].size() <= 8 && !op["channel_ids"].empty(), name + ": channel_ids");
      std::set<json> different(op["channel_ids"].begin(), op["channel_ids"].end());
      need(different.size() == op["channel_ids"].size(), name + ": channel twice");
      for (const json& id : op["channel_ids"]) need(id < mine[type].size(), name + ": channel");
    }
    if (op.contains("semaphore_ids")) {
      need(op["semaphore_ids"].size() <= 16, name + ": semaphore_ids");
      for (const json& id : op["semaphore_ids"]) {
        need(id < gpu["semaphores"].size(), name + ": semaphore");
      }
    }
    constexpr std::pair<const char*, const char*> kChunks[] = {
        {"i", "input_chunks"}, {"o", "output_chunks"}, {"s", "scratch_chunks"}};
    for (const char* side : {"src_buff", "dst_buff"}) {
      if (!op.contains(side)) continue;
      need(op[side].size() <= 10, name + ": buffers");
      for (const json& ref : op[side]) {
        json of = gpu;
        json letter = ref.value("type", json());
        if (ref.contains("buffer_id")) {
          need(ref["buffer_id"] < buffers[type].size(), name + ": buffer_id");
          const json& buffer = buffers[type][ref["buffer_id"].get<std::size_t>()];
          of = plan_["gpus"][buffer["rank"].get<std::size_t>()];
          letter = buffer["type"];
        } else if (ref.contains("switch_channel_id")) {
          need(ref["switch_channel_id"] < mine["switch"].size(), name + ": switch channel");
          continue;
        }
        for (const auto& [buffer, chunks] : kChunks) {
          if (letter == buffer) {
            need(ref["index"].get<int>() + ref["size"].get<int>() <= of[chunks], name + ": bounds");
          }
        }
      }
    }
  }

  void check_ends() {
    for (const auto& [key, count] : connections_) {
      const auto& [type, from, to] = key;
      const auto back = connections_.find({type, to, from});
      need(back != connections_.end() && back->second == count,
           fmt::format("{} channels from {} to {}", type, from, to));
    }
    for (const auto& [group, members] : groups_) {
      const json ranks = json::parse(group.substr(0, group.find(']') + 1));
      need(ranks.size() == members.size(), "members of group " + group);
    }
  }

  json plan_;
  std::map<std::tuple<std::string, std::size_t, std::size_t>, int> connections_;
  std::map<std::string, std::set<std::size_t>> groups_;
  std::string broken_;
};

}  // namespace

std::string broken_mscclpp_rules(std::string_view text) { return Rules(text).check(); }

}  // namespace espalier
