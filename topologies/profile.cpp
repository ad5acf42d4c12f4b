// SPDX-License-Identifier: Apache-2.0
#include "topologies/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/check.h"
#include "core/units.h"
#include "core/words.h"

namespace espalier {

Profile Profile::under(const std::string& protocol_name) const {
  const auto found = std::ranges::find(protocols, protocol_name, &Protocol::name);
  CHECK(found != protocols.end());
  Profile resolved = *this;
  resolved.name = profile_word(name).runtime + ":" + protocol_name;
  resolved.call_overhead_s += found->call_s - protocol.call_s;
  resolved.protocol = *found;
  return resolved;
}

void Profile::forget_blocks() {
  call_overhead_s = message_s = 0;
  blocks = fifo_steps = 0;
  splits_lanes = false;
  protocols.clear();
  protocol = {};
}

std::string cost_text(const Profile& profile, const std::string& link_kind, LinkClass link_class) {
  const auto known = profile.links.find(link_kind);
  const double overhead_s = known == profile.links.end() ? 0 : known->second.overhead_s;
  std::vector<std::string> costs;
  for (const Protocol& protocol : profile.protocols) {
    const auto hop = protocol.hop_s.find(link_class);
    if (hop == protocol.hop_s.end() || hop->second <= overhead_s) continue;
    costs.push_back(fmt::format("{} ({})", format_seconds(hop->second), protocol.name));
  }
  return costs.empty() ? format_seconds(overhead_s) : join(costs, ", ");
}

double figure_of(const std::map<std::string, double>& by_model, std::string_view model) {
  constexpr std::string_view kOther = "other";
  const std::string* best = nullptr;
  double figure = 0;
  for (const auto& [beginning, value] : by_model) {
    const bool fits = beginning == kOther ? best == nullptr : model.starts_with(beginning);
    if (!fits || (best != nullptr && best->size() > beginning.size())) continue;
    if (beginning != kOther) best = &beginning;
    figure = value;
  }
  return figure;
}

std::string lower_case(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  return lower;
}

ProfileWord profile_word(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  if (colon == std::string_view::npos) return {std::string(spec), {}};
  std::string protocol = lower_case(spec.substr(colon + 1));
  if (protocol == "auto") protocol.clear();
  return {std::string(spec.substr(0, colon)), std::move(protocol)};
}

}  // namespace espalier
