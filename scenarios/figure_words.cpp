// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/expectation_reader.h"
#include "scenarios/reading.h"

namespace espalier {

namespace {

/// What a figure says of its question; nothing: any. Wrong words are diagnosed, and admit nothing.
struct Wanted {
  bool wrong = false;
  std::optional<std::string> topology;
  std::optional<std::vector<int>> gpus;
  std::optional<std::string> profile;
  std::optional<std::string> algorithm;

  void read(YamlMap& map, const std::filesystem::path& folder) {
    if (const auto spec = map.get("topology").text("topology")) {
      topology = machine_path(*spec, folder);
    }
    if (const YamlValue value = map.get("gpus"); value.present()) {
      gpus = read_gpu_set(value);
      wrong = wrong || !gpus;
    }
    profile = map.get("profile").text("profile");
    if (profile) profile = machine_path(*profile, folder);
    if (const auto spec = map.get("algorithm").text("algorithm")) {
      algorithm = in_folder(*spec, folder.string());
    }
  }

  /// What the queries of a table share.
  bool admits_table(const Query& query) const {
    return (!topology || query.topology == *topology) && (!gpus || query.gpus == *gpus) &&
           (!profile || query.profile == *profile);
  }
  bool admits(const Query& query) const { return !algorithm || query.algorithm == *algorithm; }

  std::optional<std::int64_t> read_bytes(YamlMap& map, const std::string& key) {
    const YamlValue value = map.get(key);
    const auto text = value.text(key);
    if (!text) return std::nullopt;
    const auto bytes = parse_bytes(*text);
    if (!bytes) value.problem(fmt::format("{} is not a size", quote(*text)), "such as 64MiB");
    wrong = wrong || !bytes;
    return bytes;
  }
};

struct WantedCollective : Wanted {
  std::optional<std::int64_t> size_bytes;

  bool admits(const Query& query) const {
    return admits_table(query) && Wanted::admits(query) &&
           (!size_bytes || query.size_bytes == *size_bytes);
  }
};

struct WantedTraining : Wanted {
  std::optional<std::string> model;
  std::optional<std::int64_t> gpu_count;
  std::optional<std::int64_t> fusion_bytes;
  std::optional<bool> overlap;

