// SPDX-License-Identifier: Apache-2.0
#include "report/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/words.h"
#include "report/csv.h"
#include "report/objects.h"

namespace espalier {

namespace {

std::vector<std::string> path_of(const Planned& planned, const TreeEdge& edge) {
  std::vector<std::string> names;
  for (const NodeId node : edge.path) {
    names.push_back(planned.machine->topology->node(node).name);
  }
  return names;
}

Json tree_json(const Planned& planned, const PlannedTree& tree) {
  Json edges = Json::array();
  for (const TreeEdge& edge : tree.edges) {
    edges.push_back({{"parent", planned.gpu_name(edge.parent)},
                     {"child", planned.gpu_name(edge.child)},
                     {"via", path_of(planned, edge)}});
  }
  return {{"root", planned.gpu_name(tree.root)},
          {"partner", tree.partner < 0 ? Json() : Json(planned.gpu_name(tree.partner))},
          {"units", tree.weight},
          {"part", part_of_message(tree.weight, planned.forest)},
          {"height", tree.height()},
          {"edges", std::move(edges)}};
}

Json loads_json(const Planned& planned) {
  Json links = Json::array();
  for (const LinkLoad& load : planned.loads) {
    links.push_back(
        {{"name", link_name(*planned.machine->topology, load.hop.link, load.hop.forward)},
         {"units", load.units},
         {"capacity_gbps", rounded(load.capacity_gbps)},
         {"utilization", rounded(share_used(load, planned.forest))}});
  }
  return links;
}

std::string dot_edge(const Planned& planned, const TreeEdge& edge, std::size_t tree) {
  const Collective collective = planned.forest.collective;
  const auto node = [&](int site) {
    return dot_quoted(fmt::format("{} {}", tree + 1, planned.gpu_name(site)));
  };
  std::vector<std::string> attributes;
  if (goes_up(collective)) attributes.emplace_back(goes_down(collective) ? "dir=both" : "dir=back");
  if (!edge.path.empty()) {
    attributes.push_back("label=" + dot_quoted(path_text(*planned.machine->topology, edge.path)));
  }
  return fmt::format("    {} -> {}{};\n", node(edge.parent), node(edge.child),
                     attributes.empty() ? "" : fmt::format(" [{}]", join(attributes, ", ")));
}

}  // namespace

std::string part_of_message(std::int64_t units, const Forest& forest) {
  const std::int64_t divisor = std::gcd(units, forest.units);
  return units == forest.units ? "1"
                               : fmt::format("{}/{}", units / divisor, forest.units / divisor);
}

Json plan_json(const Planned& planned) {
  const Query& query = planned.query;
  const Forest& forest = planned.forest;
  const int ranks = planned.machine->ranks();
  Json json;
  json["topology"] = query.topology;
  json["collective"] = to_string(query.collective);
  json["algorithm"] = query.algorithm;
  json["profile"] = query.profile;
  json["links"] = to_string(query.links);
  json["gpus"] = gpu_numbers(query, ranks);
  if (!query.relays.empty()) json["relays"] = query.relays;
  json["ranks"] = ranks;
  json["root"] = info(query.collective).rooted ? Json(query.root) : Json();
  json["algbw_gbps"] = rounded(forest.algbw_gbps);
  json["exact"] = forest.exact_algbw;
  json["without_peer_limits_gbps"] =
      forest.unlimited_gbps > 0 ? Json(rounded(forest.unlimited_gbps)) : Json();
  if (!forest.note.empty()) json["note"] = forest.note;
  if (planned.budget) json["budget"] = budget_json(*planned.budget);
  json["bound"] = bound_json(planned.bound, planned.fraction);
  json["bound"]["links"] = to_string(planned.bound_links);
  if (planned.bound_in_switches) {
    json["bound_in_switches"] = {{"algbw_gbps", rounded(planned.bound_in_switches->algbw_gbps)},
                                 {"certificate", planned.bound_in_switches->certificate}};
  }
  json["units"] = forest.units;
  json["trees"] = Json::array();
  for (const PlannedTree& tree : forest.trees) json["trees"].push_back(tree_json(planned, tree));
  json["link_loads"] = loads_json(planned);
  return json;
}

std::string plans_json(const std::vector<Planned>& plans) {
  Json results = Json::array();
  for (const Planned& plan : plans) results.push_back(plan_json(plan));
  return dump_results("espalier.plan/2", std::move(results));
}

std::string plans_csv(const std::vector<Planned>& plans) {
  CsvText text({"topology", "collective", "algorithm", "profile", "gpus", "relays", "ranks", "root",
                "algbw_gbps", "bound_gbps", "fraction", "link", "units", "units_in_all",
                "capacity_gbps", "utilization"});
  for (const Planned& plan : plans) {
    Json row = plan_json(plan);
    row["bound_gbps"] = row["bound"]["algbw_gbps"];
    row["fraction"] = row["bound"]["fraction"];
    row["units_in_all"] = row["units"];
    const Json loads = row["link_loads"];
    for (const Json& load : loads) {
      row.update(load);
      row["link"] = load["name"];
      text.add(row);
    }
  }
  return text.finish();
}

std::string plan_dot(const Planned& planned) {
  const Forest& forest = planned.forest;
  std::string text =
      fmt::format("digraph {} {{\n  node [shape=box, style=filled, fillcolor=palegreen];\n",
                  dot_quoted(fmt::format("{} {} {}", planned.query.algorithm,
                                         to_string(forest.collective), planned.query.topology)));
  for (std::size_t i = 0; i < forest.trees.size(); ++i) {
    const PlannedTree& tree = forest.trees[i];
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", i + 1,
                        dot_quoted(fmt::format("{}: {} of the message", i + 1,
                                               part_of_message(tree.weight, forest))));
    for (int site = 0; site < planned.sites(); ++site) {
      const bool is_in =
          site == tree.root || std::ranges::count(tree.edges, site, &TreeEdge::child);
      if (!is_in) continue;
      text +=
          fmt::format("    {} [label={}{}{}];\n",
                      dot_quoted(fmt::format("{} {}", i + 1, planned.gpu_name(site))),
                      dot_quoted(planned.gpu_name(site)), site == tree.root ? ", penwidth=3" : "",
                      site >= planned.machine->ranks() ? ", fillcolor=white" : "");
    }
    for (const TreeEdge& edge : tree.edges) text += dot_edge(planned, edge, i);
    text += "  }\n";
  }
  return text + "}\n";
}

}  // namespace espalier
