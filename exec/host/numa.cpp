// SPDX-License-Identifier: Apache-2.0
#include "exec/host/numa.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/words.h"
#include "ir/print.h"

// Three calls of Linux, made directly: libnuma would be one more library to have, for these. Each
// may be refused (ENOSYS, EPERM, EINVAL: an old kernel, a container, a node outside of the
// process's set), and then everything works, only slower.

namespace espalier {
namespace {

constexpr int kBits = std::numeric_limits<unsigned long>::digits;
constexpr std::size_t kMaxProcessors = 8192;  // what Linux can be built for

using Bits = std::vector<unsigned long>;

void set_bit(Bits& bits, int number) {
  const auto word = static_cast<std::size_t>(number / kBits);
  if (word >= bits.size()) bits.resize(word + 1, 0);
  bits[word] |= 1UL << (number % kBits);
}

/// The processors of the calling thread; empty when that is not known.
Bits affinity() {
  Bits bits(kMaxProcessors / kBits, 0);
  const long bytes =
      syscall(SYS_sched_getaffinity, 0, bits.size() * sizeof(unsigned long), bits.data());
  if (bytes <= 0) return {};
  return bits;
}

bool set_affinity(const Bits& bits) {
  return syscall(SYS_sched_setaffinity, 0, bits.size() * sizeof(unsigned long), bits.data()) == 0;
}

std::optional<int> to_number(std::string_view text) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// "0-3,8" as Linux writes it, as far as `allowed` has it; empty when it is something else.
std::vector<int> read_list(std::string_view text, const std::vector<int>& allowed) {
  std::vector<int> numbers;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view range = text.substr(begin, end - begin);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const auto first = to_number(range.substr(0, dash));
    const auto last = dash == range.size() ? first : to_number(range.substr(dash + 1));
    if (!first || !last) return {};
    for (const int one : allowed) {
      if (one >= *first && one <= *last) numbers.push_back(one);
    }
    begin = end + 1;
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// By node: how many of `count` things it gets, in proportion to its processors.
std::vector<int> divide(int count, const std::vector<NumaNode>& nodes) {
  std::size_t all = 0;
  for (const NumaNode& node : nodes) all += node.processors.size();
  std::vector<int> parts;
  std::size_t until = 0;
  int given = 0;
  for (const NumaNode& node : nodes) {
    until += node.processors.size();
    const auto end = static_cast<int>((static_cast<std::size_t>(count) * until + all / 2) / all);
    parts.push_back(end - given);
    given = end;
  }
  return parts;
}

/// "r0-r3, h0".
std::string places_on(const Program& program, const NumaPlan& plan, int node) {
  const auto is_here = [&](PlaceId place) {
    return plan.node_of_place[static_cast<std::size_t>(place)] == node;
  };
  std::vector<std::string> runs;
  for (PlaceId place = 0; place < program.places(); ++place) {
    if (!is_here(place)) continue;
    const PlaceId first = place;
    const PlaceKind kind = place_number(program, first).kind;
    while (place + 1 < program.places() && is_here(place + 1) &&
           place_number(program, place + 1).kind == kind) {
      ++place;
    }
    const std::string name = place_name(program, first);
    runs.push_back(place == first ? name : name + "-" + place_name(program, place));
  }
  return runs.empty() ? "nothing" : join(runs, ", ");
}

}  // namespace

std::vector<int> allowed_processors() {
  const Bits bits = affinity();
  std::vector<int> allowed;
  for (std::size_t i = 0; i < bits.size() * kBits; ++i) {
    if ((bits[i / kBits] >> (i % kBits) & 1) != 0) allowed.push_back(static_cast<int>(i));
  }
  return allowed;
}

std::vector<NumaNode> numa_nodes(const std::vector<int>& allowed,
                                 const std::filesystem::path& folder) {
  std::vector<NumaNode> nodes;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename();
    const auto number = name.rfind("node", 0) == 0 ? to_number(name.substr(4)) : std::nullopt;
    if (!number) continue;
    std::ifstream file(entry.path() / "cpulist");
    std::string list;
    if (!(file >> list)) continue;  // a node of memory alone has an empty one
    std::vector<int> processors = read_list(list, allowed);
    if (!processors.empty()) nodes.push_back({*number, std::move(processors)});
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

NumaPlan spread_over_nodes(const Program& program, std::vector<NumaNode> nodes, int threads) {
  const int used = std::min({static_cast<int>(nodes.size()), threads, program.ranks()});
  if (used < 2) return {};
  nodes.resize(static_cast<std::size_t>(used));
  NumaPlan plan{.nodes = std::move(nodes), .node_of_place = {}, .threads = {}};
  for (const int count : {program.ranks(), program.hosts, program.relays}) {
    const std::vector<int> parts = divide(count, plan.nodes);
    for (int node = 0; node < used; ++node) {
      plan.node_of_place.insert(plan.node_of_place.end(),
                                static_cast<std::size_t>(parts[static_cast<std::size_t>(node)]),
                                node);
    }
  }
  plan.threads = divide(threads - used, plan.nodes);
  for (int& count : plan.threads) ++count;
  return plan;
}

PinnedThread::PinnedThread(const std::vector<int>& processors) {
  if (processors.empty()) return;
  Bits bits;
  for (const int processor : processors) set_bit(bits, processor);
  before_ = affinity();
  is_as_wanted_ = !before_.empty() && set_affinity(bits);
  if (!is_as_wanted_) before_.clear();
}

PinnedThread::~PinnedThread() {
  if (!before_.empty()) set_affinity(before_);
}

bool prefer_node(void* memory, std::size_t bytes, int number) {
  Bits bits;
  set_bit(bits, number);
  // Linux reads one bit less than it is told of.
  const unsigned long count = bits.size() * kBits + 1;
  return syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, bits.data(), count, 0) == 0;
}

std::vector<std::string> describe(const Program& program, const NumaPlan& plan,
                                  const std::vector<int>& threads) {
  std::vector<std::string> lines;
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    lines.push_back(fmt::format("NUMA node {}: {}; {} thread{}", plan.nodes[node].number,
                                places_on(program, plan, static_cast<int>(node)), threads[node],
                                threads[node] == 1 ? "" : "s"));
  }
  return lines;
}

}  // namespace espalier
