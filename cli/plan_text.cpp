// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "report/plan.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

constexpr int kLoadBarColumns = 24;

/// The edges below each site of a tree, by site.
std::vector<std::vector<const TreeEdge*>> edges_below(const PlannedTree& tree, int sites) {
  std::vector<std::vector<const TreeEdge*>> below(static_cast<std::size_t>(sites));
  for (const TreeEdge& edge : tree.edges) {
    below[static_cast<std::size_t>(edge.parent)].push_back(&edge);
  }
  return below;
}

std::string arrow(Collective collective) {
  if (!goes_up(collective)) return "->";
  return goes_down(collective) ? "<->" : "<-";
}

/// The rank that an edge leads to, with the way there: "gpu2 via nvswitch0".
std::string step_text(const Planned& planned, const PlannedTree& tree, const TreeEdge& edge) {
  std::string text = planned.gpu_name(edge.child);
  if (!edge.path.empty()) text += " via " + path_text(*planned.machine->topology, edge.path);
  if (edge.child == tree.partner) {
    text += fmt::format(" (exchanges with {})", planned.gpu_name(tree.root));
  }
  return text;
}

/// Heaviest first; identical trees that run side by side are listed once.
std::vector<PlannedTree> shown_trees(const Forest& forest) {
  std::vector<PlannedTree> trees;
  for (const PlannedTree& tree : forest.trees) {
    const bool is_repeated = !trees.empty() && trees.back().root == tree.root &&
                             trees.back().partner == tree.partner &&
                             trees.back().edges == tree.edges;
    if (is_repeated) {
      trees.back().weight += tree.weight;
    } else {
      trees.push_back(tree);
    }
  }
  std::ranges::stable_sort(trees, std::ranges::greater{}, &PlannedTree::weight);
  return trees;
}

/// "12 trees, 2 to 4 high", "7 paths of 1 to 3 hops".
std::string describe_trees(const std::vector<PlannedTree>& trees) {
  int minimum = trees.front().height();
  int maximum = minimum;
  bool branches = false;
  for (const PlannedTree& tree : trees) {
    const int height = tree.height();
    minimum = std::min(minimum, height);
    maximum = std::max(maximum, height);
    branches = branches || height < static_cast<int>(tree.edges.size());
  }
  const std::string range =
      minimum == maximum ? fmt::format("{}", maximum) : fmt::format("{} to {}", minimum, maximum);
  return branches ? fmt::format("{}, {} high", counted(trees.size(), "tree"), range)
                  : fmt::format("{} of {} hop{}", counted(trees.size(), "path"), range,
                                maximum == 1 ? "" : "s");
}

/// A line for every stretch of a tree without branches: GPUs and the switches between them, joined
/// by arrows that say where data goes. Lines begin with `indent`.
std::string tree_text(const Planned& planned, const PlannedTree& tree, int width,
                      const std::string& indent) {
  const auto below = edges_below(tree, planned.sites());
  const std::string between = fmt::format(" {} ", arrow(planned.forest.collective));
  /// A stretch without branches, and what stands before its first line and before what hangs below.
  struct Stretch {
    int site;
    std::string text;
    std::string first, rest;
  };
  std::string text;
  std::vector<Stretch> open{{tree.root, planned.gpu_name(tree.root), indent, indent}};
  while (!open.empty()) {
    Stretch top = std::move(open.back());
    open.pop_back();
    const auto children = [&]() -> const std::vector<const TreeEdge*>& {
      return below[static_cast<std::size_t>(top.site)];
    };
    while (children().size() == 1) {
      top.text += between + step_text(planned, tree, *children().front());
      top.site = children().front()->child;
    }
    std::string lines = wrap(top.text, width, top.rest);
    text += lines.replace(0, top.rest.size(), top.first);
    // The first child is to be taken next.
    for (std::size_t i = children().size(); i-- > 0;) {
      const bool is_last = i + 1 == children().size();
      const TreeEdge& edge = *children()[i];
      open.push_back({edge.child, step_text(planned, tree, edge),
                      top.rest + (is_last ? "`-- " : "|-- "),
                      top.rest + (is_last ? "    " : "|   ")});
    }
  }
  return text;
}

std::string describe_flow(Collective collective) {
  if (!goes_up(collective)) return "data flows from the root to the leaves";
  if (goes_down(collective))
    return "data flows up and is combined on the way; the result flows down";
  return info(collective).reduces ? "data flows towards the root and is combined on the way"
                                  : "data flows towards the root";
}

