// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_text.h"
#include "formats/mscclpp_plan.h"

namespace espalier {

/// What all parts of a plan's reader need: words of the format, and keys that nobody reads.
/// Private to the room.
class MscclppWords {
 public:
  explicit MscclppWords(JsonText& text) : json_(text) {}

  /// Counts the members of an object of a kind ("an op") that are none of those known.
  void note_unread(const nlohmann::json& object, const std::string& kind,
                   std::initializer_list<std::string_view> known);
  const std::map<std::string, std::size_t>& unread() const { return unread_; }

  /// Nothing where the value is none of the types.
  static std::optional<MscclppPlan::Channel> parse_channel(const nlohmann::json& value);
  void unknown_channel(const char* key, const nlohmann::json& value, const std::string& where);
  /// Nothing, and a problem, where the member is missing or of no such type.
  std::optional<MscclppPlan::Channel> channel_type(const nlohmann::json& object, const char* key,
                                                   const std::string& where);
  std::optional<MscclppPlan::Buffer> buffer_type(const nlohmann::json& object, const char* key,
                                                 const std::string& where);

 private:
  JsonText& json_;
  std::map<std::string, std::size_t> unread_;
};

/// A buffer of another GPU, and the types of channels that reach it.
struct MscclppRemoteBuffer {
  int rank = 0;
  MscclppPlan::Buffer buffer = MscclppPlan::Buffer::input;
  std::array<bool, 4> access{};
};

/// What a thread block's own numbers stand for: channels of the GPU and remote buffers, by type.
struct MscclppBlockTables {
  std::array<std::vector<int>, 4> channels;
  std::array<std::vector<MscclppRemoteBuffer>, 4> buffers;
};

/// Reads the ops of thread blocks. \pre channels, buffers and chunks of all GPUs of `plan` are read
class MscclppOpReader {
 public:
  MscclppOpReader(JsonText& text, MscclppWords& words, const MscclppPlan& plan)
      : json_(text), words_(words), plan_(plan) {}

  std::vector<MscclppPlan::Op> read(const nlohmann::json& block, int gpu,
                                    const MscclppBlockTables& tables, const std::string& where);

 private:
  using json = nlohmann::json;
  using Plan = MscclppPlan;
  std::vector<Plan::Op> read_ops(const json& holder, const std::string& where, bool inner);
  void read_op(const json& object, const std::string& where, bool inner, Plan::Op& op);
  void read_control(const json& object, const std::string& where, Plan::Op& op);
  void read_pipeline(const json& object, const std::string& where, Plan::Op& op);
  void read_op_channels(const json& object, const std::string& where, Plan::Op& op);
  void read_data(const json& object, const std::string& where, Plan::Op& op);
  std::vector<Plan::Ref> read_refs(const json& object, const char* key, const std::string& where,
                                   const Plan::Op& op);
  void read_ref(const json& object, const std::string& where, const Plan::Op& op, Plan::Ref& ref);
  void resolve_remote(const json& object, const std::string& where, const Plan::Op& op,
                      Plan::Ref& ref);
  void check_bounds(const std::string& where, const Plan::Ref& ref);
  void check_refs(const std::string& where, const Plan::Op& op, bool port_put);
  void check_access(const std::string& where, const Plan::Op& op, const Plan::Ref& ref,
                    Plan::Ref::Access wanted);
  void check_port(const std::string& where, const Plan::Op& op);
  void check_memory_put(const std::string& where, const Plan::Op& op);

  JsonText& json_;
  MscclppWords& words_;
  const MscclppPlan& plan_;
  const MscclppBlockTables* tables_ = nullptr;  ///< of the thread block at hand
  int gpu_ = 0;
};

}  // namespace espalier
