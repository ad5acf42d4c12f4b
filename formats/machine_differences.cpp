// SPDX-License-Identifier: Apache-2.0
#include "formats/machine_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "topologies/path_tree.h"
#include "topologies/route.h"

namespace espalier {
namespace {

/// The figures of a machine that a file may change, by what they are figures of. Names are those of
/// the machine that is written.
class Facts {
 public:
  explicit Facts(const Topology& machine)
      : machine_(machine), router_(machine, machine.profile("kernel")), gpus_(machine.gpus()) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) number_[gpus_[g]] = static_cast<int>(g);
    for (NodeId id = 0; id < static_cast<NodeId>(machine.nodes.size()); ++id) {
      if (machine.node(id).kind != NodeKind::cpu) continue;
      number_[id] = static_cast<int>(cpus_.size());
      cpus_.push_back(id);
    }
    add_fabric();
    add_host();
    add_network();
  }

  using Pair = std::pair<int, int>;
  std::map<Pair, double> fabric_gbps, sockets_gbps;
  std::map<Pair, int> fabric_links;
  std::map<int, double> switch_gbps, cpu_gbps;  ///< by GPU
  std::map<int, int> switch_links, cpu_of;
  std::vector<double> port_gbps;  ///< rising
  std::vector<std::string> models;
  int nvswitches = 0, combining = 0;

 private:
  void add_fabric() {
    for (const NodeId gpu : gpus_) models.push_back(machine_.node(gpu).model);
    for (const Node& node : machine_.nodes) {
      nvswitches += node.kind == NodeKind::nvswitch;
      combining += node.kind == NodeKind::nvswitch && node.combines;
    }
    for (LinkId id = 0; id < static_cast<LinkId>(machine_.links.size()); ++id) {
      const Link& link = machine_.link(id);
      if (net_of(machine_, link) != Net::gpu_fabric) continue;
      const auto a = number_.find(link.a), b = number_.find(link.b);
      if (a == number_.end() && b == number_.end()) continue;
      if (a != number_.end() && b != number_.end()) {
        const Pair pair = std::minmax(a->second, b->second);
        fabric_links[pair] += link.count;
        fabric_gbps[pair] += router_.capacity_gbps(id);
      } else {
        const int gpu = a != number_.end() ? a->second : b->second;
        switch_links[gpu] += link.count;
        switch_gbps[gpu] += router_.capacity_gbps(id);
      }
    }
  }

  double narrowest(const Route& route) const {
    double gbps = std::numeric_limits<double>::infinity();
    for (const Hop& hop : route.hops) gbps = std::min(gbps, router_.capacity_gbps(hop.link));
    return gbps;
  }

  /// The CPU with the fewest links between.
  void add_host() {
    std::map<int, std::vector<NodeId>> cpus;
    for (const NodeId cpu : cpus_) cpus[machine_.node(cpu).host].push_back(cpu);
    for (const NodeId gpu : gpus_) {
      std::size_t fewest = std::numeric_limits<std::size_t>::max();
      for (const NodeId cpu : cpus[machine_.node(gpu).host]) {
        const Route* route = router_.route(gpu, cpu);
        if (route == nullptr || route->kind != RouteKind::peer || route->hops.size() >= fewest) {
          continue;
        }
        fewest = route->hops.size();
        cpu_of[number_.at(gpu)] = number_.at(cpu);
        cpu_gbps[number_.at(gpu)] = narrowest(*route);
      }
    }
    for (const auto& [host, of_host] : cpus) {
      for (std::size_t a = 0; a < of_host.size(); ++a) {
        for (std::size_t b = a + 1; b < of_host.size(); ++b) {
          const Route* route = router_.route(of_host[a], of_host[b]);
          if (route == nullptr || route->kind == RouteKind::network) continue;
          sockets_gbps[{number_.at(of_host[a]), number_.at(of_host[b])}] = narrowest(*route);
        }
      }
    }
  }

  void add_network() {
    for (LinkId id = 0; id < static_cast<LinkId>(machine_.links.size()); ++id) {
      const Link& link = machine_.link(id);
      const NodeKind a = machine_.node(link.a).kind, b = machine_.node(link.b).kind;
      const bool is_port = (a == NodeKind::nic && b == NodeKind::fabric) ||
                           (b == NodeKind::nic && a == NodeKind::fabric);
      if (!is_port) continue;
      port_gbps.insert(port_gbps.end(), static_cast<std::size_t>(link.count),
                       router_.capacity_gbps(id) / link.count);
    }
    std::ranges::sort(port_gbps);
  }

