// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// A machine by what the user typed: a catalogue name ("dgx1-v100"), one with parameters
/// ("kesch:nodes=4"), a path to a YAML file ("./my.yaml", with parameters "./my.yaml:nodes=2"), or
/// a generic machine ("ring:n=8,gbps=25,latency_us=0.5"). Each may be followed by changes (what
/// if?: "dgx1-v100:without=gpu0-gpu3,nvlink2.gbps=x2", see docs/topologies.md). Throws Error{usage}
/// for an unknown name, parameter or change (with did-you-mean) and Error{input} with every problem
/// of a file.
Topology load_topology(const std::string& spec);

/// Makes a machine of the text of a file that is not ours, where it knows the format. `as`: the
/// machine that fills in what the file leaves out, as the user names it with "file.xml:as=NAME", or
/// empty. Throws Error{input}.
using ForeignReader = std::function<std::optional<Topology>(
    const std::string& text, const std::string& file, const std::string& as)>;
/// The same, where a path may also lead to such a file.
Topology load_topology(const std::string& spec, const ForeignReader& foreign);

/// Whether it names a file, whose content may have changed by the next time. Throws Error{usage}
/// for what cannot be a name.
bool is_of_file(const std::string& spec);

/// Parses YAML text of schema `espalier.topology/1` (docs/topologies.md). `nodes` > 0 overrides the
/// cluster size. `file` names the text in messages, and `compose` looks for files beside it. Throws
/// Error{input} with every problem, Error{usage} when the machine has no such cluster size.
Topology parse_topology(std::string_view yaml, const std::string& file, int nodes = 0);

/// A machine as YAML, node by node and link by link, that `parse_topology` reads back; figures keep
/// six digits, and the name loses what a file's can't have. Of a cluster, one host is printed.
/// Throws Error{unsupported} where its hosts are not alike. \pre the machine passes
/// `check_topology`
std::string print_topology(const Topology& machine);

struct CatalogueEntry {
  std::string name;
  std::string title;
  std::string yaml;  ///< the file's whole text
};

/// The built-in machines, sorted by name. They are compiled into the library.
const std::vector<CatalogueEntry>& catalogue();

struct GenericParameter {
  std::string name, meaning;
  double default_value;  ///< default value
};
struct GenericMachine {
  std::string name, title;
  std::vector<GenericParameter> parameters;
};
/// ring, line, full, star, switch, hosts, torus, with their parameters. Their links are
/// of kind "link", those to CPUs of kind "host_link", which have full bandwidth in every built-in
/// profile, and no start-up but what the parameter `startup_us` gives the former.
const std::vector<GenericMachine>& generic_machines();

/// A generic machine; parameters not given have their default values. Throws Error{usage} with
/// every unknown name and value out of range.
Topology generic_topology(const std::string& name, const std::map<std::string, double>& parameters);

/// What is known of a kind of link before any machine has one.
struct LinkKind {
  LinkClass link_class = LinkClass::host;
  std::string title;   ///< one line: what it is; may be empty
  std::string source;  ///< where the profiles' figures come from; may be empty
};

/// What is known about links independently of any machine: their kinds, and how each profile uses
/// them.
struct ProfileTable {
  std::vector<std::string> sources;  ///< what the short names in the kinds' `source` stand for
  std::map<std::string, LinkKind> link_kinds;
  ProfileSet profiles;
};
const ProfileTable& built_in_profiles();

/// The theoretical GB/s of one link and direction, rising, that links of a kind have in the
/// machines of the catalogue; empty when none has such a link.
std::vector<double> catalogue_rates(const std::string& link_kind);

}  // namespace espalier
