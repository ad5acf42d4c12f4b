// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/file.h"
#include "core/words.h"
#include "topologies/machine_file.h"
#include "topologies/name_pattern.h"
#include "topologies/synonyms.h"
#include "topologies/topology_checks.h"

namespace espalier {

namespace {

constexpr double kMicro = 1e-6;
constexpr std::size_t kMaxChain = 16;  // of machines composed of one another
constexpr Range kHosts = {1, kMaxNodes, "a number from 1 to 262144"};
static_assert(kMaxNodes == 262144, "see the message above");
constexpr const char* kSchema = "espalier.topology/1";

class MachineReader {
 public:
  MachineReader(const std::string& file, DiagnosticList& problems, std::vector<std::string> chain)
      : file_(file), problems_(problems), chain_(std::move(chain)) {}

  MachineFilePtr read(std::string_view yaml) {
    const std::size_t problems_before = problems_.all().size();
    root_ = YamlValue::parse(yaml, file_, problems_);
    YamlMap map(root_, "a topology");
    if (!check_schema(map)) return nullptr;
    result_->link_kinds = built_in_profiles().link_kinds;
    result_->one.profiles = built_in_profiles().profiles;
    const YamlValue compose = map.get("compose");
    const bool has_base = compose.present() && read_base(compose);
    read_head(map);
    if (compose.present()) {
      read_changes(map, has_base);
    } else {
      read_parts(map);
    }
    const YamlValue profiles = map.get("profiles");
    if (profiles.present()) {
      read_profiles(profiles, result_->link_kinds, result_->one.profiles.edit());
    }
    map.finish();
    check_parts(problems_.all().size() > problems_before);
    return problems_.all().size() == problems_before ? result_ : nullptr;
  }

 private:
  /// A file of another schema is not read on: every key of it would be a problem.
  bool check_schema(YamlMap& map) {
    const YamlValue schema = map.need("schema");
    const std::optional<std::string> text = schema.text("'schema'");
    if (text && *text != kSchema) {
      schema.problem("the schema is " + quote(*text) + ", which is not that of a topology",
                     fmt::format("write 'schema: {}'", kSchema));
    }
    return !text || *text == kSchema;
  }

  void read_head(YamlMap& map) {
    Topology& machine = result_->one;
    const YamlValue name = map.need("name");
    if (const auto text = name.text("'name'")) {
      machine.name = *text;
      if (text->empty() || text->find_first_of(kNotInNames) != std::string::npos) {
        name.problem(quote(*text) + " is not a valid name for a machine",
                     "leave out ':', '/' and spaces");
      }
    }
    machine.title = map.text("title", machine.title);
    for (const YamlValue& source : map.get("sources").one_or_more()) {
      machine.sources.push_back(source.text("a source").value_or(""));
    }
    machine.peer_access = static_cast<Topology::PeerAccess>(read_choice(
        map, "peer_access", {"all", "socket", "fabric"}, static_cast<int>(machine.peer_access)));
    machine.gpus_forward = map.boolean("gpus_forward", machine.gpus_forward);
    read_link_kinds(map.get("link_kinds"), result_->link_kinds);
  }

  // ---- a machine of its own parts

  void read_parts(YamlMap& map) {
    if (map.get("links_of_kind").present()) {
      map.key_problem("links_of_kind", "'links_of_kind' changes the links of a base machine",
                      "use it with 'compose', or write the figures into 'links'");
    }
    read_models(map.get("models"));
    read_memories(map.get("memories"), result_->one.memories);
    for (const YamlValue& node : map.need("nodes").items("'nodes'")) read_node(node);
    for (const YamlValue& link : map.get("links").items("'links'")) read_link(link);
    result_->shared.assign(result_->one.nodes.size(), false);
    read_cluster(map.get("cluster"));
  }

  void read_models(const YamlValue& value) {
    YamlMap map(value, "'models'");
    for (const auto& [model, figures] : map.entries()) {
      YamlMap entry(figures, "model " + quote(model));
      read_node_figures(entry, models_[model]);
      entry.finish();
    }
  }