  /// GPUs are those of the table, of which a query has the first so many.
  bool admits(const TrainingSweep& sweep, const TrainingQuery& query) const {
    const std::vector<int>& chosen = query.exchange.gpus;
    const auto count = chosen.empty() ? sweep.ranks : static_cast<std::int64_t>(chosen.size());
    return admits_table(sweep.question.exchange) && Wanted::admits(query.exchange) &&
           (!model || query.model->name == *model) && (!gpu_count || count == *gpu_count) &&
           (!fusion_bytes || query.fusion_bytes == *fusion_bytes) &&
           (!overlap || query.overlap == *overlap);
  }
};

/// The one question found; otherwise a problem that says with which keys one is told.
template <class Question>
std::optional<Figure> only(const std::vector<Figure>& found,
                           const std::vector<std::vector<Question>>& tables, const YamlValue& value,
                           std::string_view keys) {
  if (found.size() == 1) return found.front();
  // A block that asks nothing has been told so.
  if (std::ranges::all_of(tables, [](const auto& table) { return table.empty(); })) {
    return std::nullopt;
  }
  value.problem(found.empty() ? "no question of the block matches this"
                              : fmt::format("{} questions of the block match this", found.size()),
                fmt::format("select one by {}, written as in the block", keys));
  return std::nullopt;
}

/// A missing value for measures that need none; nothing when it is wrong.
std::optional<YamlValue> read_link(YamlMap& map, Measure measure) {
  if (measure == Measure::link_share) {
    const YamlValue link = map.need("link");
    return link.present() ? std::optional(link) : std::nullopt;
  }
  if (const YamlValue link = map.get("link"); link.present()) {
    link.problem(fmt::format("{} is not a measure of a link", to_string(measure)),
                 "use measure: link_share");
  }
  return YamlValue();
}

bool check_link(const YamlValue& value, const std::string& name, const std::string& topology,
                const Topology& machine) {
  std::vector<std::string> names;
  for (LinkId link = 0; link < static_cast<LinkId>(machine.links.size()); ++link) {
    for (const bool forward : {true, false}) names.push_back(link_name(machine, link, forward));
  }
  if (std::ranges::count(names, name) > 0) return true;
  value.problem(fmt::format("{} has no link {}", topology, quote(name)), did_you_mean(name, names));
  return false;
}

std::optional<Figure> read_collective_figure(const std::vector<std::vector<Query>>& tables,
                                             const std::filesystem::path& folder,
                                             const FindMachine& find_machine,
                                             const YamlValue& value, Measure measure) {
  YamlMap map(value, "a figure");
  WantedCollective wanted;
  wanted.read(map, folder);
  wanted.size_bytes = wanted.read_bytes(map, "size");
  const auto link = read_link(map, measure);
  map.finish();
  const auto link_text = link ? link->text("link") : std::nullopt;
  if (wanted.wrong || !link || (link->present() && !link_text)) return std::nullopt;
  const std::string name = link_text.value_or("");

  std::vector<Figure> found;
  for (std::size_t table = 0; table < tables.size(); ++table) {
    for (std::size_t query = 0; query < tables[table].size(); ++query) {
      if (wanted.admits(tables[table][query])) found.push_back({table, query, name});
    }
  }
  const auto figure = only(found, tables, value, "topology, gpus, profile, size and algorithm");
  if (!figure || name.empty()) return figure;
  const std::string& topology = tables[figure->table][figure->query].topology;
  const Topology* machine = find_machine(topology);
  return machine != nullptr && check_link(*link, name, topology, *machine) ? figure : std::nullopt;
}

using TrainingTables = std::vector<std::vector<TrainingQuery>>;

std::optional<Figure> read_training_figure(const std::vector<TrainingSweep>& sweeps,
                                           const TrainingTables& tables,
                                           const std::filesystem::path& folder,
                                           const YamlValue& value) {
  YamlMap map(value, "a figure");
  WantedTraining wanted;
  wanted.read(map, folder);
  wanted.model = map.get("model").text("model");
  wanted.gpu_count = map.get("gpu_count").integer("gpu_count");
  wanted.fusion_bytes = wanted.read_bytes(map, "fusion");
  wanted.overlap = map.get("overlap").boolean("overlap");
  wanted.wrong = wanted.wrong || (map.get("gpu_count").present() && !wanted.gpu_count) ||
                 (map.get("overlap").present() && !wanted.overlap);
  map.finish();
  if (wanted.wrong) return std::nullopt;

  std::vector<Figure> found;
  for (std::size_t table = 0; table < tables.size(); ++table) {
    for (std::size_t query = 0; query < tables[table].size(); ++query) {
      if (wanted.admits(sweeps[table], tables[table][query])) {
        found.push_back({table, query, {}});
      }
    }
  }
  return only(found, tables, value,
              "topology, gpus, profile, model, gpu_count, fusion, overlap and algorithm");
}

}  // namespace

FigureWords collective_figures(const std::vector<std::vector<Query>>& tables,
                               const std::filesystem::path& folder, FindMachine find_machine) {
  return {
      collective_measures(), Measure::algbw_gbps,
      [&tables, folder, find = std::move(find_machine)](const YamlValue& value, Measure measure) {
        return read_collective_figure(tables, folder, find, value, measure);
      }};
}

FigureWords training_figures(const std::vector<TrainingSweep>& sweeps,
                             const std::filesystem::path& folder) {
  TrainingTables tables;
  for (const TrainingSweep& sweep : sweeps) tables.push_back(sweep.queries());
  return {training_measures(), Measure::samples_per_s,
          [&sweeps, tables = std::move(tables), folder](const YamlValue& value, Measure) {
            return read_training_figure(sweeps, tables, folder, value);
          }};
}

}  // namespace espalier
