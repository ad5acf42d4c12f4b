// SPDX-License-Identifier: Apache-2.0
#include "cli/nccl_tests_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "core/words.h"
#include "scenarios/describe.h"

namespace espalier {
namespace {

std::string local_time(std::time_t time) {
  std::tm parts{};
  localtime_r(&time, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

/// What nccl-tests would print: of calls back to back, where that was simulated.
MeasuredTime time_of(const Outcome& outcome) {
  MeasuredTime time;
  time.time_s = outcome.benchmark_s > 0 ? outcome.benchmark_s : outcome.report.time_s;
  const auto bytes = static_cast<double>(outcome.report.message_bytes);
  time.algbw_gbps = time.time_s > 0 ? bytes / time.time_s / 1e9 : 0;
  time.busbw_gbps = time.algbw_gbps * busbw_factor(outcome.query.collective, outcome.ranks);
  if (outcome.report.executed && outcome.report.executed->wrong) {
    time.wrong = static_cast<double>(*outcome.report.executed->wrong);
  }
  return time;
}

/// As a run with one process for each rank lists them. Where nothing was simulated, the GPUs are
/// not those of the machine that is named.
std::vector<MeasuredRank> ranks_of(Study& study, const Outcome& outcome) {
  std::vector<MeasuredRank> ranks(static_cast<std::size_t>(outcome.ranks));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = ranks[i].device = static_cast<int>(i);
    ranks[i].host = "localhost";
    ranks[i].model = fmt::format("backend {} of espalier", outcome.backend);
  }
  if (!outcome.report.simulated) return ranks;
  const Machine& machine = study.machine(outcome.query);
  std::map<NodeId, int> number;  // on its host
  std::map<int, int> on_host;
  for (const NodeId gpu : machine.topology->gpus()) {
    number[gpu] = on_host[machine.topology->node(gpu).host]++;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const NodeId gpu = machine.placement.ranks[i];
    const Node& node = machine.topology->node(gpu);
    ranks[i].host = on_host.size() == 1 ? machine.topology->name
                                        : fmt::format("{}-{}", machine.topology->name, node.host);
    ranks[i].device = number[gpu];
    ranks[i].model = node.model.empty() ? "simulated" : node.model + ", simulated";
  }
  return ranks;
}

/// "2(factor)" or "1048576(bytes)", as sizes go on; nothing where they do neither.
std::string step_of(const std::vector<MeasuredRow>& rows) {
  if (rows.size() < 2) return {};
  const std::int64_t first = rows[0].bytes, second = rows[1].bytes;
  bool by_factor = first > 0 && second % first == 0, by_bytes = true;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    by_factor = by_factor && rows[i].bytes == rows[i - 1].bytes * (second / first);
    by_bytes = by_bytes && rows[i].bytes - rows[i - 1].bytes == second - first;
  }
  if (by_factor) return fmt::format("{}(factor)", second / first);
  return by_bytes ? fmt::format("{}(bytes)", second - first) : std::string();
}

/// One process for all ranks of a host, where all have as many: it is listed with its first rank.
void put_in_one_process(MeasuredTable& table) {
  std::map<std::string, int> on_host;
  for (const MeasuredRank& rank : table.listed) ++on_host[rank.host];
  const int each = on_host.begin()->second;
  if (std::ranges::any_of(on_host, [&](const auto& one) { return one.second != each; })) return;
  table.gpus_per_thread = each;
  std::erase_if(table.listed, [&, last = std::string()](const MeasuredRank& rank) mutable {
    return std::exchange(last, rank.host) == rank.host;
  });
}

void describe_launch(const Outcome& outcome, MeasuredTable& table) {
  table.threads = table.gpus_per_thread = 1;
  if (outcome.report.simulated && outcome.query.launch == LaunchMode::single) {
    put_in_one_process(table);
  }
  const auto [least, most] = std::ranges::minmax_element(table.rows, {}, &MeasuredRow::bytes);
  table.min_bytes = least->bytes;
  table.max_bytes = most->bytes;
  table.step = step_of(table.rows);
  const bool is_executed = outcome.report.executed.has_value();
  table.warmup = is_executed ? outcome.query.run.warmup : 0;
  table.iterations = is_executed ? outcome.query.run.iterations : 1;
  table.aggregated = 1;
  table.graph = outcome.report.simulated && outcome.query.launch == LaunchMode::graph ? 1 : 0;
}

}  // namespace

MeasuredRow row_of(const Outcome& outcome) {
  const Query& query = outcome.query;
  const CollectiveInfo& collective = info(query.collective);
  MeasuredRow row;
  row.bytes = outcome.report.message_bytes;
  row.count = row.bytes / static_cast<std::int64_t>(size_of(query.run.type));
  if (collective.blocked) row.count /= outcome.ranks;
  row.type = to_string(query.run.type);
  row.redop = collective.reduces ? to_string(query.run.op) : std::string_view("none");
  row.root = collective.rooted ? query.root : -1;
  return row;
}

MeasuredTable measured_table(Study& study, const Answers& answers) {
  MeasuredTable table;
  const Outcome& first = answers.outcomes.front();
  table.collective = first.query.collective;
  table.ranks = first.ranks;
  table.listed = ranks_of(study, first);
  double busbw_gbps = 0;
  std::int64_t wrong = 0;
  std::int64_t asked_bytes = -1;
  for (const Outcome& outcome : answers.outcomes) {
    const auto half = [&](MeasuredRow& row) -> std::optional<MeasuredTime>& {
      return outcome.query.in_place ? row.in_place : row.out_of_place;
    };
    const bool joins =
        !table.rows.empty() && asked_bytes == outcome.query.size_bytes && !half(table.rows.back());
    if (!joins) table.rows.push_back(row_of(outcome));
    asked_bytes = outcome.query.size_bytes;
    half(table.rows.back()) = time_of(outcome);
    busbw_gbps += half(table.rows.back())->busbw_gbps;
    wrong += outcome.report.wrong_elements();
  }
  table.average_busbw_gbps = busbw_gbps / static_cast<double>(answers.outcomes.size());
  table.out_of_bounds = wrong;
  describe_launch(first, table);
  return table;
}

NcclTestsOutput read_nccl_tests_output(Arguments& arguments, const Sweep& sweep) {
  NcclTestsOutput output{arguments.output("--nccl-tests"), std::time(nullptr)};
  if (!output.path.empty() && sweep.algorithms.size() > 1) {
    arguments.problem_of("--nccl-tests", "writes one table, but there are several algorithms",
                         "name one with --algorithm, or auto for the fastest of each size");
  }
  return output;
}

void write_nccl_tests(const Console& console, const Arguments& arguments,
                      const NcclTestsOutput& output, Study& study, const Answers& answers) {
  if (output.path.empty() || answers.outcomes.empty()) return;
  const Outcome& first = answers.outcomes.front();
  NcclTestsRun run;
  run.arguments = {fmt::format("espalier {} {}", arguments.verb().name, arguments.command_line())};
  run.experiment = first.query.algorithm;
  run.start_time = local_time(output.begin);
  run.end_time = local_time(std::time(nullptr));
  run.process = static_cast<int>(getpid());
  run.validates = first.report.executed && first.query.run.check;
  write_output(console, output.path, nccl_tests_json(measured_table(study, answers), run));
}

}  // namespace espalier
