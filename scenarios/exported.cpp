// SPDX-License-Identifier: Apache-2.0
#include "scenarios/exported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "core/words.h"
#include "formats/machine.h"
#include "ir/instances.h"
#include "ir/print.h"
#include "scenarios/buildable.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

constexpr int kMostLanes = 65536;

bool can_write(const Format& format, Exported what) {
  return what == Exported::machine ? format.write_machine != nullptr
                                   : format.write_program != nullptr;
}

/// "esp" or "yaml".
std::string_view own_format(Exported what) { return what == Exported::machine ? "yaml" : "esp"; }

/// That and the others that such a thing can be written in.
std::vector<std::string> formats_for(Exported what) {
  std::vector<std::string> names{std::string(own_format(what))};
  for (const Format* format : all_formats()) {
    if (can_write(*format, what)) names.push_back(format->name);
  }
  return names;
}

const Format* format_named(const std::string& name, Exported what) {
  const auto known = std::ranges::find(all_formats(), name, &Format::name);
  return known != all_formats().end() && can_write(**known, what) ? *known : nullptr;
}

const Format* format_by_ending(const std::string& path, Exported what) {
  static const std::array<std::string_view, 3> kFirst{"msccl-xml", "mscclpp-json", "nccl-topology"};
  const Format* found = nullptr;
  for (const Format* format : all_formats()) {
    if (!can_write(*format, what) || !path.ends_with(format->extension)) continue;
    const bool is_first = std::ranges::count(kFirst, format->name) > 0;
    if (found == nullptr || is_first) found = format;
  }
  return found;
}

}  // namespace

const Format* format_to_write(const std::string& path, const std::string& name, Exported what) {
  const std::string own(own_format(what));
  if (name.empty() ? path.ends_with("." + own) : name == own) return nullptr;
  const Format* const format =
      name.empty() ? format_by_ending(path, what) : format_named(name, what);
  if (format != nullptr) return format;
  const std::string things = what == Exported::machine ? "machines" : "programs";
  throw Error(ErrorKind::usage,
              name.empty() ? fmt::format("{} does not say in which format {} are to be written",
                                         quote(path), things)
                           : fmt::format("{} can't be written as {}", things, quote(name)),
              "one of: " + join(formats_for(what), ", "));
}

Written write_for_machine(const Program& program, const ExportTarget& target,
                          const Machine& machine, const WritingOptions& options) {
  if (target.format == nullptr) {
    return {print_program(instances(program, std::max(target.instances, 1))), {}};
  }
  int lanes = 1;
  for (const Op& op : program.ops) lanes = std::max(lanes, op.lane + 1);
  const int blocks = machine.router->profile().blocks;
  const int most = target.format->is_repeated_by_reader ? 1 : kMostInstances;
  int count = target.instances > 0 ? target.instances : std::clamp(blocks / lanes, 1, most);
  const auto has_room = [&] {
    return program.contract.units <= kMaxUnits / count && lanes <= kMostLanes / count;
  };
  if (target.instances == 0 && target.format->needs_whole_chunks)
    count = std::bit_floor(static_cast<unsigned>(count));
  while (count > 1 && !has_room()) count /= 2;
  for (;; count /= 2) {
    try {
      Written written = target.format->write_program(instances(program, count), options);
      if (count > 1) {
        written.notes.insert(
            written.notes.begin(),
            fmt::format("{} instances side by side, of {} each: a GPU has {} blocks, and a lane is "
                        "one there; --instances 1 writes one",
                        count, counted(static_cast<std::size_t>(lanes), "lane"), blocks));
      }
      return written;
    } catch (const Error& error) {
      // Fewer may have room.
      if (error.kind() != ErrorKind::unsupported || target.instances > 0 || count == 1) throw;
    }
  }
}

void describe_gpus(const Topology& machine, const std::vector<NodeId>& gpus,
                   WritingOptions& options) {
  // Hosts that the GPU fabric joins are one: their GPUs read each other.
  std::map<int, int> joined;
  const std::function<int(int)> first_of = [&](int host) {
    const auto other = joined.find(host);
    return other == joined.end() ? host : first_of(other->second);
  };
  std::map<NodeId, int> host_at_switch;
  for (const Link& link : machine.links) {
    if (link.link_class != LinkClass::gpu_fabric) continue;
    for (const auto& [end, other] : {std::pair(link.a, link.b), {link.b, link.a}}) {
      if (machine.node(end).kind != NodeKind::gpu) continue;
      const int host = first_of(machine.node(end).host);
      const bool is_gpu = machine.node(other).kind == NodeKind::gpu;
      const int there = is_gpu ? first_of(machine.node(other).host)
                               : first_of(host_at_switch.try_emplace(other, host).first->second);
      if (there != host) joined[std::max(there, host)] = std::min(there, host);
    }
  }
  options.host_of_rank.clear();
  for (const NodeId gpu : gpus) {
    options.host_of_rank.push_back(first_of(machine.node(gpu).host));
  }
  options.for_amd = machine.node(gpus.front()).model.starts_with("mi");
  options.multiprocessors = std::numeric_limits<int>::max();
  for (const NodeId gpu : gpus) {
    const int count = multiprocessors_of(machine.node(gpu).model);
    options.multiprocessors = std::min(options.multiprocessors, count);
  }
}

WritingOptions writing_options(const Machine& machine) {
  WritingOptions options;
  describe_gpus(*machine.topology, machine.placement.ranks, options);
  return options;
}

std::shared_ptr<const Program> whole_program(Study& study, const Outcome& outcome) {
  Query query = outcome.query;
  query.algorithm = algorithm_that_ran(outcome);
  Built built = build_on(study.machine(query), study.choice(query.algorithm), query);
  if (built.why_not) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} cannot be written: it {}", query.algorithm, *built.why_not));
  }
  return std::move(built.program);
}

}  // namespace espalier