void print_rates(const Console& console, const Planned& planned) {
  const Forest& forest = planned.forest;
  const Bound& bound = planned.bound;
  console.out << fmt::format("# Rate: {} GB/s algbw (exactly {}), {:.1f}% of the bound\n",
                             format_gbps(forest.algbw_gbps), forest.exact_algbw,
                             100 * planned.fraction);
  console.out << fmt::format("# Bound ({}): {} GB/s algbw (exactly {}), proved by {}\n",
                             to_string(planned.bound_links), format_gbps(bound.algbw_gbps),
                             bound.exact, proof_of(bound))
              << wrap(bound.certificate, console.width, "#   ");
  if (planned.bound_in_switches) {
    console.out << wrap(
        fmt::format("This bound is for schedules in which GPUs add up and copy, as in "
                    "these trees. Switches of this machine can, too (algorithm nvls): "
                    "with them {} GB/s are not excluded.",
                    format_gbps(planned.bound_in_switches->algbw_gbps)),
        console.width, "# ");
  }
  if (forest.unlimited_gbps > 0) {
    const std::string loss =
        forest.unlimited_gbps > forest.algbw_gbps
            ? fmt::format("without that limit, {} GB/s", format_gbps(forest.unlimited_gbps))
            : "the limit costs nothing";
    console.out << fmt::format("# Peers: no GPU maps the memory of more GPUs than its limit; {}\n",
                               loss);
  }
  const bool ran_out = planned.budget && planned.budget->ran_out;
  if (!forest.note.empty() && !ran_out) {
    console.out << wrap("Note: " + forest.note, console.width, "# ");
  }
  if (ran_out) {
    const std::string what = forest.exact_algbw == bound.exact
                                 ? "the plan is the best there is all the same"
                                 : fmt::format(
                                       "{:.1f}% of the bound; more time may find a better "
                                       "plan or a tighter bound",
                                       100 * planned.fraction);
    const double granted_s = planned.budget->seconds;
    const std::string when = granted_s > 0 ? fmt::format("Time ran out after {:g} s", granted_s)
                                           : "No time was granted (--budget 0)";
    console.out << wrap(fmt::format("{}: {}", when, what), console.width, "# ");
  }
  console.out << "#\n";
}

void print_trees(const Console& console, const Planned& planned, int maximum) {
  const Forest& forest = planned.forest;
  const std::vector<PlannedTree> trees = shown_trees(forest);
  const std::size_t shown = std::min(trees.size(), static_cast<std::size_t>(maximum));
  console.out << fmt::format("# {}; {}\n", describe_trees(trees), describe_flow(forest.collective));
  for (std::size_t i = 0; i < shown; ++i) {
    const PlannedTree& tree = trees[i];
    const std::string part =
        tree.weight == forest.units ? "all" : part_of_message(tree.weight, forest);
    const double share = static_cast<double>(tree.weight) / static_cast<double>(forest.units);
    console.out << fmt::format("# {} of {}: {} of the message ({} of {} units), {} GB/s\n", i + 1,
                               trees.size(), part, tree.weight, forest.units,
                               format_gbps(share * forest.algbw_gbps))
                << tree_text(planned, tree, console.width, "  ");
  }
  if (shown < trees.size()) {
    console.out << fmt::format("# and {} more: --show-trees {} shows all\n", trees.size() - shown,
                               trees.size());
  }
}

std::string name_of(const Planned& planned, const LinkLoad& load) {
  return link_name(*planned.machine->topology, load.hop.link, load.hop.forward);
}

void print_loads(const Console& console, const Planned& planned, int maximum) {
  std::vector<LinkLoad> loads = planned.loads;
  std::ranges::stable_sort(loads, std::ranges::greater{},
                           [&](const LinkLoad& load) { return share_used(load, planned.forest); });
  const auto idle = std::ranges::find(loads, 0, &LinkLoad::units);
  const auto used = static_cast<std::size_t>(idle - loads.begin());
  const std::size_t shown = std::min(used, static_cast<std::size_t>(maximum));
  console.out << "#\n# Links: share of their capacity that is used at this rate\n";
  Columns columns("llrr");
  for (std::size_t i = 0; i < shown; ++i) {
    const double share = share_used(loads[i], planned.forest);
    columns.add({name_of(planned, loads[i]), bar(share, kLoadBarColumns),
                 fmt::format("{:.1f}%", 100 * share),
                 fmt::format("{} of {} GB/s", format_gbps(share * loads[i].capacity_gbps),
                             format_gbps(loads[i].capacity_gbps))});
  }
  console.out << columns.render("#   ");
  if (shown < used) {
    console.out << fmt::format("#   and {} more: --show-links {} shows all\n", used - shown,
                               loads.size());
  }
  std::vector<std::string> names;
  for (auto load = idle; load != loads.end(); ++load) {
    if (names.size() == static_cast<std::size_t>(maximum)) break;
    names.push_back(name_of(planned, *load));
  }
  const std::size_t left_out = static_cast<std::size_t>(loads.end() - idle) - names.size();
  if (left_out > 0) {
    names.push_back(fmt::format("{}{}", left_out, names.empty() ? "" : " more"));
  }
  const std::string text = names.empty() ? "none" : join(names, ", ");
  console.out << wrap("Idle: " + text, console.width, "# ");
}

/// Which plan this is, where simulations weigh several.
std::string other_plans(const Query& query) {
  if (query.links == LinkScope::fabric) return {};  // then all are alike
  std::string text;
  for (const AlgorithmParameter* parameter : open_parameters(parse_algorithm(query.algorithm))) {
    if (!parameter->of_plan) continue;
    text +=
        fmt::format("# planned with {0}={1}; sim, exec and run also try {0}={2}\n", parameter->name,
                    parameter->default_value, fmt::join(parameter->tried, ", "));
  }
  return text;
}

}  // namespace

void print_plan(const Console& console, const Planned& planned, const PlanView& view) {
  const Query& query = planned.query;
  const CollectiveInfo& collective = info(query.collective);
  console.out << fmt::format("# plan of {} for {}{} on {}\n# profile {}, links {}\n{}#\n",
                             query.algorithm, collective.name,
                             collective.rooted ? fmt::format(" (root {})", query.root) : "",
                             describe_ranks(query, planned.machine->ranks()), query.profile,
                             to_string(query.links), other_plans(query));
  if (!std::isfinite(planned.forest.algbw_gbps)) {
    console.out << "# Nothing to send: there is only one rank\n";
    return;
  }
  print_rates(console, planned);
  print_trees(console, planned, view.trees);
  print_loads(console, planned, view.links);
}

}  // namespace espalier
