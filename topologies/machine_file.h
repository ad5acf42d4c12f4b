// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.h"
#include "topologies/load.h"
#include "topologies/topology_checks.h"

namespace espalier {

/// What a topology file says: one host of the machine, and how many of them there are.
struct MachineFile {
  Topology one;              ///< with the file's names, whatever the number of hosts
  std::vector<bool> shared;  ///< per node of `one`: there once for all hosts
  int hosts = 1;             ///< when nobody asks for a number
  int max_hosts = 1;
  std::map<std::string, LinkKind> link_kinds;  ///< the built-in ones and the file's own
};
using MachineFilePtr = std::shared_ptr<const MachineFile>;

/// Reads a file's text; null when `problems` has grown. `chain` holds what is being composed, from
/// the outermost file inwards, to find cycles.
MachineFilePtr read_machine(std::string_view yaml, const std::string& file,
                            DiagnosticList& problems, std::vector<std::string> chain = {});

/// A machine of the catalogue, parsed once per process; null when there is none of that name.
/// Safe to call from several threads.
MachineFilePtr catalogue_machine(const std::string& name, DiagnosticList& problems,
                                 std::vector<std::string> chain = {});

/// What the name of a machine in a file can't have: it stands in words such as "NAME:nodes=2".
inline constexpr std::string_view kNotInNames = ":/ \t\n";

/// Names of the catalogue, sorted.
const std::vector<std::string>& catalogue_names();

/// "topologies/NAME.yaml", as messages call a file of the catalogue.
std::string catalogue_file(const std::string& name);

/// The machine of `hosts` hosts. Host h's nodes are called "nh.NAME" when there are several; shared
/// nodes come last and keep their names. \pre 1 <= hosts <= machine.max_hosts
Topology repeat_hosts(const MachineFile& machine, int hosts);

/// Nothing, or why a machine can't have that many hosts.
std::string wrong_host_count(const MachineFile& machine, std::int64_t hosts);

/// Reads `link_kinds: {KIND: {class: ..., title: ..., source: ...}}` into `kinds`.
void read_link_kinds(const YamlValue& value, std::map<std::string, LinkKind>& kinds);

/// "did you mean ...?" for a kind that is none of `kinds`.
std::string meant_link_kind(const std::string& word, const std::map<std::string, LinkKind>& kinds);

/// Reads `exchange_gbps: 12` or `exchange_gbps: {fresh: 12, unchanged: 20, passed_on: 5}`, which
/// replaces what `rates` has, if the key is there.
void read_exchange(YamlMap& map, ExchangeRates& rates);

/// Reads `memories: {NAME: {...}}` into `memories`.
void read_memories(const YamlValue& value, std::map<std::string, SharedMemory>& memories);

/// Reads `profiles: {NAME: {...}}`: changes to those in `profiles`, or new ones.
void read_profiles(const YamlValue& value, const std::map<std::string, LinkKind>& kinds,
                   std::map<std::string, Profile>& profiles);

/// Readers of one key. Each returns `default_value` if the key is absent, or if its value is
/// wrong, which is diagnosed at the value. `read_choice` returns an index into `choices`.
double read_figure(YamlMap& map, const std::string& key, const Range& range, double default_value);
int read_whole(YamlMap& map, const std::string& key, const Range& range, int default_value);
int read_choice(YamlMap& map, const std::string& key, const std::vector<std::string>& choices,
                int default_value);

}  // namespace espalier
