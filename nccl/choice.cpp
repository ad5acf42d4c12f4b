// SPDX-License-Identifier: Apache-2.0
#include "nccl/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace espalier {
namespace {

/// Sends and receives of at most so much use LL (NCCL_P2P_LL_THRESHOLD).
constexpr double kP2pLlBytes = 16384;

/// Whether NVLink joins all ranks directly or by switches.
bool is_joined_directly(const Router& router, const Placement& placement) {
  for (const NodeId from : placement.ranks) {
    for (const NodeId to : placement.ranks) {
      if (from == to) continue;
      const Route* const route = router.route(from, to);
      if (route == nullptr || route->kind != RouteKind::gpu_fabric) return false;
    }
  }
  return true;
}

bool asks_for_symmetric(const NcclCall& call) {
  return call.kernel || call.algorithm == NcclAlgorithm::symmetric;
}

/// Kernels over symmetric memory, where buffers are registered. NCCL does not compare them with its
/// tuner's choice: "the perf model accuracy from asymmetric kernels is too inaccurate", says
/// src/enqueue.cc of 2.27. Whether it takes one.
bool choose_symmetric(const NcclCall& call, const Router& router, const Placement& placement,
                      NcclChoice& made) {
  const bool is_other = call.algorithm && call.algorithm != NcclAlgorithm::symmetric;
  if (is_other && call.kernel) {
    made.why_not =
        fmt::format("kernel {} is none of {}", to_string(*call.kernel), to_string(*call.algorithm));
  }
  if (is_other || !(call.is_registered || asks_for_symmetric(call))) return false;
  const NcclSymmetricCall asked = {call.collective, call.bytes, call.version.minor, call.kernel,
                                   call.channels};
  // Routes are only asked for where the question is not decided before.
  std::string& why = made.why_not_symmetric;
  why = why_no_symmetric(asked, made.machine, true);
  if (why.empty()) {
    why = why_no_symmetric(asked, made.machine, is_joined_directly(router, placement));
  }
  const NcclSymmetricCell* chosen = nullptr;
  if (why.empty()) {
    made.symmetric = nccl_symmetric_cells(asked, made.machine);
    chosen = chosen_symmetric(made.symmetric);
    if (chosen == nullptr) {
      const auto first = std::ranges::find_if(made.symmetric, [&](const NcclSymmetricCell& cell) {
        return !call.kernel || cell.kernel == *call.kernel;
      });
      why = fmt::format("{}: {}", to_string(first->kernel), first->why_not);
    }
  }
  const NcclProtocol own =
      chosen != nullptr && is_packets(chosen->kernel) ? NcclProtocol::ll : NcclProtocol::simple;
  if (chosen != nullptr && call.protocol && *call.protocol != own) {
    why = fmt::format("{} has {} only", to_string(chosen->kernel), to_string(own));
    chosen = nullptr;
  }
  if (chosen == nullptr) {
    if (asks_for_symmetric(call)) made.why_not = why;
    return false;
  }
  made.algorithm = NcclAlgorithm::symmetric;
  made.protocol = own;
  made.kernel = chosen->kernel;
  made.work = nccl_symmetric_work(asked, *chosen, made.machine);
  return true;
}

void choose_p2p(const NcclCall& call, NcclChoice& made) {
  made.algorithm = NcclAlgorithm::p2p;
  if (const int first = first_version_of(NcclAlgorithm::p2p); call.version.minor < first) {
    made.why_not = fmt::format("sends and receives came with NCCL 2.{}", first);
    return;
  }
  if (call.algorithm && *call.algorithm != NcclAlgorithm::p2p) {
    made.why_not = fmt::format("NCCL makes {} of sends and receives, not of {}",
                               to_string(call.collective), to_string(*call.algorithm));
    return;
  }
  const double per_peer = call.collective == Collective::sendrecv
                              ? call.bytes
                              : call.bytes / std::max(1, made.machine.ranks);
  made.protocol = per_peer <= kP2pLlBytes ? NcclProtocol::ll : NcclProtocol::simple;
  if (call.protocol == NcclProtocol::ll128) {
    made.why_not = "sends and receives have no ll128";
  }
  made.protocol = call.protocol.value_or(made.protocol);
}

bool is_asked_for(const NcclCall& call, const NcclCell& cell) {
  switch (cell.asked_for) {
    case NcclAskedFor::never:
      return false;
    case NcclAskedFor::by_algorithm:
      return call.algorithm.has_value();
    case NcclAskedFor::by_either:
      return call.algorithm || call.protocol;
  }
  return false;
}

void choose_cell(const NcclCall& call, NcclChoice& made) {
  if (call.algorithm == NcclAlgorithm::p2p) {
    made.why_not =
        fmt::format("NCCL does not make {} of sends and receives", to_string(call.collective));
    return;
  }
  made.cells = nccl_cells(call.collective, call.bytes, made.machine, made.graph, call.version);
  const NcclCell* best = nullptr;
  const NcclCell* ruled_out = nullptr;
  for (const NcclCell& cell : made.cells) {
    if (call.algorithm && cell.algorithm != *call.algorithm) continue;
    if (call.protocol && cell.protocol != *call.protocol) continue;
    if (!cell.why_not.empty() && !is_asked_for(call, cell)) {
      // The first: rings are what others would be instead of.
      const bool is_first = ruled_out == nullptr || ruled_out->why_not == kSimpleOnly;
      if (is_first) ruled_out = &cell;
      continue;
    }
    if (best == nullptr || cell.time_s < best->time_s) best = &cell;
  }
  if (best == nullptr) {
    made.why_not = fmt::format("NCCL {} can't: {} with {}: {}", nccl_version_text(call.version),
                               to_string(ruled_out->algorithm), to_string(ruled_out->protocol),
                               ruled_out->why_not);
    return;
  }
  made.algorithm = best->algorithm;
  made.protocol = best->protocol;
}

/// What NCCL does not take of the numbers asked for.
std::string why_not_forced(const NcclCall& call, const NcclChoice& choice) {
  constexpr int kWarp = 32;
  if (const int most = nccl_most_channels(call.version.minor); call.channels > most) {
    return fmt::format("NCCL {} has {} channels at most", nccl_version_text(call.version), most);
  }
  const int least = choice.protocol == NcclProtocol::ll128 ? 5 * kWarp : 2 * kWarp;
  const int most = choice.work.most_threads;
  const bool is_possible =
      call.threads % kWarp == 0 && call.threads >= least && call.threads <= most;
  if (call.threads == 0 || is_possible) return {};
  return fmt::format("NCCL's blocks have multiples of {} threads, from {} to {} with {}", kWarp,
                     least, most, to_string(choice.protocol));
}

std::string size_text(double bytes) {
  const double exponent = bytes >= 1073741824 ? 30 : bytes >= 1048576 ? 20 : bytes >= 1024 ? 10 : 0;
  const char* unit = bytes >= 1073741824 ? "GiB"
                     : bytes >= 1048576  ? "MiB"
                     : bytes >= 1024     ? "KiB"
                                         : "B";
  return fmt::format("{:.4g} {}", bytes / std::pow(2, exponent), unit);
}

/// Whether an algorithm is ruled out for one reason, which the line of its last protocol says.
bool is_told_by_another(const std::vector<NcclCell>& cells, const NcclCell& cell) {
  return std::ranges::any_of(cells, [&](const NcclCell& other) {
    return other.algorithm == cell.algorithm && other.protocol > cell.protocol &&
           other.why_not == cell.why_not;
  });
}

}  // namespace

