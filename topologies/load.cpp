// SPDX-License-Identifier: Apache-2.0
#include "topologies/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "core/file.h"
#include "core/units.h"
#include "core/words.h"
#include "topologies/embedded.h"
#include "topologies/machine_file.h"
#include "topologies/synonyms.h"
#include "topologies/what_if.h"

namespace espalier {

namespace {

constexpr std::string_view kExtension = ".yaml";
constexpr std::string_view kNotMachines = "profiles.yaml";

/// "kesch:nodes=4,qpi.gbps=x2" taken apart: what comes before the colon, the parameters by name,
/// and the changes in their order.
struct Spec {
  std::string name;
  std::string as;  ///< a machine's name, for files that are not ours
  std::map<std::string, double> parameters;
  std::vector<MachineChange> changes;
};

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") ||
         name.ends_with(".yml") || name.ends_with(".xml") || name.ends_with(".txt");
}

/// At commas, but for those of a pattern such as "gpu[0,2]".
std::vector<std::string> split_parameters(std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string& piece : split(text, ',')) {
    const bool is_open = !parts.empty() && parts.back().rfind('[') != std::string::npos &&
                         parts.back().find(']', parts.back().rfind('[')) == std::string::npos;
    if (is_open) {
      parts.back() += ',' + piece;
    } else {
      parts.push_back(piece);
    }
  }
  return parts;
}

Spec parse_spec(const std::string& text) {
  Spec spec;
  // A colon before the last '/' or in "a:b.yaml" belongs to a path.
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || is_path(std::string_view(text).substr(colon))) {
    spec.name = text;
    return spec;
  }
  spec.name = text.substr(0, colon);
  DiagnosticList problems;
  std::set<std::string> names;
  for (const std::string& part : split_parameters(std::string_view(text).substr(colon + 1))) {
    const std::size_t equals = part.find('=');
    const std::string key(trim(std::string_view(part).substr(0, equals)));
    if (equals == std::string::npos || key.empty()) {
      problems.add({}, quote(part) + " is not a parameter", "write NAME:KEY=VALUE,KEY=VALUE");
      continue;
    }
    const std::string_view value = trim(std::string_view(part).substr(equals + 1));
    if (key == "as" && is_path(spec.name)) {
      spec.as = value;
      continue;
    }
    const std::optional<double> number = parse_number(value);
    const bool is_change = is_change_key(key);
    if (!is_change && !number) {
      problems.add(
          {}, fmt::format("parameter '{}' must be a number, not {}", printable(key), quote(value)));
    } else if (!names.insert(is_change ? change_subject({key, std::string(value)}) : key).second) {
      problems.add({}, "parameter " + quote(key) + " is given twice");
    } else if (is_change) {
      spec.changes.push_back({key, std::string(value)});
    } else {
      spec.parameters.emplace(key, *number);
    }
  }
  problems.throw_if_any(ErrorKind::usage);
  return spec;
}

/// The cluster size asked for, or 0. `nodes` is the only parameter of machines from files.
int requested_nodes(const Spec& spec) {
  DiagnosticList problems;
  int nodes = 0;
  for (const auto& [key, value] : spec.parameters) {
    if (key != "nodes") {
      problems.add({}, fmt::format("{} has no parameter {}", quote(spec.name), quote(key)),
                   did_you_mean(key, {"nodes", "without"}));
    } else if (value != static_cast<double>(static_cast<int>(std::clamp(value, 0.0, 1e6))) ||
               value < 1) {
      problems.add({},
                   fmt::format("'nodes' is {}, but must be a whole number of at least 1", value));
    } else {
      nodes = static_cast<int>(value);
    }
  }
  problems.throw_if_any(ErrorKind::usage);
  return nodes;
}

Topology build(const MachineFile& machine, int nodes) {
  if (nodes == 0) return repeat_hosts(machine, machine.hosts);
  const std::string wrong = wrong_host_count(machine, nodes);
  if (!wrong.empty()) {
    throw Error(ErrorKind::usage, wrong,
                machine.max_hosts == 1 ? "this machine has only one node" : "request fewer nodes");
  }
  Topology topology = repeat_hosts(machine, nodes);
  topology.name += fmt::format(":nodes={}", nodes);
  return topology;
}

const EmbeddedFile* find_embedded(const std::string& name) {
  const std::string file_name = name + std::string(kExtension);
  if (file_name == kNotMachines) return nullptr;
  const auto& files = embedded_files();
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const EmbeddedFile& file) { return file.name == file_name; });
  return found == files.end() ? nullptr : &*found;
}

