// SPDX-License-Identifier: Apache-2.0
#include "report/survey.h"

#include <fmt/format.h>

#include <utility>

#include "report/csv.h"

namespace espalier {

namespace {

std::vector<MeasuredPath> all_paths(const Survey& survey) {
  std::vector<MeasuredPath> all = measured_paths(survey, CopyMethod::kernel);
  const auto add = [&](std::vector<MeasuredPath> paths) {
    for (MeasuredPath& path : paths) all.push_back(std::move(path));
  };
  add(socket_paths(survey));
  add(network_paths(survey));
  if (survey.copy_engine) add(measured_paths(survey, CopyMethod::copy_engine));
  return all;
}

std::string gpu_name(int rank) { return fmt::format("gpu{}", rank); }

/// Of two groups of ranks, called `kind` and their number, whose first ranks are named.
std::vector<MeasuredPath> paths_of_groups(std::string_view method, const GroupFigures& figures,
                                          std::string_view kind, int here, int there) {
  return {{method, gpu_name(here), gpu_name(there), figures.to, figures.both_gbps},
          {method, gpu_name(there), gpu_name(here), figures.from},
          {method,
           fmt::format("{}0", kind),
           fmt::format("{}1", kind),
           {figures.to.latency_s, figures.all_gbps},
           figures.all_both_gbps}};
}

Json path_json(const MeasuredPath& path) {
  return {{"method", path.method},
          {"from", path.from},
          {"to", path.to},
          {"latency_s", rounded(path.figures.latency_s)},
          {"gbps", rounded(path.figures.gbps)},
          {"both_ways_gbps", path.both_ways_gbps > 0 ? rounded(path.both_ways_gbps) : Json()}};
}

Json memory_json(const MeasuredMemory& memory) {
  Json json = {{"name", memory.name}, {"copy_gbps", rounded(memory.copy_gbps)}};
  for (std::size_t i = 0; i < memory.combine_gbps.size(); ++i) {
    json[fmt::format("combine_{}_gbps", ArithmeticFigures::kOperands[i])] =
        rounded(memory.combine_gbps[i]);
  }
  return json;
}

}  // namespace

std::vector<MeasuredPath> measured_paths(const Survey& survey, CopyMethod method) {
  const bool by_kernel = method == CopyMethod::kernel;
  const std::string_view called = by_kernel ? "kernel" : "copy_engine";
  const CopyFigures& figures = by_kernel ? survey.kernel : survey.copy_engine.value();
  const std::vector<int> ranks = survey.inventory.paired_ranks();
  const auto gpu = [&](std::size_t number) { return gpu_name(ranks[number]); };
  std::vector<MeasuredPath> paths = {{called, gpu_name(0), gpu_name(0), figures.local}};
  for (std::size_t from = 0; from < figures.pairs.size(); ++from) {
    for (std::size_t to = 0; to < figures.pairs.size(); ++to) {
      if (from == to) continue;
      paths.push_back({called, gpu(from), gpu(to), figures.pairs[from][to],
                       from < to ? figures.both_ways_gbps[from][to] : 0});
    }
  }
  for (std::size_t i = 0; i < figures.to_host.size(); ++i) {
    const std::string name = gpu_name(static_cast<int>(i));
    paths.push_back({called, name, "host", figures.to_host[i], figures.host_both_ways_gbps[i]});
    paths.push_back({called, "host", name, figures.from_host[i]});
  }
  return paths;
}

std::vector<MeasuredPath> socket_paths(const Survey& survey) {
  if (!survey.sockets) return {};
  const std::vector<std::vector<int>> ranks = survey.inventory.ranks_by_socket();
  return paths_of_groups("socket", *survey.sockets, "socket", ranks[0].front(), ranks[1].front());
}

std::vector<MeasuredPath> network_paths(const Survey& survey) {
  if (!survey.network) return {};
  return paths_of_groups("network", *survey.network, "host", 0, survey.inventory.ranks_of_a_host());
}

std::vector<MeasuredMemory> measured_memories(const Survey& survey) {
  std::vector<MeasuredMemory> all;
  const auto add = [&](std::string name, const ArithmeticFigures& figures) {
    MeasuredMemory& memory = all.emplace_back();
    memory.name = std::move(name);
    memory.copy_gbps = 2e-9 / figures.copy_s;
    for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
      const int moved = ArithmeticFigures::kOperands[i] + 1;
      memory.combine_gbps.push_back(moved * 1e-9 / figures.combine_s[i]);
    }
  };
  for (std::size_t gpu = 0; gpu < survey.alone.size(); ++gpu) {
    add(fmt::format("gpu{} alone", gpu), survey.alone[gpu]);
  }
  if (survey.inventory.is_shared()) add("all together", survey.together);
  return all;
}

std::string survey_json(const Survey& survey, const std::string& machine) {
  Json memories = Json::array();
  for (const MeasuredMemory& memory : measured_memories(survey)) {
    memories.push_back(memory_json(memory));
  }
  Json results = Json::array();
  for (const MeasuredPath& path : all_paths(survey)) results.push_back(path_json(path));
  Json head{{"machine", machine}, {"spread", rounded(survey.spread)}, {"memories", memories}};
  if (!survey.inventory.is_host) {
    head["calls_s"] = {{"kernel", rounded(survey.kernel.call_s)}};
    if (survey.copy_engine) head["calls_s"]["copy_engine"] = rounded(survey.copy_engine->call_s);
  }
  return dump_results("espalier.probe/1", std::move(results), std::move(head));
}

std::string survey_csv(const Survey& survey) {
  CsvText text({"method", "from", "to", "latency_s", "gbps", "both_ways_gbps"});
  for (const MeasuredPath& path : all_paths(survey)) text.add(path_json(path));
  return text.finish();
}

}  // namespace espalier