bool is_nccl_p2p(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::gather ||
         collective == Collective::scatter || collective == Collective::sendrecv;
}

NcclChoice nccl_choice(const NcclCall& call, const Router& router, const Placement& placement) {
  NcclChoice made;
  made.machine = nccl_machine(router, placement);
  made.graph = nccl_graph(made.machine, router, placement, call.version.minor, call.pxn);
  if (!made.graph.why_not.empty()) {
    made.why_not = "no ring through all ranks: " + made.graph.why_not;
    return made;
  }
  const bool is_symmetric = choose_symmetric(call, router, placement, made);
  if (!made.why_not.empty()) return made;
  if (is_nccl_p2p(call.collective)) {
    choose_p2p(call, made);
  } else if (!is_symmetric) {
    choose_cell(call, made);
  }
  if (!made.why_not.empty()) return made;
  if (is_symmetric) {
    made.why_not = why_not_forced(call, made);
    if (made.why_not.empty() && call.threads > 0 && call.threads != made.work.threads) {
      made.why_not =
          fmt::format("blocks of kernels over symmetric memory have {} threads", made.work.threads);
    }
    return made;
  }
  made.work = nccl_work(call.collective, call.bytes, made.algorithm, made.protocol, made.machine,
                        made.graph, call.version.minor);
  made.why_not = why_not_forced(call, made);
  if (call.channels > 0) made.work.channels = call.channels;
  if (call.threads > 0) made.work.threads = call.threads;
  return made;
}