[[noreturn]] void unknown_machine(const std::string& name) {
  std::vector<std::string> known = catalogue_names();
  for (const GenericMachine& machine : generic_machines()) known.push_back(machine.name);
  throw Error(ErrorKind::usage, "unknown topology " + quote(name),
              did_you_mean(name, known, topology_synonyms()));
}

}  // namespace

std::string catalogue_file(const std::string& name) {
  return "topologies/" + name + std::string(kExtension);
}

const std::vector<std::string>& catalogue_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.name == kNotMachines) continue;
      all.emplace_back(file.name.substr(0, file.name.size() - kExtension.size()));
    }
    return all;
  }();
  return names;
}

MachineFilePtr catalogue_machine(const std::string& name, DiagnosticList& problems,
                                 std::vector<std::string> chain) {
  static std::mutex mutex;
  static std::unordered_map<std::string, MachineFilePtr> parsed;
  {
    const std::lock_guard lock(mutex);
    const auto found = parsed.find(name);
    if (found != parsed.end()) return found->second;
  }
  const EmbeddedFile* file = find_embedded(name);
  if (file == nullptr) return nullptr;
  // Not under the lock: a composed machine comes back here for its base. At worst two threads parse
  // the same file.
  MachineFilePtr machine =
      read_machine(file->text, catalogue_file(name), problems, std::move(chain));
  if (!machine) return nullptr;
  const std::lock_guard lock(mutex);
  return parsed.emplace(name, std::move(machine)).first->second;
}

std::vector<double> catalogue_rates(const std::string& link_kind) {
  std::set<double> rates;
  for (const std::string& name : catalogue_names()) {
    DiagnosticList problems;
    const MachineFilePtr machine = catalogue_machine(name, problems);
    problems.throw_if_any();
    for (const Link& link : machine->one.links) {
      if (link.kind == link_kind) rates.insert(link.gbps);
    }
  }
  return {rates.begin(), rates.end()};
}

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = [] {
    std::vector<CatalogueEntry> all;
    for (const std::string& name : catalogue_names()) {
      DiagnosticList problems;
      const MachineFilePtr machine = catalogue_machine(name, problems);
      problems.throw_if_any();
      all.push_back({name, machine->one.title, std::string(find_embedded(name)->text)});
    }
    return all;
  }();
  return entries;
}

Topology parse_topology(std::string_view yaml, const std::string& file, int nodes) {
  DiagnosticList problems;
  const MachineFilePtr machine = read_machine(yaml, file, problems);
  problems.throw_if_any();
  return build(*machine, nodes);
}

namespace {

bool is_generic(const std::string& name) {
  return std::ranges::count(generic_machines(), name, &GenericMachine::name) > 0;
}

Topology load_unchanged(const Spec& spec, const ForeignReader& foreign) {
  if (is_path(spec.name)) {
    const std::string text = read_file(spec.name);
    if (foreign) {
      if (auto machine = foreign(text, spec.name, spec.as)) {
        if (requested_nodes(spec) > 1) {
          throw Error(ErrorKind::usage, quote(spec.name) + " describes one machine, not a cluster",
                      "write a YAML file with 'compose' to repeat it");
        }
        return std::move(*machine);
      }
    }
    if (!spec.as.empty()) {
      throw Error(ErrorKind::usage,
                  quote(spec.name) + " leaves nothing out that 'as' could fill in",
                  "'as' belongs to topology files of other programs");
    }
    return parse_topology(text, spec.name, requested_nodes(spec));
  }
  if (is_generic(spec.name)) return generic_topology(spec.name, spec.parameters);
  DiagnosticList problems;
  const MachineFilePtr machine = catalogue_machine(spec.name, problems);
  problems.throw_if_any();
  if (!machine) unknown_machine(spec.name);
  return build(*machine, requested_nodes(spec));
}

}  // namespace

bool is_of_file(const std::string& spec) { return is_path(parse_spec(spec).name); }

Topology load_topology(const std::string& text) { return load_topology(text, nullptr); }

Topology load_topology(const std::string& text, const ForeignReader& foreign) {
  const Spec spec = parse_spec(text);
  Topology topology = load_unchanged(spec, foreign);
  DiagnosticList problems;
  change_machine(topology, spec.changes, problems);
  problems.throw_if_any(ErrorKind::usage);
  if (is_generic(spec.name)) {
    topology.name = text;  // parameters in the order they were typed
    return topology;
  }
  for (const MachineChange& change : spec.changes) {
    const bool is_first = topology.name.find(':') == std::string::npos;
    topology.name += (is_first ? ":" : ",") + to_string(change);
  }
  return topology;
}

}  // namespace espalier
