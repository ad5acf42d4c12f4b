// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_generation.h"

#include <fmt/format.h>

#include "core/words.h"

namespace espalier {
namespace {

using nlohmann::json;

/// A key that only one generation has, and its name today.
struct OldKey {
  std::string_view key;
  std::string_view today;
};

constexpr OldKey kOf2024[] = {{"colletive", "'collective'"}, {"inputChunks", "'input_chunks'"},
                              {"o_buff", "'dst_buff'"},      {"i_buff", "'src_buff'"},
                              {"srcbuff", "'src_buff'"},     {"chunkGroups", "nothing"}};
constexpr OldKey kOfDrafts[] = {{"connectedTo", "'connected_to'"},
                                {"remoteBufferIds", "'remote_buffer_refs'"},
                                {"channel_access", "'access_channel_types'"},
                                {"cids", "'channel_ids'"},
                                {"ctype", "'channel_type'"}};

/// Calls `visit(object, name of the list that it stands in)` for every object of a plan.
template <class Visit>
void for_each_object(const json& value, std::string_view list, const Visit& visit) {
  if (value.is_object()) {
    visit(value, list);
    for (const auto& item : value.items()) for_each_object(item.value(), item.key(), visit);
  } else if (value.is_array()) {
    for (const json& element : value) for_each_object(element, list, visit);
  }
}

struct Signs {
  std::string in_template;
  std::string of_2024;
  std::string of_draft;
};

Signs look_for_signs(const json& root) {
  Signs signs;
  const auto keep = [](std::string& sign, std::string found) {
    if (sign.empty()) sign = std::move(found);
  };
  for_each_object(root, "", [&](const json& object, std::string_view list) {
    for (const auto& [key, today] : kOf2024) {
      if (object.contains(key)) keep(signs.of_2024, fmt::format("'{}' (today {})", key, today));
    }
    for (const auto& [key, today] : kOfDrafts) {
      if (object.contains(key)) keep(signs.of_draft, fmt::format("'{}' (today {})", key, today));
    }
    if (list == "channels" && object.contains("type") && !object.contains("channel_type")) {
      keep(signs.of_draft, "'type' of a channel (today 'channel_type')");
    }
    for (const auto& item : object.items()) {
      if (item.value().is_string() &&
          item.value().get_ref<const std::string&>().find("${") != std::string::npos) {
        keep(signs.in_template, fmt::format("'{}' is {}", item.key(), shown(item.value())));
      }
    }
  });
  if (root.value("dynamic", json()) == true) keep(signs.in_template, "'dynamic' is true");
  return signs;
}

}  // namespace

void refuse_older_generations(JsonText& text) {
  const Signs signs = look_for_signs(text.root());
  const char* const help = "write the plan anew with the language of MSCCL++ 0.7 or later";
  if (!signs.in_template.empty()) {
    text.problem("",
                 fmt::format("this is a template of a plan ({}): its sizes are filled in when it "
                             "runs, so there is nothing to check or carry out yet",
                             signs.in_template),
                 "read the plan that was made from it");
  } else if (!signs.of_2024.empty()) {
    text.problem("",
                 fmt::format("this is a plan of the generation of 2024, by its {}; the executor of "
                             "2026 expects 'collective', 'input_chunks', channels of type memory, "
                             "port or switch, and 'src_buff' and 'dst_buff' in ops",
                             signs.of_2024),
                 help);
  } else if (!signs.of_draft.empty()) {
    text.problem("",
                 fmt::format("this is a plan of a draft of 2025 that no release reads, by its {}; "
                             "the executor of 2026 expects 'channel_type', 'channel_ids', "
                             "'connected_to', 'remote_buffer_refs' and 'access_channel_types'",
                             signs.of_draft),
                 help);
  }
  text.problems().throw_if_any();
}

}  // namespace espalier
