// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "core/check.h"
#include "core/words.h"
#include "topologies/load.h"
#include "topologies/topology_checks.h"

namespace espalier {

namespace {

constexpr double kMicro = 1e-6;
constexpr const char* kLinkKind = "link";
constexpr const char* kHostLinkKind = "host_link";
constexpr Range kGpus = {1, 65536, "a whole number from 1 to 65536"};
constexpr Range kFullGpus = {1, 2048, "a whole number from 1 to 2048"};
constexpr Range kSwitch = {0, 1, "0 or 1"};
constexpr Range kHostGbps = {1e-6, 1e6, "0 (no host) or positive (in GB/s, 1e-6 to 1e6)"};

/// A parameter and the values it may have besides its default.
struct Parameter {
  GenericParameter description;
  Range range;
  bool is_whole;
};

std::vector<Parameter> sizes_and_common(std::vector<Parameter> parameters) {
  const std::vector<Parameter> common = {
      {{"gbps", "GB/s of a link, per direction", 25}, kGbps, false},
      {{"latency_us", "latency of a link in us, which holds no sender", 0}, kMicroseconds, false},
      {{"startup_us", "start-up of a transfer in us, which holds its sender", 0},
       kMicroseconds,
       false},
      {{"half", "1: both directions of a link share its bandwidth", 0}, kSwitch, true},
      {{"forward", "1: GPUs forward traffic", 0}, kSwitch, true},
      {{"host_gbps", "GB/s between each GPU and cpu0; 0: no host memory", 0}, kHostGbps, false},
      {{"host_latency_us", "latency of a link to cpu0 in us", 0}, kMicroseconds, false},
  };
  parameters.insert(parameters.end(), common.begin(), common.end());
  return parameters;
}

using Values = std::map<std::string, double>;

/// Adds links of one kind to a machine.
class Wiring {
 public:
  Wiring(Topology& topology, const Values& values) : topology_(topology) {
    link_.kind = kLinkKind;
    link_.link_class = LinkClass::gpu_fabric;
    link_.gbps = values.at("gbps");
    link_.latency_s = values.at("latency_us") * kMicro;
    link_.duplex = values.at("half") != 0 ? Duplex::half : Duplex::full;
    host_link_ = link_;
    host_link_.kind = kHostLinkKind;
    host_link_.link_class = LinkClass::host;
    host_link_.gbps = values.at("host_gbps");
    host_link_.latency_s = values.at("host_latency_us") * kMicro;
  }

  int gpus() const { return gpus_; }

  void add_gpus(int count) {
    topology_.nodes.reserve(static_cast<std::size_t>(count) + 2);
    for (int i = 0; i < count; ++i) add_node("gpu" + std::to_string(i), NodeKind::gpu);
    gpus_ = count;
  }

  NodeId add_node(std::string name, NodeKind kind) {
    Node& node = topology_.nodes.emplace_back();
    node.name = std::move(name);
    node.kind = kind;
    node.numa = 0;
    return static_cast<NodeId>(topology_.nodes.size() - 1);
  }

  void join(NodeId a, NodeId b) { add(link_, a, b); }

  void join_host(NodeId gpu, NodeId cpu) { add(host_link_, gpu, cpu); }

  /// One for all, if there is to be one.
  void add_host() {
    if (host_link_.gbps == 0) return;
    const NodeId cpu = add_node("cpu0", NodeKind::cpu);
    for (NodeId gpu = 0; gpu < gpus_; ++gpu) join_host(gpu, cpu);
  }

 private:
  void add(const Link& like, NodeId a, NodeId b) {
    Link& link = topology_.links.emplace_back(like);
    link.a = a;
    link.b = b;
  }

