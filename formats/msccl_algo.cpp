// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_algo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/words.h"
#include "formats/xml_text.h"
#include "topologies/profile.h"

namespace espalier {
namespace {

using Kind = MscclAlgo::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 9> kKinds{{{"s", Kind::s},
                                                                   {"r", Kind::r},
                                                                   {"rcs", Kind::rcs},
                                                                   {"rrs", Kind::rrs},
                                                                   {"rrc", Kind::rrc},
                                                                   {"rrcs", Kind::rrcs},
                                                                   {"cpy", Kind::cpy},
                                                                   {"re", Kind::re},
                                                                   {"nop", Kind::nop}}};

constexpr int kMaxGpus = 65536;
constexpr int kMaxChannels = 4096;
constexpr double kMaxSize = 9e18;
constexpr std::size_t kMostOfName = 63;                   ///< the runtime keeps so much
constexpr std::int64_t kAnySize = std::int64_t{1} << 40;  ///< of messages: readers demand a figure

bool scatters(std::string_view label) {
  return label == "reduce_scatter" || label == "reducescatter";
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : xml_(text, file) {}

  MscclAlgo read(std::vector<ForeignNote>& notes) {
    const pugi::xml_node root = xml_.root();
    if (std::string_view(root.name()) != "algo") {
      xml_.problem(root,
                   fmt::format("the element at the top is {}, not <algo>", element_name(root)));
    }
    xml_.problems().throw_if_any();
    read_header(root);
    xml_.problems().throw_if_any();
    for (const pugi::xml_node gpu : root.children()) {
      if (is_element(gpu, "gpu")) read_gpu(gpu);
    }
    require_all_gpus(root);
    xml_.problems().throw_if_any();
    check_connections();
    check_dependencies();
    xml_.problems().throw_if_any();
    for (const auto& [what, count] : ignored_) {
      notes.push_back({fmt::format("{} element{} {} left out: MSCCL does not know {}", count,
                                   count == 1 ? "" : "s", what, count == 1 ? "it" : "them")});
    }
    if (protocol_written_ != algo_.protocol) {
      notes.push_back({fmt::format("'proto' of <algo> is {}, read as {}: runtimes know Simple, LL "
                                   "and LL128 in this spelling only, and refuse the file",
                                   quote(protocol_written_), algo_.protocol),
                       ForeignNote::Severity::warning});
    }
    return std::move(algo_);
  }

 private:
  /// Notes elements of other names.
  bool is_element(pugi::xml_node node, std::string_view name) {
    if (node.type() != pugi::node_element) {
      if (node.type() != pugi::node_comment && node.type() != pugi::node_pi) {
        xml_.problem(node.parent(),
                     fmt::format("there is text inside {}", element_name(node.parent())));
      }
      return false;
    }
    if (node.name() == name) return true;
    ++ignored_[fmt::format("{} in {}", element_name(node), element_name(node.parent()))];
    return false;
  }

  std::optional<int> whole(pugi::xml_node node, const char* name, double low, double high) {
    const auto value = xml_.need_number(node, name, {low, high});
    if (!value) return std::nullopt;
    if (*value == static_cast<double>(static_cast<int>(*value))) return static_cast<int>(*value);
    xml_.problem(node, fmt::format("'{}' of {} must be a whole number, not {}", name,
                                   element_name(node), attribute(node, name)));
    return std::nullopt;
  }

  int whole_or(pugi::xml_node node, const char* name, double low, double high, int absent) {
    if (attribute(node, name).empty()) return absent;
    return whole(node, name, low, high).value_or(absent);
  }

  void read_header(pugi::xml_node root) {
    algo_.line = xml_.where(root).line;
    algo_.name = attribute(root, "name");
    algo_.protocol = xml_.need(root, "proto").value_or("Simple");
    protocol_written_ = algo_.protocol;
    const auto known = {"Simple", "LL", "LL128"};
    const auto same = std::ranges::find_if(
        known, [&](const char* one) { return lower_case(one) == lower_case(algo_.protocol); });
    if (same == known.end()) {
      xml_.problem(root, fmt::format("'proto' of <algo> is {}", quote(algo_.protocol)),
                   "Simple, LL or LL128");
    } else {
      algo_.protocol = *same;
    }
    algo_.label = xml_.need(root, "coll").value_or("");
    algo_.channels = whole(root, "nchannels", 1, kMaxChannels).value_or(1);
    algo_.chunks = whole(root, "nchunksperloop", 1, MscclLimits::kChunks).value_or(1);
    const int ranks = whole(root, "ngpus", 1, kMaxGpus).value_or(0);
    const auto gpus = root.children("gpu");
    const auto listed = std::distance(gpus.begin(), gpus.end());
    if (ranks > 0 && listed != ranks) {
      xml_.problem(root, fmt::format("'ngpus' of <algo> is {}, but there {} {} <gpu>", ranks,
                                     listed == 1 ? "is" : "are", listed));
    }
    algo_.in_place = whole(root, "inplace", 0, 1).value_or(0) == 1;
    algo_.out_of_place = whole_or(root, "outofplace", 0, 1, algo_.in_place ? 0 : 1) == 1;
    if (!algo_.in_place && !algo_.out_of_place) {
      xml_.problem(root, "'inplace' and 'outofplace' of <algo> are both 0: no call can use it");
    }
    const double least = xml_.number(root, "minBytes", {0, kMaxSize}, 0);
    const double most = xml_.number(root, "maxBytes", {0, kMaxSize}, 0);
    algo_.min_bytes = static_cast<std::int64_t>(least);
    // Files that were never meant to be chosen by size have a 0 here.
    algo_.max_bytes = most > 0 ? static_cast<std::int64_t>(most) : -1;
    if (most > 0 && most < least) {
      xml_.problem(root, fmt::format("'maxBytes' of <algo> is {}, less than 'minBytes', {}",
                                     algo_.max_bytes, algo_.min_bytes));
    }
    if (ranks > 0) algo_.gpus.resize(static_cast<std::size_t>(listed));
  }

  /// Whether the runtime takes a buffer of so many chunks (0: not stated).
  void check_chunks(pugi::xml_node node, const char* name, int gpu, bool is_block) {
    const auto stated = whole(node, name, 0, MscclLimits::kChunks);
    if (!stated || *stated == 0) return;
    const std::int64_t all = is_block ? std::int64_t{*stated} * algo_.ranks() : *stated;
    if (all == algo_.chunks) return;
    xml_.problem(
        node,
        fmt::format("gpu {}: '{}' is {}{}, but 'nchunksperloop' of <algo> is {}", gpu, name,
                    *stated, is_block ? fmt::format(", for {} ranks {}", algo_.ranks(), all) : "",
                    algo_.chunks),
        "both buffers of a call have as many chunks, or 0");
  }

  void read_gpu(pugi::xml_node node) {
    const auto id = whole(node, "id", 0, algo_.ranks() - 1);
    if (!id) return;
    MscclAlgo::Gpu& gpu = algo_.gpus[static_cast<std::size_t>(*id)];
    if (gpu.line > 0) {
      xml_.problem(node, fmt::format("gpu {} is given twice, first on line {}", *id, gpu.line));
      return;
    }
    gpu.line = xml_.where(node).line;
    const bool is_scatter = scatters(algo_.label);
    check_chunks(node, "i_chunks", *id, algo_.label == "allgather");
    check_chunks(node, "o_chunks", *id, is_scatter);
    has_input_ = attribute(node, "i_chunks") != "0";
    has_output_ = attribute(node, "o_chunks") != "0";
    gpu.scratch = whole(node, "s_chunks", 0, MscclLimits::kChunks).value_or(0);
    std::vector<pugi::xml_node> nodes;
    for (const pugi::xml_node block : node.children()) {
      if (is_element(block, "tb")) nodes.push_back(block);
    }
    gpu.blocks.resize(nodes.size());
    for (const pugi::xml_node block : nodes) read_block(block, *id);
  }

  void read_block(pugi::xml_node node, int gpu) {
    std::vector<MscclAlgo::Block>& blocks = algo_.gpus[static_cast<std::size_t>(gpu)].blocks;
    const auto id = whole(node, "id", 0, 1e6);
    if (!id) return;
    const std::string name = fmt::format("gpu {}, thread block {}", gpu, *id);
    if (*id >= static_cast<int>(blocks.size())) {
      xml_.problem(node, fmt::format("{}: the {} of this GPU must be numbered from 0 without gaps",
                                     name, blocks.size()));
      return;
    }
    MscclAlgo::Block& block = blocks[static_cast<std::size_t>(*id)];
    if (block.line > 0) {
      xml_.problem(node, fmt::format("{} is given twice, first on line {}", name, block.line));
      return;
    }
    block.line = xml_.where(node).line;
    block.send = peer(node, "send", "send to", gpu, name);
    block.recv = peer(node, "recv", "receive from", gpu, name);
    block.channel = whole(node, "chan", -1, 1e6).value_or(0);
    if (block.channel < 0 || block.channel >= algo_.channels) {
      xml_.problem(node,
                   fmt::format("{}: channel {} is none of the {} of <algo>", name, block.channel,
                               algo_.channels),
                   "thread blocks without peers have one as well");
    }
    for (const pugi::xml_node step : node.children()) {
      if (is_element(step, "step")) read_step(step, name, gpu, block);
    }
  }

  int peer(pugi::xml_node node, const char* attribute_name, const char* direction, int gpu,
           const std::string& name) {
    const int rank = whole(node, attribute_name, -1e6, 1e6).value_or(-1);
    if (rank == gpu) {
      xml_.problem(node, fmt::format("{}: the peer to {} is the GPU itself", name, direction));
    } else if (rank < -1 || rank >= algo_.ranks()) {
      xml_.problem(node, fmt::format("{}: the peer to {}, {}, is none of the {} ranks", name,
                                     direction, rank, algo_.ranks()));
    }
    return rank;
  }

  void read_step(pugi::xml_node node, const std::string& block_name, int gpu,
                 MscclAlgo::Block& block) {
    const int number = static_cast<int>(block.steps.size());
    const std::string name = fmt::format("{}, step {}", block_name, number);
    const auto given = whole(node, "s", 0, 1e9);
    if (given && *given != number) {
      xml_.problem(node, fmt::format("{}: its number is {}; steps are numbered from 0 in order",
                                     name, *given));
    }
    MscclAlgo::Step step;
    step.line = xml_.where(node).line;
    const std::string type = xml_.need(node, "type").value_or("nop");
    const auto kind = std::ranges::find(kKinds, type, &std::pair<std::string_view, Kind>::first);
    if (kind == kKinds.end()) {
      xml_.problem(node, fmt::format("{}: there is no type {}", name, quote(type)),
                   type == "ra" ? "runtimes read it but do not carry it out"
                                : "s, r, rcs, rrs, rrc, rrcs, cpy, re or nop");
    } else {
      step.kind = kind->second;
    }
    const bool moves = step.kind != Kind::nop;
    step.count = whole(node, "cnt", 0, MscclLimits::kChunksOfStep).value_or(0);
    if (moves && step.count == 0 && kind != kKinds.end()) {
      xml_.problem(node, fmt::format("{}: it moves no chunk ('cnt' is 0)", name));
    }
    // The other operand of a step that sends or receives describes the peer's; it means nothing.
    if (reads_source(step.kind)) step.src = reference(node, "src", step.count, gpu, name);
    if (stores(step.kind)) step.dst = reference(node, "dst", step.count, gpu, name);
    step.block = whole(node, "depid", -1, 1e6).value_or(-1);
    step.step = whole(node, "deps", -1, 1e6).value_or(-1);
    step.awaited = whole(node, "hasdep", 0, 1).value_or(1) == 1;
    require_peer(node, name, receives(step.kind), block.recv, "receives", "recv");
    require_peer(node, name, sends(step.kind), block.send, "sends", "send");
    block.steps.push_back(step);
  }

  void require_peer(pugi::xml_node node, const std::string& name, bool uses, int peer,
                    const char* does, const char* attribute_name) {
    if (!uses || peer != -1) return;
    xml_.problem(node, fmt::format("{}: it {}, but '{}' of its thread block is -1", name, does,
                                   attribute_name));
  }

  /// Reads srcbuf and srcoff, or dstbuf and dstoff.
  MscclAlgo::Reference reference(pugi::xml_node node, const std::string& which, int count, int gpu,
                                 const std::string& name) {
    const std::string buffer = xml_.need(node, (which + "buf").c_str()).value_or("i");
    if (buffer != "i" && buffer != "o" && buffer != "s") {
      xml_.problem(node,
                   fmt::format("{}: there is no buffer {} ({}buf)", name, quote(buffer), which),
                   "i (input), o (output) or s (scratch)");
      return {};
    }
    const int offset = whole(node, (which + "off").c_str(), -1e6, 1e6).value_or(0);
    const bool is_block =
        (buffer == "i" && algo_.label == "allgather") || (buffer == "o" && scatters(algo_.label));
    const int size = buffer == "s" ? algo_.gpus[static_cast<std::size_t>(gpu)].scratch
                     : is_block    ? algo_.chunks / algo_.ranks()
                                   : algo_.chunks;
    if ((buffer == "i" && !has_input_) || (buffer == "o" && !has_output_)) {
      xml_.problem(
          node,
          fmt::format("{}: {}buf is {}, of which this GPU has no chunks", name, which, buffer),
          fmt::format("{}_chunks of <gpu>", buffer));
    } else if (offset < 0) {
      xml_.problem(node, fmt::format("{}: the offset {} ({}off) is negative", name, offset, which));
    } else if (offset + count > size) {
      xml_.problem(node, fmt::format("{}: chunks {} to {} of {} ({}off) are beyond the end: it has "
                                     "{}",
                                     name, offset, offset + count - 1, buffer, which, size));
    }
    return {buffer.front(), offset};
  }

  void require_all_gpus(pugi::xml_node root) {
    for (std::size_t gpu = 0; gpu < algo_.gpus.size(); ++gpu) {
      if (algo_.gpus[gpu].line == 0 && xml_.problems().empty()) {
        xml_.problem(root, fmt::format("there is no gpu {}", gpu));
      }
    }
  }

  void problem(int line, const std::string& message, const std::string& suggestion = {}) {
    Location where = xml_.where(xml_.root());
    where.line = line;
    xml_.problems().add(where, message, suggestion);
  }

  /// One thread block sends over a connection, and one receives.
  void check_connections() {
    for (int gpu = 0; gpu < algo_.ranks(); ++gpu) {
      std::map<std::pair<int, int>, int> senders, receivers;
      const auto& blocks = algo_.gpus[static_cast<std::size_t>(gpu)].blocks;
      for (int id = 0; id < static_cast<int>(blocks.size()); ++id) {
        const MscclAlgo::Block& block = blocks[static_cast<std::size_t>(id)];
        const auto take = [&](auto& taken, int peer, const char* does) {
          if (peer == -1) return;
          const auto [first, is_new] = taken.try_emplace({peer, block.channel}, id);
          if (is_new) return;
          problem(block.line,
                  fmt::format("gpu {}, thread block {} {} gpu {} on channel {}, as thread block {} "
                              "does",
                              gpu, id, does, peer, block.channel, first->second),
                  "one thread block of a GPU serves a connection: use another channel");
        };
        take(senders, block.send, "sends to");
        take(receivers, block.recv, "receives from");
      }
    }
  }

  void check_dependencies() {
    for (int gpu = 0; gpu < algo_.ranks(); ++gpu) {
      const auto& blocks = algo_.gpus[static_cast<std::size_t>(gpu)].blocks;
      for (int id = 0; id < static_cast<int>(blocks.size()); ++id) {
        const auto& steps = blocks[static_cast<std::size_t>(id)].steps;
        for (int number = 0; number < static_cast<int>(steps.size()); ++number) {
          const MscclAlgo::Step& step = steps[static_cast<std::size_t>(number)];
          if (step.block == -1) continue;
          const bool is_there =
              step.block < static_cast<int>(blocks.size()) && step.step >= 0 &&
              step.step <
                  static_cast<int>(blocks[static_cast<std::size_t>(step.block)].steps.size());
          if (is_there) continue;
          problem(step.line, fmt::format("{}: it waits for thread block {}, step {}, which is not "
                                         "there",
                                         step_name(algo_, gpu, id, number), step.block, step.step));
        }
      }
    }
  }

  XmlText xml_;
  MscclAlgo algo_;
  bool has_input_ = true;  ///< of the GPU that is being read
  bool has_output_ = true;
  std::string protocol_written_;
  std::map<std::string, int> ignored_;  ///< elements, by what and where
};

/// For names: what XML does not take as it is.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kMostOfName)) {
    const bool is_plain = c > ' ' && c < 127 && c != '"' && c != '<' && c != '>' && c != '&';
    result += is_plain || c == ' ' ? c : '_';
  }
  return result;
}

