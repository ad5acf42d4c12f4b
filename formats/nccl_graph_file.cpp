// SPDX-License-Identifier: Apache-2.0
#include "formats/nccl_graph_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "core/words.h"
#include "formats/xml_text.h"

namespace espalier {
namespace {

constexpr std::array<std::string_view, 6> kPatterns = {
    "balanced tree", "split tree", "tree", "ring", "nvls", "collnet direct"};
constexpr std::array<std::string_view, 12> kTypes = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
/// The byte of a device number that holds the system's.
constexpr int kSystemShift = 56;

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : xml_(text, file), file_(file) {}

  NcclGraphs read() {
    const pugi::xml_node root = xml_.root();
    if (std::string_view(root.name()) != "graphs") {
      xml_.problem(root, fmt::format("the top element is {}, not <graphs>", element_name(root)));
      xml_.problems().throw_if_any();
    }
    const std::string version = attribute(root, "version");
    if (version != "1") {
      xml_.problem(
          root, version.empty()
                    ? "<graphs> has no 'version'"
                    : fmt::format("the version of <graphs> is {}, but must be 1", quote(version)));
    }
    for (const pugi::xml_node node : root.children()) {
      if (node.type() != pugi::node_element) continue;
      std::string_view(node.name()) == "graph" ? read_graph(node) : unknown(node);
    }
    if (found_.graphs.empty()) xml_.problem(root, "the file has no <graph>");
    xml_.problems().throw_if_any();
    return std::move(found_);
  }

 private:
  void unknown(pugi::xml_node node) {
    found_.notes.push_back({fmt::format("{}:{}: {} in {} is not read", file_, xml_.where(node).line,
                                        element_name(node), element_name(node.parent()))});
  }

  /// The least that may be is as good as any where there is a problem.
  int need_whole(pugi::xml_node node, const char* name, const XmlRange& range) {
    return xml_.need_whole(node, name, range).value_or(static_cast<int>(range.low));
  }

  void read_graph(pugi::xml_node node) {
    NcclFileGraph graph;
    graph.line = xml_.where(node).line;
    graph.id = need_whole(node, "id", {0, 100});
    graph.pattern = need_whole(node, "pattern", {1, static_cast<double>(kPatterns.size())});
    const int channels = need_whole(node, "nchannels", {0, kMaxNcclChannels});
    graph.gbps_intra = xml_.need_number(node, "speedintra", {0, 1e6}).value_or(0);
    graph.gbps_inter = xml_.need_number(node, "speedinter", {0, 1e6}).value_or(0);
    graph.latency_inter_us = xml_.number(node, "latencyinter", {0, 1e9}, 0);
    graph.crosses_nics = xml_.number(node, "crossnic", {0, 2}, 0) != 0;
    graph.has_same_channels = xml_.number(node, "samechannels", {0, 1}, 0) != 0;
    graph.type_intra = read_type(node, "typeintra");
    graph.type_inter = read_type(node, "typeinter");
    if (!ids_.insert(graph.id).second && !attribute(node, "id").empty()) {
      xml_.problem(node, fmt::format("graph {} is given twice", graph.id));
    }
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) == "channel") {
        read_channel(child, graph);
      } else {
        unknown(child);
      }
    }
    if (graph.channels.size() != static_cast<std::size_t>(channels) &&
        !attribute(node, "nchannels").empty()) {
      xml_.problem(node, fmt::format("'nchannels' of <graph> is {}, but it has {}", channels,
                                     counted(graph.channels.size(), "channel")));
    }
    found_.graphs.push_back(std::move(graph));
  }

  std::string read_type(pugi::xml_node node, const char* name) {
    const std::string type = xml_.need(node, name).value_or("");
    if (!type.empty() && std::ranges::count(kTypes, type) == 0) {
      found_.notes.push_back(
          {fmt::format("{}:{}: '{}' is {}, which is no class of paths that is known", file_,
                       xml_.where(node).line, name, quote(type))});
    }
    return type;
  }

  void read_channel(pugi::xml_node node, NcclFileGraph& graph) {
    NcclFileGraph::Channel channel;
    channel.line = xml_.where(node).line;
    std::map<std::pair<std::uint64_t, std::uint64_t>, int> lines;
    std::set<int> ranks;
    for (const pugi::xml_node child : node.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name != "gpu" && name != "net") {
        unknown(child);
        continue;
      }
      const auto device = read_device(child, name == "net");
      if (!device) continue;
      const int line = xml_.where(child).line;
      if (!device->is_net) {
        const auto [first, is_new] = lines.try_emplace({device->system, device->dev}, line);
        if (!is_new) {
          xml_.problem(child, fmt::format("gpu {} is in the channel twice, first on line {}",
                                          attribute(child, "dev"), first->second));
        }
        if (device->rank >= 0 && !ranks.insert(device->rank).second) {
          xml_.problem(child, fmt::format("rank {} is in the channel twice", device->rank));
        }
      }
      channel.devices.push_back(*device);
    }
    for (std::size_t i = 1; i + 1 < channel.devices.size(); ++i) {
      if (!channel.devices[i].is_net) continue;
      xml_.problem(node, "a <net> of the channel stands between GPUs, but belongs at its ends");
      break;
    }
    if (lines.empty()) xml_.problem(node, "the channel has no <gpu>");
    graph.channels.push_back(std::move(channel));
  }

  /// Numbers of devices are hexadecimal, with or without 0x; older files are decimal, but then
  /// have no number above 9 without saying so.
  std::optional<NcclFileGraph::Device> read_device(pugi::xml_node node, bool is_net) {
    const auto text = xml_.need(node, "dev");
    if (!text) return std::nullopt;
    std::string_view digits = *text;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      xml_.problem(node,
                   fmt::format("'dev' of {} must be a hexadecimal number, not {}",
                               element_name(node), quote(*text)),
                   "write it as 0x7");
      return std::nullopt;
    }
    NcclFileGraph::Device device;
    device.is_net = is_net;
    device.system = is_net ? 0 : value >> kSystemShift;
    device.dev = is_net ? value : value & ((std::uint64_t{1} << kSystemShift) - 1);
    if (!is_net && !attribute(node, "rank").empty())
      device.rank = need_whole(node, "rank", {0, 1e6});
    return device;
  }

  XmlText xml_;
  std::string file_;
  std::set<int> ids_;
  NcclGraphs found_;
};

}  // namespace

std::vector<NcclFileGraph::Device> NcclFileGraph::Channel::gpus() const {
  std::vector<Device> found;
  std::ranges::copy_if(devices, std::back_inserter(found),
                       [](const Device& device) { return !device.is_net; });
  return found;
}

std::string_view pattern_name(int pattern) {
  return kPatterns.at(static_cast<std::size_t>(pattern) - 1);
}

NcclGraphs read_nccl_graphs(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace espalier
