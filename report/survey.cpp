// SPDX-License-Identifier: Apache-2.0
#include "report/survey.h"

#include <fmt/format.h>

#include <utility>

#include "report/csv.h"

namespace espalier {

namespace {

std::vector<MeasuredPath> all_paths(const Survey& survey) {
  std::vector<MeasuredPath> all = measured_paths(survey.kernel, CopyMethod::kernel);
  for (MeasuredPath& path : network_paths(survey)) all.push_back(std::move(path));
  if (survey.copy_engine) {
    for (MeasuredPath& path : measured_paths(*survey.copy_engine, CopyMethod::copy_engine)) {
      all.push_back(std::move(path));
    }
  }
  return all;
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

std::vector<MeasuredPath> measured_paths(const CopyFigures& figures, CopyMethod method) {
  const std::string_view called = method == CopyMethod::kernel ? "kernel" : "copy_engine";
  const auto gpu = [](std::size_t number) { return fmt::format("gpu{}", number); };
  std::vector<MeasuredPath> paths = {{called, gpu(0), gpu(0), figures.local}};
  for (std::size_t from = 0; from < figures.pairs.size(); ++from) {
    for (std::size_t to = 0; to < figures.pairs.size(); ++to) {
      if (from == to) continue;
      paths.push_back({called, gpu(from), gpu(to), figures.pairs[from][to],
                       from < to ? figures.both_ways_gbps[from][to] : 0});
    }
  }
  for (std::size_t i = 0; i < figures.to_host.size(); ++i) {
    paths.push_back({called, gpu(i), "host", figures.to_host[i], figures.host_both_ways_gbps[i]});
    paths.push_back({called, "host", gpu(i), figures.from_host[i]});
  }
  return paths;
}

std::vector<MeasuredPath> network_paths(const Survey& survey) {
  if (!survey.network) return {};
  const NetworkFigures& network = *survey.network;
  const std::string here = "gpu0";
  const std::string there = fmt::format("gpu{}", survey.inventory.ranks_of_a_host());
  return {{"network", here, there, network.to, network.both_gbps},
          {"network", there, here, network.from},
          {"network",
           "host0",
           "host1",
           {network.to.latency_s, network.all_gbps},
           network.all_both_gbps}};
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
  return dump_results(
      "espalier.probe/1", std::move(results),
      {{"machine", machine}, {"spread", rounded(survey.spread)}, {"memories", memories}});
}

std::string survey_csv(const Survey& survey) {
  CsvText text({"method", "from", "to", "latency_s", "gbps", "both_ways_gbps"});
  for (const MeasuredPath& path : all_paths(survey)) text.add(path_json(path));
  return text.finish();
}

}  // namespace espalier