  /// Those that are not given stay as they are.
  void read_node_figures(YamlMap& map, Node& node) {
    node.memory_gbps = read_figure(map, "memory_gbps", kGbps, node.memory_gbps);
    node.reduce_gbps = read_figure(map, "reduce_gbps", kGbps, node.reduce_gbps);
    node.access_gbps = read_figure(map, "access_gbps", kGbps, node.access_gbps);
    read_exchange(map, node.exchange);
    node.peer_limit = read_whole(map, "peer_limit", kLimit, node.peer_limit);
    node.copy_engines = read_whole(map, "copy_engines", kLimit, node.copy_engines);
    node.combines = map.boolean("combines", node.combines);
    node.speed = read_figure(map, "speed", kSpeed, node.speed);
  }

  void read_node(const YamlValue& value) {
    YamlMap map(value, "a node");
    const YamlValue pattern = map.need("name");
    Node node;
    map.need("kind");
    node.kind = static_cast<NodeKind>(
        read_choice(map, "kind", {"gpu", "cpu", "pcie_switch", "nvswitch", "nic", "fabric"}, 0));
    read_model(map, node);
    read_node_figures(map, node);
    node.numa = read_whole(map, "numa", kNuma, -1);
    node.memory = map.text("memory");
    map.finish();
    for (const std::string& name : names(pattern, "'name' of a node", kMaxNodes - node_count())) {
      node.name = name;
      const auto id = static_cast<NodeId>(node_count());
      ids_.emplace(name, id);  // check() reports a name given twice
      result_->one.nodes.push_back(node);
      node_places_.push_back(pattern);
    }
  }

  /// Models are names only, unless the file describes some: then all of them.
  void read_model(YamlMap& map, Node& node) {
    const YamlValue value = map.get("model");
    const std::string model = value.text("'model' of a node").value_or("");
    const auto found = models_.find(model);
    if (found != models_.end()) {
      const NodeKind kind = node.kind;
      node = found->second;  // which has figures and nothing else
      node.kind = kind;
    } else if (value.present() && !models_.empty()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : models_) known.push_back(name);
      value.problem("unknown model " + quote(model), did_you_mean(model, known));
    }
    node.model = model;
  }

  void read_link(const YamlValue& value) {
    const std::size_t problems_before = problems_.all().size();
    YamlMap map(value, "a link");
    const std::vector<NodeId> a = ends(map.need("a"), "'a' of a link");
    const std::vector<NodeId> b = ends(map.need("b"), "'b' of a link");
    Link link;
    const YamlValue kind = map.need("kind");
    if (const auto text = kind.text("'kind' of a link")) {
      link.kind = *text;
      const auto found = result_->link_kinds.find(*text);
      if (found == result_->link_kinds.end()) {
        kind.problem("unknown link kind " + quote(*text),
                     meant_link_kind(*text, result_->link_kinds));
      } else {
        link.link_class = found->second.link_class;
      }
    }
    map.need("gbps");
    link.gbps = read_figure(map, "gbps", kGbps, 1);
    link.count = read_whole(map, "count", kCount, 1);
    link.measured_gbps = read_figure(map, "measured_gbps", kGbps, 0);
    link.latency_s = read_figure(map, "latency_us", kMicroseconds, 0) * kMicro;
    link.duplex = static_cast<Duplex>(read_choice(map, "duplex", {"full", "half", "shared"}, 0));
    link.medium = map.text("medium");
    map.finish();
    if (problems_.all().size() > problems_before) {
      // Figures that were not understood must not be held against the others.
      link.measured_gbps = 0;
      link.duplex = Duplex::full;
      link.medium.clear();
    }
    if (a.empty() || b.empty()) return;
    if (a.size() > (kMaxLinks - result_->one.links.size()) / b.size()) {
      value.problem(fmt::format("more than {} links in one machine", kMaxLinks));
      return;
    }
    for (const NodeId from : a) {
      for (const NodeId to : b) {
        link.a = from;
        link.b = to;
        result_->one.links.push_back(link);
        link_places_.push_back(value);
      }
    }
  }

