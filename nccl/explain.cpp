// SPDX-License-Identifier: Apache-2.0
// What NCCL chooses, and why, in lines of text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "core/units.h"
#include "core/words.h"
#include "nccl/choice.h"

namespace espalier {
namespace {

std::string size_text(double bytes) { return describe_size(std::llround(bytes)); }

/// Whether an algorithm is ruled out for one reason, which the line of its last protocol says.
bool is_told_by_another(const std::vector<NcclCell>& cells, const NcclCell& cell) {
  return std::ranges::any_of(cells, [&](const NcclCell& other) {
    return other.algorithm == cell.algorithm && other.protocol > cell.protocol &&
           other.why_not == cell.why_not;
  });
}

/// The kernels over symmetric memory: why one of them won, or none.
std::string symmetric_lines(const NcclChoice& choice) {
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

std::string graph_lines(const NcclChoice& choice) {
  const NcclGraph& graph = choice.graph;
  std::string text =
      fmt::format("  graph: {} of {:g} GB/s, {} blocks at most{}\n",
                  counted(static_cast<std::size_t>(graph.channels), "channel"), graph.rate_gbps,
                  nccl_blocks(graph), graph.same_order ? ", all in one order" : "");
  if (graph.nvls_channels > 0) {
    text += fmt::format("  NVLS graph: {} channels of {:g} GB/s\n", graph.nvls_channels,
                        graph.nvls_rate_gbps);
  }
  if (graph.nvb) text += "  NVB: GPUs without a common NVLink exchange data through a third one\n";
  if (graph.pxn) text += "  PXN: data may leave a node through a neighbor's NIC\n";
  return text;
}

/// The tuner's table, or of versions without one what is ruled out.
std::string tuner_lines(const NcclChoice& choice) {
  std::string text;
  const bool has_table = !choice.cells.empty() && choice.version >= kFirstNcclWithTable;
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
  return text;
}

std::string_view why_chosen(const NcclCall& call, const NcclChoice& choice) {
  if (call.kernel) return "as asked for";
  if (choice.algorithm == NcclAlgorithm::symmetric) return "buffers are symmetric";
  if (call.algorithm || call.protocol) return "as asked for";
  if (choice.cells.empty()) return "sends and receives have no table";
  if (choice.version < kFirstNcclWithTable) return "by the size alone: there is no table";
  return "the shortest time";
}

/// "16 channels"; of a kernel over symmetric memory, "1 block of 2, ...".
std::string blocks_text(const NcclChoice& choice) {
  const auto used = static_cast<std::size_t>(choice.work.channels);
  if (choice.algorithm != NcclAlgorithm::symmetric) return counted(used, "channel");
  const auto cell = std::ranges::find(choice.symmetric, choice.kernel, &NcclSymmetricCell::kernel);
  std::string text = counted(used, "block");
  if (cell != choice.symmetric.end() && cell->blocks > choice.work.channels) {
    text += fmt::format(" of {}: messages are divided in cells of 1 KiB", cell->blocks);
  }
  return text;
}

std::string chosen_line(const NcclCall& call, const NcclChoice& choice) {
  const NcclWork& work = choice.work;
  const std::string_view name = choice.algorithm == NcclAlgorithm::symmetric
                                    ? to_string(choice.kernel)
                                    : to_string(choice.algorithm);
  std::string text =
      fmt::format("  {} with {} ({}): {}, {} threads", name, to_string(choice.protocol),
                  why_chosen(call, choice), blocks_text(choice), work.threads);
  if (work.chunk_bytes > 0) text += fmt::format(", chunks of {}", size_text(work.chunk_bytes));
  return text + "\n";
}

}  // namespace

std::string explain(const NcclCall& call, const NcclChoice& choice) {
  const NcclMachine& machine = choice.machine;
  std::string text =
      fmt::format("{} for {} of {} on {}, {}\n", choice.library(), to_string(call.collective),
                  size_text(call.bytes), counted(static_cast<std::size_t>(machine.ranks), "rank"),
                  counted(static_cast<std::size_t>(machine.nodes), "node"));
  if (!choice.graph.why_not.empty()) return text + "  " + choice.why_not + "\n";
  if (const std::string note = choice.note(); !note.empty()) text += "  " + note + "\n";
  text += graph_lines(choice) + symmetric_lines(choice) + tuner_lines(choice);
  if (!choice.why_not.empty()) return text + "  " + choice.why_not + "\n";
  return text + chosen_line(call, choice);
}

}  // namespace espalier
