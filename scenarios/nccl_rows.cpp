// SPDX-License-Identifier: Apache-2.0
#include "scenarios/nccl_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"
#include "core/error.h"
#include "formats/nccl_tuner.h"
#include "nccl/choice.h"
#include "scenarios/exported.h"
#include "topologies/launch_costs.h"

namespace espalier {

namespace {

/// What NCCL calls what we have of it.
const std::map<std::string_view, std::string_view>& nccl_names() {
  static const std::map<std::string_view, std::string_view> names = {
      {"nccl_rings", "ring"}, {"ring", "ring"}, {"double_binary_tree", "tree"}, {"nvls", "nvls"}};
  return names;
}

/// Computers that the ranks are on.
int count_nodes(const Machine& machine) {
  std::set<int> nodes;
  for (const int host : writing_options(machine).host_of_rank) nodes.insert(host);
  return static_cast<int>(nodes.size());
}

/// Whether that version of NCCL has such an algorithm for the collective, by what `tune` calls it:
/// "nccl_rings", "double_binary_tree". `nodes`: computers.
bool is_of_nccl(std::string_view algorithm, Collective collective, int nodes,
                const TunerFormat& format) {
  const auto known = nccl_names().find(algorithm);
  // Across computers NCCL's NVLS is another algorithm, with trees or with the network's switches.
  return known != nccl_names().end() && (known->second != "nvls" || nodes == 1) &&
         nccl_has(known->second, collective, format.nccl_version);
}

/// How many channels NCCL itself would use for the row's algorithm and protocol: the plugin gives
/// it one where a row says nothing. -1 where NCCL could not do this here.
int nccl_channels(const TunerRow& row, const Outcome& choice, const Machine& machine,
                  const std::string& version) {
  if (choice.ranks < 2) return -1;
  NcclCall call;
  call.collective = row.collective;
  call.bytes = static_cast<double>(choice.report.message_bytes);
  if (const auto known = library_version(version)) call.version = nearest_nccl(*known);
  const auto algorithm = std::ranges::find(all_nccl_algorithms(), row.algorithm,
                                           [](NcclAlgorithm one) { return to_string(one); });
  const auto protocol = std::ranges::find(all_nccl_protocols(), row.protocol,
                                          [](NcclProtocol one) { return to_string(one); });
  CHECK(algorithm != all_nccl_algorithms().end() && protocol != all_nccl_protocols().end());
  call.algorithm = *algorithm;
  call.protocol = *protocol;
  const NcclChoice made = nccl_choice(call, *machine.router, machine.placement);
  return made.why_not.empty() ? made.work.channels : -1;
}

}  // namespace

void keep_nccl(Study& study, const Query& question, bool may_lack, const TunerFormat& format,
               std::vector<std::string>& candidates) {
  const int nodes = count_nodes(study.machine(question));
  const Collective collective = question.collective;
  if (!is_tuned_by_plugin(collective)) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("NCCL's example tuner plugin has no rows for {}", to_string(collective)),
        "broadcast, reduce, allgather, reducescatter or allreduce");
  }
  DiagnosticList missing;
  std::erase_if(candidates, [&](const std::string& candidate) {
    if (is_of_nccl(candidate, collective, nodes, format)) return false;
    const bool is_variant = candidate.find(':') != std::string::npos;
    if (!may_lack && !is_variant) {
      missing.add({},
                  fmt::format("NCCL {} has no {} for {}", format.nccl_version, candidate,
                              to_string(collective)),
                  "nccl_rings, and for allreduce double_binary_tree or nvls");
    }
    return true;
  });
  missing.throw_if_any(ErrorKind::usage);
  if (candidates.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("NCCL {} has none of these algorithms for {}", format.nccl_version,
                            to_string(collective)),
                "nccl_rings");
  }
}

std::string choices_csv(const std::vector<Outcome>& choices, const Machine& machine,
                        const TunerFormat& format) {
  const int nodes = count_nodes(machine);
  std::vector<TunerRow> rows;
  std::int64_t from = 0;
  for (const Outcome& choice : choices) {
    static const std::set<std::string> kProtocols{"simple", "ll", "ll128"};
    if (!kProtocols.contains(choice.protocol)) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("profile {} has no protocols of NCCL", choice.query.profile),
                  "--profile nccl");
    }
    TunerRow row;
    row.collective = choice.query.collective;
    row.min_bytes = from;
    row.max_bytes = choice.query.size_bytes;
    const std::string& algorithm = choice.query.algorithm;
    row.algorithm = nccl_names().at(algorithm.substr(0, algorithm.find(':')));
    row.protocol = choice.protocol;
    row.nodes = nodes;
    row.ranks = choice.ranks;
    row.channels = nccl_channels(row, choice, machine, format.nccl_version);
    from = row.max_bytes + 1;
    const bool goes_on = !rows.empty() && rows.back().algorithm == row.algorithm &&
                         rows.back().protocol == row.protocol &&
                         rows.back().channels == row.channels;
    if (goes_on) {
      rows.back().max_bytes = row.max_bytes;
    } else {
      rows.push_back(row);
    }
  }
  rows.back().max_bytes = -1;
  return tuner_csv(rows, format.nccl_version);
}

}  // namespace espalier