/// Of input and output, as the runtime's reader wants them: in place, one of them is 0.
std::pair<int, int> chunks_of(const MscclAlgo& algo) {
  const bool is_gather = algo.label == "allgather";
  const bool is_scatter = scatters(algo.label);
  if (algo.in_place) return is_gather ? std::pair(0, algo.chunks) : std::pair(algo.chunks, 0);
  return {is_gather ? algo.chunks / algo.ranks() : algo.chunks,
          is_scatter ? algo.chunks / algo.ranks() : algo.chunks};
}

std::string print_step(std::size_t number, const MscclAlgo::Step& step) {
  const bool moves = step.kind != Kind::nop;
  return fmt::format(
      "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
      "cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
      number, to_string(step.kind), step.src.buffer, moves ? step.src.offset : -1,
      moves ? step.dst.buffer : 'o', moves ? step.dst.offset : -1, step.count, step.block,
      step.step, step.awaited ? 1 : 0);
}

}  // namespace

std::string_view to_string(Kind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<std::string_view, Kind>::second)->first;
}

std::string step_name(const MscclAlgo& algo, int gpu, int block, int step) {
  const auto& steps =
      algo.gpus[static_cast<std::size_t>(gpu)].blocks[static_cast<std::size_t>(block)].steps;
  return fmt::format("gpu {}, thread block {}, step {} ({})", gpu, block, step,
                     to_string(steps[static_cast<std::size_t>(step)].kind));
}