  const Topology& machine_;
  Router router_;
  std::vector<NodeId> gpus_, cpus_;
  std::map<NodeId, int> number_;  ///< of GPUs, and of CPUs
};

/// Differences alike, told once: by what they say, where.
class Differences {
 public:
  void add(const std::string& subject, const std::string& what, const std::string& where) {
    auto& places = said_[{subject, what}];
    if (places.empty()) order_.push_back({subject, what});
    places.push_back(where);
  }
  std::vector<std::string> text() const {
    std::vector<std::string> lines;
    for (const auto& key : order_) {
      const std::vector<std::string>& places = said_.at(key);
      std::string where = places.front();
      if (places.size() == 2) where += ", " + places[1];
      if (places.size() > 2) where += fmt::format(" and {} more", places.size() - 1);
      lines.push_back(where.empty() ? fmt::format("{}: {}", key.first, key.second)
                                    : fmt::format("{} ({}): {}", key.first, where, key.second));
    }
    return lines;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> said_;
  std::vector<std::pair<std::string, std::string>> order_;
};

bool are_close(double a, double b) { return std::abs(a - b) <= 0.01 * std::max(a, b); }

std::string shown(double gbps) { return format_gbps(gbps) + " GB/s"; }
std::string shown(int count) { return fmt::format("{}", count); }

bool same(double a, double b) { return are_close(a, b); }
bool same(int a, int b) { return a == b; }

template <class Key, class Value, class Name>
void compare(const std::string& subject, const std::map<Key, Value>& before,
             const std::map<Key, Value>& after, const Name& name, Differences& differences) {
  for (const auto& [key, value] : before) {
    const auto found = after.find(key);
    if (found == after.end()) {
      differences.add(subject, shown(value) + " is lost", name(key));
    } else if (!same(value, found->second)) {
      differences.add(subject, shown(value) + " becomes " + shown(found->second), name(key));
    }
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key)) differences.add(subject, shown(value) + " is new", name(key));
  }
}

}  // namespace

std::vector<std::string> machine_differences(const Topology& machine, const Topology& written) {
  const Facts before(machine), after(written);
  Differences differences;
  if (before.models.size() != after.models.size()) {
    differences.add("GPUs", fmt::format("{} become {}", before.models.size(), after.models.size()),
                    "");
  }
  const auto gpu = [](int number) { return fmt::format("gpu {}", number); };
  const auto pair = [](const Facts::Pair& ends) {
    return fmt::format("{}-{}", ends.first, ends.second);
  };
  for (std::size_t g = 0; g < std::min(before.models.size(), after.models.size()); ++g) {
    if (before.models[g] == after.models[g]) continue;
    differences.add("model",
                    fmt::format("{} becomes {}", quote(before.models[g]), quote(after.models[g])),
                    gpu(static_cast<int>(g)));
  }
  compare("links between GPUs", before.fabric_links, after.fabric_links, pair, differences);
  compare("GB/s between GPUs", before.fabric_gbps, after.fabric_gbps, pair, differences);
  compare("links to NVSwitches", before.switch_links, after.switch_links, gpu, differences);
  compare("GB/s to NVSwitches", before.switch_gbps, after.switch_gbps, gpu, differences);
  if (before.nvswitches != after.nvswitches || before.combining != after.combining) {
    differences.add(
        "NVSwitches",
        fmt::format("{}, of which {} combine, become {}, of which {} combine", before.nvswitches,
                    before.combining, after.nvswitches, after.combining),
        "");
  }
  compare("the CPU of a GPU", before.cpu_of, after.cpu_of, gpu, differences);
  compare("GB/s to its CPU", before.cpu_gbps, after.cpu_gbps, gpu, differences);
  compare("GB/s between CPUs", before.sockets_gbps, after.sockets_gbps, pair, differences);
  const auto equal = std::ranges::equal(before.port_gbps, after.port_gbps, are_close);
  if (!equal) {
    const auto sum = [](const std::vector<double>& ports) {
      double all = 0;
      for (const double one : ports) all += one;
      return all;
    };
    differences.add("ports of network cards",
                    fmt::format("{} of {} GB/s in all become {} of {}", before.port_gbps.size(),
                                format_gbps(sum(before.port_gbps)), after.port_gbps.size(),
                                format_gbps(sum(after.port_gbps))),
                    "");
  }
  return differences.text();
}

}  // namespace espalier