namespace {

/// The kernels over symmetric memory: why one of them won, or none.
std::string explain_symmetric(const NcclChoice& choice) {
  if (choice.symmetric.empty()) {
    return choice.why_not_symmetric.empty()
               ? ""
               : fmt::format("  no kernel over symmetric memory: {}\n", choice.why_not_symmetric);
  }
  std::string text =
      "  kernels over symmetric memory, by NCCL's model of them; the tuner is not asked\n";
  text += fmt::format("  {:<15} {:>12} {:>16} {:>12}\n", "kernel", "blocks", "time (us)",
                      "weighed (us)");
  for (const NcclSymmetricCell& cell : choice.symmetric) {
    if (!cell.why_not.empty()) {
      text += fmt::format("  {:<15} {}\n", to_string(cell.kernel), cell.why_not);
      continue;
    }
    const bool is_chosen =
        choice.algorithm == NcclAlgorithm::symmetric && cell.kernel == choice.kernel;
    text +=
        fmt::format("  {:<15} {:>12} {:>16.2f} {:>12.2f}{}\n", to_string(cell.kernel), cell.blocks,
                    cell.time_s * 1e6, cell.weighed_s * 1e6, is_chosen ? "  chosen" : "");
  }
  if (!choice.why_not_symmetric.empty()) text += "  " + choice.why_not_symmetric + "\n";
  return text;
}

}  // namespace

std::string explain(const NcclCall& call, const NcclChoice& choice) {
  const NcclMachine& machine = choice.machine;
  std::string text =
      fmt::format("NCCL {} for {} of {} on {} ranks, {} node{}\n", nccl_version_text(call.version),
                  to_string(call.collective), size_text(call.bytes), machine.ranks, machine.nodes,
                  machine.nodes == 1 ? "" : "s");
  if (!choice.graph.why_not.empty()) return text + "  " + choice.why_not + "\n";
  text += fmt::format("  graph: {} channel{} of {:g} GB/s, {} blocks at most{}\n",
                      choice.graph.channels, choice.graph.channels == 1 ? "" : "s",
                      choice.graph.rate_gbps, nccl_blocks(choice.graph),
                      choice.graph.same_order ? ", all in one order" : "");
  if (choice.graph.nvls_channels > 0) {
    text += fmt::format("  NVLS graph: {} channels of {:g} GB/s\n", choice.graph.nvls_channels,
                        choice.graph.nvls_rate_gbps);
  }
  if (choice.graph.pxn) text += "  PXN: data may leave a node through a neighbor's NIC\n";
  text += explain_symmetric(choice);
  const bool has_table = !choice.cells.empty() && call.version.minor >= 5;
  if (has_table) {
    text += fmt::format("  {:<15} {:<7} {:>12} {:>16} {:>12}\n", "algorithm", "proto",
                        "latency (us)", "bandwidth (GB/s)", "time (us)");
  }
  for (const NcclCell& cell : choice.cells) {
    const bool is_ruled_out = !cell.why_not.empty();
    const bool is_chosen = choice.why_not.empty() && cell.algorithm == choice.algorithm &&
                           cell.protocol == choice.protocol;
    if (is_ruled_out && !is_chosen) {
      if (cell.why_not == kSimpleOnly || is_told_by_another(choice.cells, cell)) continue;
      text += fmt::format("  {:<15} {:<7} {}\n", to_string(cell.algorithm),
                          to_string(cell.protocol), cell.why_not);
    } else if (has_table) {
      text += fmt::format("  {:<15} {:<7} {:>12.2f} {:>16.2f} {:>12.2f}{}\n",
                          to_string(cell.algorithm), to_string(cell.protocol), cell.latency_s * 1e6,
                          cell.gbps, cell.time_s * 1e6, is_chosen ? "  chosen" : "");
    }
  }
  if (!choice.why_not.empty()) return text + "  " + choice.why_not + "\n";
  const bool is_symmetric = choice.algorithm == NcclAlgorithm::symmetric;
  const char* why = call.kernel                       ? "as asked for"
                    : is_symmetric                    ? "buffers are symmetric"
                    : call.algorithm || call.protocol ? "as asked for"
                    : choice.cells.empty()            ? "sends and receives have no table"
                    : call.version.minor < 5          ? "by the size alone: there is no table"
                                                      : "the shortest time";
  const std::string_view name =
      is_symmetric ? to_string(choice.kernel) : to_string(choice.algorithm);
  text += fmt::format("  {} with {} ({}): {} channel{}, {} threads", name,
                      to_string(choice.protocol), why, choice.work.channels,
                      choice.work.channels == 1 ? "" : "s", choice.work.threads);
  if (choice.work.chunk_bytes > 0) {
    text += fmt::format(", chunks of {}", size_text(choice.work.chunk_bytes));
  }
  return text + "\n";
}

}  // namespace espalier