MscclAlgo parse_msccl(std::string_view text, const std::string& file,
                      std::vector<ForeignNote>& notes) {
  return Reader(text, file).read(notes);
}

std::string print_msccl(const MscclAlgo& algo) {
  std::string text = fmt::format(
      "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" "
      "coll=\"{}\" inplace=\"{}\" outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\">\n",
      escaped(algo.name), algo.protocol, algo.channels, algo.chunks, algo.ranks(), algo.label,
      algo.in_place ? 1 : 0, algo.out_of_place ? 1 : 0, algo.min_bytes,
      algo.max_bytes < 0 ? kAnySize : algo.max_bytes);
  for (int gpu = 0; gpu < algo.ranks(); ++gpu) {
    const MscclAlgo::Gpu& one = algo.gpus[static_cast<std::size_t>(gpu)];
    const auto [input, output] = chunks_of(algo);
    text += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", gpu,
                        input, output, one.scratch);
    for (std::size_t id = 0; id < one.blocks.size(); ++id) {
      const MscclAlgo::Block& block = one.blocks[id];
      text += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n", id,
                          block.send, block.recv, block.channel);
      for (std::size_t number = 0; number < block.steps.size(); ++number) {
        text += print_step(number, block.steps[number]);
      }
      text += "    </tb>\n";
    }
    text += "  </gpu>\n";
  }
  return text + "</algo>\n";
}

}  // namespace espalier