  Topology& topology_;
  Link link_;
  Link host_link_;
  int gpus_ = 0;
};

void wire_line(Wiring& wiring, const Values&) {
  for (NodeId i = 0; i + 1 < wiring.gpus(); ++i) wiring.join(i, i + 1);
}

void wire_ring(Wiring& wiring, const Values& values) {
  wire_line(wiring, values);
  // Two GPUs are joined by one link, not by two.
  if (wiring.gpus() > 2) wiring.join(wiring.gpus() - 1, 0);
}

void wire_full(Wiring& wiring, const Values&) {
  for (NodeId a = 0; a < wiring.gpus(); ++a) {
    for (NodeId b = a + 1; b < wiring.gpus(); ++b) wiring.join(a, b);
  }
}

void wire_star(Wiring& wiring, const Values&) {
  for (NodeId i = 1; i < wiring.gpus(); ++i) wiring.join(0, i);
}

void wire_switch(Wiring& wiring, const Values&) {
  const NodeId middle = wiring.add_node("nvswitch0", NodeKind::nvswitch);
  for (NodeId i = 0; i < wiring.gpus(); ++i) wiring.join(i, middle);
}

void wire_torus(Wiring& wiring, const Values& values) {
  const std::array<int, 3> size = {static_cast<int>(values.at("x")),
                                   static_cast<int>(values.at("y")),
                                   static_cast<int>(values.at("z"))};
  const std::array<int, 3> stride = {1, size[0], size[0] * size[1]};
  for (NodeId gpu = 0; gpu < wiring.gpus(); ++gpu) {
    for (std::size_t axis = 0; axis < size.size(); ++axis) {
      const int position = gpu / stride[axis] % size[axis];
      const bool is_last = position + 1 == size[axis];
      // The way round closes rings of three or more; shorter ones are joined already.
      if (is_last && size[axis] <= 2) continue;
      wiring.join(gpu, is_last ? gpu - position * stride[axis] : gpu + stride[axis]);
    }
  }
}

void wire_hosts(Wiring& wiring, const Values&) {
  const NodeId first = wiring.gpus();
  for (NodeId gpu = 0; gpu < wiring.gpus(); ++gpu) {
    const NodeId cpu = wiring.add_node("cpu" + std::to_string(gpu), NodeKind::cpu);
    wiring.join_host(gpu, cpu);
    for (NodeId other = first; other < cpu; ++other) wiring.join(other, cpu);
  }
}

/// The common ones, but that every GPU has a host.
std::vector<Parameter> parameters_of_hosts() {
  std::vector<Parameter> parameters =
      sizes_and_common({{{"n", "number of GPUs", 8}, kFullGpus, true}});
  for (Parameter& parameter : parameters) {
    if (parameter.description.name == "gbps") {
      parameter.description.meaning = "GB/s of a link between two CPUs, per direction";
    }
    if (parameter.description.name == "host_gbps") {
      parameter = {{"host_gbps", "GB/s between each GPU and its CPU", 16}, kGbps, false};
    }
    if (parameter.description.name == "host_latency_us") {
      parameter.description.meaning = "latency of a link between GPU and CPU in us";
    }
  }
  return parameters;
}

struct Shape {
  const char* name;
  const char* title;
  std::vector<Parameter> parameters;
  void (*wire)(Wiring&, const Values&);
  bool one_host = true;  ///< cpu0 for all GPUs, where host_gbps asks for it
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = [] {
    const auto n = [](const Range& range) {
      return sizes_and_common({{{"n", "number of GPUs", 8}, range, true}});
    };
    return std::vector<Shape>{
        {"ring", "GPUs in a ring, each linked to the next", n(kGpus), wire_ring},
        {"line", "GPUs in a line, each linked to the next", n(kGpus), wire_line},
        {"full", "GPUs with a link between every pair", n(kFullGpus), wire_full},
        {"star", "GPU 0 in the middle, linked to all others", n(kGpus), wire_star},
        {"switch", "GPUs linked to one switch", n(kGpus), wire_switch},
        {"torus", "GPUs on a torus; GPU number x + X*(y + Y*z)",
         sizes_and_common({{{"x", "GPUs along x", 4}, kGpus, true},
                           {{"y", "GPUs along y", 4}, kGpus, true},
                           {{"z", "GPUs along z", 1}, kGpus, true}}),
         wire_torus},
        {"hosts", "GPUs with a CPU each, and a link between every pair of CPUs",
         parameters_of_hosts(), wire_hosts, false},
    };
  }();
  return all;
}

const Shape& find_shape(const std::string& name) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes()) {
    if (shape.name == name) return shape;
    names.push_back(shape.name);
  }
  throw Error(ErrorKind::usage, "unknown generic machine " + quote(name),
              did_you_mean(name, names));
}

