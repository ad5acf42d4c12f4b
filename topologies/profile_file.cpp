// SPDX-License-Identifier: Apache-2.0
#include "topologies/profile_file.h"

#include <fmt/format.h>

#include "core/file.h"
#include "core/words.h"
#include "topologies/machine_file.h"
#include "topologies/profile_grades.h"

namespace espalier {
namespace {

constexpr std::string_view kSchema = "espalier.profiles/1";

/// The kinds of links that a profile may speak of: those that are built in and the machine's own.
std::map<std::string, LinkKind> link_kinds_of(const Topology& machine) {
  std::map<std::string, LinkKind> kinds = built_in_profiles().link_kinds;
  for (const Link& link : machine.links) {
    kinds.try_emplace(link.kind, LinkKind{link.link_class, {}, {}});
  }
  return kinds;
}

/// The name of the only profile; empty, and a problem, where there is none or several.
std::string only_name(const YamlValue& profiles) {
  if (profiles.kind() != YamlValue::Kind::map) return {};  // whoever reads it says so
  const auto entries = YamlMap(profiles, "'profiles'").entries();
  if (entries.size() == 1) return entries.front().first;
  profiles.problem(fmt::format("a file that is named in place of a profile must have exactly one, "
                               "not {}",
                               entries.size()),
                   "several profiles belong into files of their own, or into a machine's file");
  return {};
}

}  // namespace

bool names_profile_file(std::string_view spec) {
  const std::size_t colon = spec.rfind(':');
  const auto is_path = [](std::string_view name) {
    return name.find('/') != std::string_view::npos || name.ends_with(".yaml") ||
           name.ends_with(".yml");
  };
  return is_path(spec) || (colon != std::string_view::npos && is_path(spec.substr(0, colon)));
}

Profile parse_profile(std::string_view yaml, const std::string& file, const Topology& machine) {
  DiagnosticList problems;
  const YamlValue root = YamlValue::parse(yaml, file, problems);
  Profile profile;
  if (root.present()) {
    YamlMap map(root, "a file of a profile");
    const YamlValue schema = map.need("schema");
    if (const auto text = schema.text("'schema'"); text && *text != kSchema) {
      schema.problem(fmt::format("unknown schema {}", quote(*text)), std::string(kSchema));
    }
    for (const YamlValue& source : map.get("sources").one_or_more()) source.text("a source");
    std::map<std::string, LinkKind> kinds = link_kinds_of(machine);
    read_link_kinds(map.get("link_kinds"), kinds);
    const YamlValue profiles = map.need("profiles");
    const std::string name = only_name(profiles);
    ProfileSet known = machine.profiles;
    read_profiles(profiles, kinds, known.edit());
    const YamlValue grades = map.get("grades");
    if (grades.present()) check_grades(grades);
    map.finish();
    if (!name.empty()) profile = known[name];
  }
  problems.throw_if_any();
  profile.name = file;
  return profile;
}

Profile read_profile_file(const std::string& path, const Topology& machine) {
  return parse_profile(read_file(path), path, machine);
}

}  // namespace espalier
