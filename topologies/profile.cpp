// SPDX-License-Identifier: Apache-2.0
#include "topologies/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "core/check.h"
#include "core/units.h"
#include "core/words.h"
#include "topologies/profile_file.h"

namespace espalier {
namespace {

/// Sizes are doubles: what divides exactly must not look a little too large.
constexpr double kTolerance = 1e-6;

/// Of a table by beginnings of models: the entry of the longest one, else of "other", or the end.
template <class Table>
auto entry_of(const Table& by_model, std::string_view model) {
  auto best = by_model.end();
  for (auto entry = by_model.begin(); entry != by_model.end(); ++entry) {
    if (!model.starts_with(entry->first)) continue;
    if (best == by_model.end() || best->first.size() < entry->first.size()) best = entry;
  }
  return best == by_model.end() ? by_model.find("other") : best;
}

}  // namespace

Profile Profile::under(const std::string& protocol_name) const {
  const auto found = std::ranges::find(protocols, protocol_name, &Protocol::name);
  CHECK(found != protocols.end());
  Profile resolved = *this;
  resolved.name = profile_word(name).runtime + ":" + protocol_name;
  resolved.call_overhead_s += found->call_s - protocol.call_s;
  resolved.protocol = *found;
  if (found != protocols.begin()) resolved.in_switch = found->switch_ops(in_switch);
  return resolved;
}

Profile Profile::in_use(const std::string& protocol_name) const {
  if (!protocol_name.empty()) return under(protocol_name);
  if (protocols.empty()) return *this;
  Profile bulk = under(protocols.front().name);
  bulk.name = name;
  return bulk;
}

std::map<std::string, SwitchOps> Protocol::switch_ops(
    const std::map<std::string, SwitchOps>& of_bulk) const {
  std::map<std::string, SwitchOps> own;
  if (!in_switch) return own;
  for (auto [model, ops] : of_bulk) {
    const auto hop = hop_s.find(LinkClass::gpu_fabric);
    ops.slice_s = hop == hop_s.end() ? 0 : hop->second;
    ops.slices.clear();
    if (slice_bytes > 0) ops.slices.push_back({.bytes = slice_bytes});
    own.emplace(std::move(model), std::move(ops));
  }
  return own;
}

void Profile::forget_blocks() {
  call_overhead_s = message_s = 0;
  message_more_s.clear();
  launch = {};
  errors.clear();
  blocks = fifo_steps = 0;
  splits_lanes = interprets = false;
  dependence_s = 0;
  on_models.clear();
  protocols.clear();
  protocol = {};
  in_switch.clear();
}

double SwitchOps::fixed_s(double bytes) const {
  const Slices* const cut = slices_for(bytes);
  if (cut == nullptr || cut->bytes <= 0) return slice_s;
  const double count = std::max(1.0, std::ceil(bytes / cut->bytes * (1 - kTolerance)));
  return cut->fill_s + slice_s * count;
}

double SwitchOps::wire_of(double bytes) const {
  const Slices* const cut = slices_for(bytes);
  return cut == nullptr || cut->wire <= 0 ? wire : cut->wire;
}

double SwitchOps::wire_of_slice(double bytes) const {
  const auto found = std::ranges::find_if(
      slices, [&](const Slices& one) { return bytes <= one.bytes * (1 + kTolerance); });
  return found == slices.end() || found->wire <= 0 ? wire : found->wire;
}

const SwitchOps::Slices* SwitchOps::slices_for(double bytes) const {
  const auto found = std::ranges::find_if(slices, [&](const Slices& one) {
    return one.below_bytes <= 0 || bytes < one.below_bytes * (1 - kTolerance);
  });
  return found == slices.end() ? nullptr : &*found;
}

const SwitchOps* Profile::switch_ops(std::string_view model, bool in_network) const {
  static const std::string kNetwork = "network";
  const auto found = in_network ? in_switch.find(kNetwork) : entry_of(in_switch, model);
  return found == in_switch.end() || (!in_network && found->first == kNetwork) ? nullptr
                                                                               : &found->second;
}

double StartUp::of(double bytes) const {
  const auto next = std::ranges::lower_bound(longer, bytes, {}, &Longer::above_bytes);
  return next == longer.begin() ? s : std::prev(next)->s;
}

void StartUp::combine(const StartUp& other) {
  std::vector<Longer> both;
  const auto add = [&](const Longer& one) {
    // Just above that length, where its cost begins.
    const double bytes = std::nextafter(one.above_bytes, one.above_bytes + 1);
    both.push_back({one.above_bytes, std::max(of(bytes), other.of(bytes))});
  };
  std::ranges::for_each(longer, add);
  std::ranges::for_each(other.longer, add);
  std::ranges::sort(both, {}, &Longer::above_bytes);
  s = std::max(s, other.s);
  longer.clear();
  for (const Longer& one : both) {
    if (one.s > most_s()) longer.push_back(one);
  }
}

void StartUp::add(double more_s) {
  s += more_s;
  for (Longer& one : longer) one.s += more_s;
}

std::string cost_text(const Profile& profile, const std::string& link_kind, LinkClass link_class) {
  const auto known = profile.links.find(link_kind);
  const StartUp start_up = known == profile.links.end() ? StartUp{} : known->second.start_up();
  const double overhead_s = start_up.s;
  std::vector<std::string> costs;
  for (const Protocol& protocol : profile.protocols) {
    const auto hop = protocol.hop_s.find(link_class);
    if (hop == protocol.hop_s.end() || hop->second <= overhead_s) continue;
    costs.push_back(fmt::format("{} ({})", format_seconds(hop->second), protocol.name));
  }
  if (!costs.empty()) return join(costs, ", ");
  costs.push_back(format_seconds(overhead_s));
  for (const StartUp::Longer& one : start_up.longer) {
    costs.push_back(fmt::format("{} above {}", format_seconds(one.s),
                                format_bytes(static_cast<std::int64_t>(one.above_bytes))));
  }
  return join(costs, ", ");
}

double figure_of(const std::map<std::string, double>& by_model, std::string_view model) {
  const auto found = entry_of(by_model, model);
  return found == by_model.end() ? 0 : found->second;
}

std::string lower_case(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  return lower;
}

ProfileWord profile_word(std::string_view spec) {
  std::size_t colon = spec.find(':');
  if (names_profile_file(spec)) {  // which may have a ':' in its name
    colon = spec.rfind(':');
    if (colon != std::string_view::npos && names_profile_file(spec.substr(colon))) {
      colon = std::string_view::npos;
    }
  }
  if (colon == std::string_view::npos) return {std::string(spec), {}};
  std::string protocol = lower_case(spec.substr(colon + 1));
  if (protocol == "auto") protocol.clear();
  return {std::string(spec.substr(0, colon)), std::move(protocol)};
}

}  // namespace espalier