/// Every parameter of the shape with its value. Throws Error{usage}.
Values complete(const Shape& shape, const Values& given) {
  DiagnosticList problems;
  Values values;
  std::vector<std::string> names;
  for (const auto& [description, range, is_whole] : shape.parameters) {
    names.push_back(description.name);
    const auto found = given.find(description.name);
    const double value = found == given.end() ? description.default_value : found->second;
    values[description.name] = value;
    if (value == description.default_value) continue;
    if (range.contains(value) && (!is_whole || std::trunc(value) == value)) continue;
    problems.add({}, fmt::format("'{}' of {} is {}, but must be {}", description.name, shape.name,
                                 value, range.wish));
  }
  for (const auto& [key, unused] : given) {
    if (values.contains(key)) continue;
    problems.add({}, fmt::format("{} has no parameter {}", shape.name, quote(key)),
                 did_you_mean(key, names));
  }
  problems.throw_if_any(ErrorKind::usage);
  return values;
}

int count_gpus(const Shape& shape, const Values& values) {
  if (values.contains("n")) return static_cast<int>(values.at("n"));
  const double gpus = values.at("x") * values.at("y") * values.at("z");
  if (!kGpus.contains(gpus)) {
    throw Error(ErrorKind::usage, fmt::format("{} has {} GPUs, but at most {} are possible",
                                              shape.name, gpus, kGpus.high));
  }
  return static_cast<int>(gpus);
}

/// The profiles where every link has this start-up. Who asks what other bandwidths would do has
/// thousands of machines with the same: those of the latest are kept.
ProfileSet profiles_with(double overhead_s) {
  static std::mutex mutex;
  static double latest_s = -1;
  static ProfileSet latest;
  const std::lock_guard lock(mutex);
  if (latest_s == overhead_s) return latest;
  ProfileSet made = built_in_profiles().profiles;
  for (auto& [unused, profile] : made.edit()) {
    profile.links[kLinkKind].overhead_s = overhead_s;
    // What a hop costs is stated as well, so that there is nothing to choose among protocols.
    if (!profile.protocols.empty()) profile.protocols.resize(1);
    for (Protocol& protocol : profile.protocols) {
      protocol.hop_s.clear();
      protocol.hold_s.clear();
    }
  }
  latest_s = overhead_s;
  latest = made;
  return made;
}

}  // namespace

const std::vector<GenericMachine>& generic_machines() {
  static const std::vector<GenericMachine> machines = [] {
    std::vector<GenericMachine> all;
    for (const Shape& shape : shapes()) {
      GenericMachine& machine = all.emplace_back(GenericMachine{shape.name, shape.title, {}});
      for (const Parameter& parameter : shape.parameters) {
        machine.parameters.push_back(parameter.description);
      }
    }
    return all;
  }();
  return machines;
}

Topology generic_topology(const std::string& name,
                          const std::map<std::string, double>& parameters) {
  const Shape& shape = find_shape(name);
  const Values values = complete(shape, parameters);
  Topology topology;
  topology.name = name;
  for (const auto& [key, value] : parameters) {
    topology.name +=
        fmt::format("{}{}={}", &key == &parameters.begin()->first ? ':' : ',', key, value);
  }
  topology.title = shape.title;
  topology.gpus_forward = values.at("forward") != 0;
  topology.profiles = profiles_with(values.at("startup_us") * kMicro);
  Wiring wiring(topology, values);
  wiring.add_gpus(count_gpus(shape, values));
  shape.wire(wiring, values);
  if (shape.one_host) wiring.add_host();
  return topology;
}

}  // namespace espalier