  void read_cluster(const YamlValue& value) {
    if (!value.present()) return;
    YamlMap map(value, "'cluster'");
    const YamlValue shared = map.get("shared");
    for (const YamlValue& pattern : shared.one_or_more()) read_shared(pattern);
    result_->max_hosts = read_whole(map, "max_nodes", kHosts, kMaxNodes);
    result_->hosts = read_whole(map, "nodes", kHosts, 1);
    map.finish();
    check_host_count(map, map.get("nodes"));
    if (result_->max_hosts > 1 && !shared.present()) {
      map.problem("'cluster' needs 'shared'",
                  "name the nodes that exist once and connect the hosts: shared: [fabric]");
    }
  }

  void read_shared(const YamlValue& pattern) {
    for (const NodeId id : ends(pattern, "'shared' of 'cluster'")) {
      const Node& node = result_->one.node(id);
      if (node.kind == NodeKind::gpu || node.kind == NodeKind::cpu) {
        pattern.problem(fmt::format("{} is a {}, which several hosts cannot share", node.name,
                                    to_string(node.kind)),
                        "share switches and fabrics");
        return;
      }
      result_->shared[static_cast<std::size_t>(id)] = true;
    }
  }

  void check_host_count(const YamlMap& map, const YamlValue& nodes) {
    if (result_->one.nodes.empty()) return;
    const std::string wrong = wrong_host_count(*result_, result_->hosts);
    if (wrong.empty()) return;
    if (nodes.present()) {
      nodes.problem(wrong, "lower 'nodes', or raise 'max_nodes' if the machine can be larger");
    } else {
      map.problem(wrong);
    }
  }

  // ---- a machine made of another one

  /// Whether the base is there and right; adds problems when it is not.
  bool read_base(const YamlValue& compose) {
    YamlMap map(compose, "'compose'");
    const YamlValue base = map.need("base");
    const auto name = base.text("'base' of 'compose'");
    const MachineFilePtr machine = name ? find_base(base, *name) : nullptr;
    if (!machine) return false;
    *result_ = *machine;
    result_->max_hosts = read_whole(map, "max_nodes", kHosts, result_->max_hosts);
    result_->hosts = read_whole(map, "nodes", kHosts, result_->hosts);
    map.finish();
    check_host_count(map, map.get("nodes"));
    return true;
  }

  MachineFilePtr find_base(const YamlValue& value, const std::string& name) {
    const auto& known = catalogue_names();
    const bool built_in = std::find(known.begin(), known.end(), name) != known.end();
    const std::filesystem::path file = std::filesystem::path(file_).lexically_normal();
    const std::string base =
        built_in ? catalogue_file(name) : (file.parent_path() / name).lexically_normal().string();
    std::vector<std::string> chain = chain_;
    chain.push_back(file.string());
    const bool is_itself = std::find(chain.begin(), chain.end(), base) != chain.end();
    // The limit ends cycles through links of the file system.
    if (is_itself || chain.size() > kMaxChain) {
      value.problem(is_itself ? "a machine cannot be composed of itself: " + join(chain, " -> ") +
                                    " -> " + base
                              : fmt::format("machines are composed of one another, each of the "
                                            "next, more than {} deep",
                                            kMaxChain));
      return nullptr;
    }
    if (built_in) return catalogue_machine(name, problems_, chain);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(base, ignored)) {
      value.problem("there is no machine " + quote(name) + " in the catalogue and no such file",
                    did_you_mean(name, known));
      return nullptr;
    }
    return read_machine(read_file(base), base, problems_, chain);
  }

  void read_changes(YamlMap& map, bool has_base) {
    for (const char* key : {"nodes", "links", "models", "memories", "cluster"}) {
      if (!map.get(key).present()) continue;
      map.key_problem(key, fmt::format("'{}' cannot be used together with 'compose'", key),
                      "nodes and links come from the base; 'links_of_kind' changes figures");
    }
    for (Link& link : result_->one.links) {
      link.link_class = result_->link_kinds.at(link.kind).link_class;
    }
    node_places_.assign(result_->one.nodes.size(), root_);
    link_places_.assign(result_->one.links.size(), root_);
    YamlMap changes(map.get("links_of_kind"), "'links_of_kind'");
    for (const auto& [kind, figures] : changes.entries()) {
      change_links(figures, kind);
      if (has_base) check_present(changes, kind);
    }
  }

