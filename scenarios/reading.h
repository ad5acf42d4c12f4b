// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/words.h"
#include "core/yaml.h"
#include "ir/collective.h"
#include "run/launch.h"
#include "topologies/route.h"

// What the readers of YAML files share. Private to the room.

namespace espalier {

/// Names and what they stand for.
template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// What the scalar names; `default_value` when it is missing or unknown, which is a problem.
template <class Value>
Value read_choice(const YamlValue& value, std::string_view what, Value default_value,
                  const Choices<Value>& choices, const Synonyms& synonyms = {}) {
  const auto text = value.text(what);
  if (!text) return default_value;
  std::vector<std::string> names;
  for (const auto& [name, meaning] : choices) {
    if (*text == name) return meaning;
    names.push_back(name);
  }
  value.problem("unknown " + std::string(what) + " " + quote(*text),
                did_you_mean(*text, names, synonyms));
  return default_value;
}

inline Collective read_collective(const YamlValue& value) {
  Choices<Collective> collectives;
  for (const CollectiveInfo& collective : all_collectives()) {
    collectives.emplace_back(collective.name, collective.id);
  }
  return read_choice(value, "collective", Collective::allreduce, collectives,
                     collective_synonyms());
}

inline LinkScope read_links(const YamlValue& value) {
  Choices<LinkScope> scopes;
  for (const LinkScope scope : all_link_scopes()) scopes.emplace_back(to_string(scope), scope);
  return read_choice(value, "links", LinkScope::all, scopes);
}

inline LaunchMode read_launch_mode(const YamlValue& value) {
  Choices<LaunchMode> modes;
  for (const LaunchMode mode : all_launch_modes()) modes.emplace_back(to_string(mode), mode);
  return read_choice(value, "launch", LaunchMode::per_gpu, modes);
}

/// "all" (empty), "0-3,6", or a list of numbers; a problem (and nothing) when it is neither.
std::optional<std::vector<int>> read_gpu_set(const YamlValue& value);

/// A machine or a profile as the file names it: paths of their files count from the file's folder.
std::string machine_path(const std::string& spec, const std::filesystem::path& folder);

/// Runs `read`. Problems of an Error it throws that have no location of their own are at `value`.
template <class Read>
auto read_located(const YamlValue& value, DiagnosticList& problems, Read&& read)
    -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    for (Diagnostic problem : error.diagnostics()) {
      if (problem.where.file.empty()) problem.where = value.where();
      problems.add(std::move(problem));
    }
    return std::nullopt;
  }
}

}  // namespace espalier