  void change_links(const YamlValue& figures, const std::string& kind) {
    YamlMap map(figures, "links of kind " + quote(kind));
    const double gbps = read_figure(map, "gbps", kGbps, 0);
    const double measured_gbps = read_figure(map, "measured_gbps", kGbps, 0);
    const double latency_us = read_figure(map, "latency_us", kMicroseconds, -1);
    map.finish();
    for (std::size_t i = 0; i < result_->one.links.size(); ++i) {
      Link& link = result_->one.links[i];
      if (link.kind != kind) continue;
      link_places_[i] = figures;
      if (latency_us >= 0) link.latency_s = latency_us * kMicro;
      if (gbps > 0) link.gbps = gbps;
      // What was measured on the old link says nothing about a new one.
      if (gbps > 0 || measured_gbps > 0) link.measured_gbps = measured_gbps;
    }
  }

  void check_present(const YamlMap& changes, const std::string& kind) const {
    std::set<std::string> present;
    for (const Link& link : result_->one.links) present.insert(link.kind);
    if (present.contains(kind)) return;
    changes.key_problem(kind, "the base machine has no links of kind " + quote(kind),

                        did_you_mean(kind, {present.begin(), present.end()}, link_kind_synonyms()));
  }

  // ---- values

  std::vector<std::string> names(const YamlValue& value, const std::string& what,
                                 std::size_t limit) {
    const auto pattern = value.text(what);
    if (!pattern) return {};
    std::string problem;
    auto expanded = expand_names(*pattern, limit, problem);
    if (!expanded) value.problem(std::move(problem));
    return std::move(expanded).value_or(std::vector<std::string>{});
  }

  /// The nodes a pattern names; the first unknown one is reported.
  std::vector<NodeId> ends(const YamlValue& value, const std::string& what) {
    std::vector<NodeId> found;
    for (const std::string& name : names(value, what, kMaxNodes)) {
      const auto id = ids_.find(name);
      if (id == ids_.end()) {
        value.problem("unknown node " + quote(name), did_you_mean(name, node_names()));
        return {};
      }
      found.push_back(id->second);
    }
    return found;
  }

  std::size_t node_count() const { return result_->one.nodes.size(); }

  std::vector<std::string> node_names() const {
    std::vector<std::string> names;
    for (const Node& node : result_->one.nodes) names.push_back(node.name);
    return names;
  }

  /// What concerns several parts. One message for each written line, though it may stand for many
  /// nodes or links. The machine as a whole is not judged when parts of it were not understood.
  void check_parts(bool incomplete) {
    const Locate locate = [this](Part part, std::size_t index) {
      if (part == Part::node) return node_places_[index].where();
      if (part == Part::link) return link_places_[index].where();
      return root_.where();
    };
    std::set<std::tuple<int, int, std::string>> seen;
    for (const Diagnostic& problem : check_topology(result_->one, locate)) {
      const Location& where = problem.where;
      if (incomplete && where == root_.where()) continue;
      if (seen.emplace(where.line, where.column, problem.suggestion).second) problems_.add(problem);
    }
  }

  const std::string file_;
  DiagnosticList& problems_;
  std::vector<std::string> chain_;
  YamlValue root_;
  std::shared_ptr<MachineFile> result_ = std::make_shared<MachineFile>();
  std::map<std::string, Node> models_;  ///< what nodes of one model have in common
  std::unordered_map<std::string, NodeId> ids_;
  std::vector<YamlValue> node_places_;  ///< by node
  std::vector<YamlValue> link_places_;  ///< by link
};

}  // namespace

MachineFilePtr read_machine(std::string_view yaml, const std::string& file,
                            DiagnosticList& problems, std::vector<std::string> chain) {
  return MachineReader(file, problems, std::move(chain)).read(yaml);
}

}  // namespace espalier
