// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "core/yaml.h"
#include "scenarios/chooser.h"
#include "scenarios/expectation_reader.h"
#include "scenarios/reading.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// A sweep beyond this is a mistake in the file rather than a question.
constexpr std::size_t kMostQueries = 100'000;

/// One set of GPUs as the file gives it.
struct GpuSet {
  YamlValue value;        ///< for the location of problems; missing: all GPUs
  std::vector<int> gpus;  ///< empty: all
};

/// GPUs that may relay, as the file gives them.
struct RelaySet {
  YamlValue value;   ///< missing: none
  bool all = false;  ///< all that are no ranks
  std::vector<int> gpus;
};

class ScenarioReader {
 public:
  ScenarioReader(std::string file, DiagnosticList& problems)
      : directory_(std::filesystem::path(std::move(file)).parent_path()), problems_(problems) {}

  Scenario read(const YamlValue& document);

 private:
  ScenarioBlock read_block(const YamlValue& value);
  Query read_question(YamlMap& map);
  std::vector<std::int64_t> read_sizes(YamlMap& map);
  std::vector<std::string> read_algorithms(YamlMap& map, Collective collective);
  std::vector<GpuSet> read_gpu_sets(YamlMap& map);
  RelaySet read_relay_set(const YamlValue& value);
  std::optional<ScenarioExecution> read_execution(const YamlValue& value, Collective collective);
  std::string algorithm_name(const YamlValue& value, const std::string& spec,
                             Collective collective);
  void check_machine(const YamlValue& topology, const YamlValue& root, const YamlValue& profile,
                     const GpuSet& gpu_set, const RelaySet& relay_set, Query& question);
  const Topology* load(const YamlValue& value, const std::string& spec);

  template <class Read>
  auto located(const YamlValue& value, Read&& read) {
    return read_located(value, problems_, std::forward<Read>(read));
  }

  std::filesystem::path directory_;
  DiagnosticList& problems_;
  std::map<std::string, std::optional<Topology>> machines_;  ///< nothing: did not load
};

Scenario ScenarioReader::read(const YamlValue& document) {
  Scenario scenario;
  if (!document.present()) return scenario;
  YamlMap map(document, "a scenario");
  const YamlValue schema = map.need("schema");
  if (const auto text = schema.text("schema"); text && *text != "espalier.scenario/1") {
    schema.problem(fmt::format("unknown schema {}", quote(*text)), "espalier.scenario/1");
  }
  scenario.name = map.need("name").text("name of the scenario").value_or("");
  scenario.title = map.need("title").text("title of the scenario").value_or("");
  scenario.note = map.text("note");
  const YamlValue blocks = map.need("blocks");
  map.finish();
  for (const YamlValue& block : blocks.items("blocks")) {
    scenario.blocks.push_back(read_block(block));
  }
  if (blocks.kind() == YamlValue::Kind::list && scenario.blocks.empty()) {
    blocks.problem("a scenario needs at least one block");
  }
  return scenario;
}

ScenarioBlock ScenarioReader::read_block(const YamlValue& value) {
  ScenarioBlock block;
  YamlMap map(value, "a block");
  block.title = map.need("title").text("title of a block").value_or("");
  block.note = map.text("note");
  const YamlValue topologies = map.need("topology");
  Query question = read_question(map);
  const std::vector<std::int64_t> sizes = read_sizes(map);
  const std::vector<std::string> algorithms = read_algorithms(map, question.collective);
  const std::vector<GpuSet> gpu_sets = read_gpu_sets(map);
  const RelaySet relay_set = read_relay_set(map.get("relay"));
  block.execute = read_execution(map.get("execute"), question.collective);
  const YamlValue root = map.get("root");
  const YamlValue profile = map.get("profile");
  const YamlValue expect = map.get("expect");
  map.finish();

  const std::vector<YamlValue> machines = topologies.one_or_more();
  if (topologies.present() && machines.empty()) topologies.problem("no topology");
  if (machines.size() * gpu_sets.size() * sizes.size() * algorithms.size() > kMostQueries) {
    map.problem(fmt::format("this block asks more than {} questions", kMostQueries),
                "fewer topologies, GPU sets, sizes or algorithms");
    return block;
  }
  for (const YamlValue& machine : machines) {
    const auto spec = machine.text("topology");
    if (!spec) continue;
    question.topology = machine_path(*spec, directory_);
    for (const GpuSet& gpu_set : gpu_sets) {
      question.gpus = gpu_set.gpus;
      question.relays = relay_set.gpus;
      check_machine(machine, root, profile, gpu_set, relay_set, question);
      std::vector<Query>& table = block.tables.emplace_back();
      for (const std::int64_t size_bytes : sizes) {
        question.size_bytes = size_bytes;
        for (const std::string& algorithm : algorithms) {
          question.algorithm = algorithm;
          table.push_back(question);
        }
      }
    }
  }
  block.expectations = ExpectationReader(block.tables, directory_, [&](const std::string& spec) {
                         return load(topologies, spec);
                       }).read(expect);
  return block;
}

/// Everything that all queries of a block share.
Query ScenarioReader::read_question(YamlMap& map) {
  Query question;
  question.collective = read_collective(map.need("collective"));
  const YamlValue root = map.get("root");
  if (const auto number = root.integer("root")) {
    if (!info(question.collective).rooted) {
      root.problem(fmt::format("{} has no root", to_string(question.collective)));
    } else if (*number < 0 || *number > kMaxPlaces) {
      root.problem("root is the number of a rank, 0 or more");
    } else {
      question.root = static_cast<int>(*number);
    }
  }
  question.profile = map.get("profile").text("profile").value_or(question.profile);
  question.links = read_links(map.get("links"));
  question.in_place = map.boolean("in_place", false);
  const YamlValue chunk = map.get("chunk");
  if (const auto text = chunk.text("chunk"); text && *text != "auto") {
    question.chunk_bytes = parse_bytes(*text);
    if (!question.chunk_bytes) {
      chunk.problem(fmt::format("{} is not a chunk size", quote(*text)),
                    "auto, 0 for whole messages, or a size such as 4MiB");
    }
  }
  return question;
}

std::vector<std::int64_t> ScenarioReader::read_sizes(YamlMap& map) {
  std::vector<std::int64_t> sizes;
  const YamlValue values = map.need("sizes");
  if (values.kind() == YamlValue::Kind::list && values.one_or_more().empty()) {
    values.problem("no sizes", "such as 1GiB, or 4KiB..1GiB");
  }
  for (const YamlValue& value : values.one_or_more()) {
    const auto text = value.text("size");
    if (!text) continue;
    if (const auto list = located(value, [&] { return parse_byte_list(*text); })) {
      for (const std::int64_t bytes : *list) {
        if (std::ranges::count(sizes, bytes) == 0) sizes.push_back(bytes);
      }
    }
  }
  return sizes;
}

std::vector<std::string> ScenarioReader::read_algorithms(YamlMap& map, Collective collective) {
  const YamlValue value = map.get("algorithms");
  if (!value.present()) return Study::applicable(collective);
  std::vector<std::string> algorithms;
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(algorithms, name) == 0) algorithms.push_back(name);
  };
  for (const YamlValue& item : value.one_or_more()) {
    const auto spec = item.text("algorithm");
    if (!spec) continue;
    if (*spec == "all") {
      for (const std::string& name : Study::applicable(collective)) add(name);
    } else {
      add(algorithm_name(item, *spec, collective));
    }
  }
  if (algorithms.empty()) value.problem("no algorithms", "all, or a list of names");
  return algorithms;
}

/// `spec`, after checking it; paths of tuning tables count from the scenario's folder.
std::string ScenarioReader::algorithm_name(const YamlValue& value, const std::string& spec,
                                           Collective collective) {
  const std::string algorithm = in_folder(spec, directory_.string());
  located(value, [&] {
    check_algorithm(algorithm, collective);
    return true;
  });
  return algorithm;
}

/// A list of plain numbers is one set; any other list holds a set per element.
std::vector<GpuSet> ScenarioReader::read_gpu_sets(YamlMap& map) {
  const YamlValue value = map.get("gpus");
  if (!value.present()) return {{}};
  std::vector<YamlValue> values = {value};
  if (value.kind() == YamlValue::Kind::list) {
    const std::vector<YamlValue> items = value.items("gpus");
    const bool one_set = std::ranges::all_of(items, [](const YamlValue& item) {
      const bool scalar = item.kind() == YamlValue::Kind::scalar;
      const auto text = scalar ? item.text("gpu") : std::nullopt;
      return text && !text->empty() && text->find_first_not_of("0123456789") == std::string::npos;
    });
    if (!one_set) values = items;
  }
  std::vector<GpuSet> sets;
  for (const YamlValue& set : values) {
    auto gpus = read_gpu_set(set);
    // A wrong set is diagnosed; its machine is looked at all the same.
    sets.push_back({set, gpus ? std::move(*gpus) : std::vector<int>{}});
  }
  return sets;
}

RelaySet ScenarioReader::read_relay_set(const YamlValue& value) {
  RelaySet set{value, false, {}};
  if (!value.present()) return set;
  const auto gpus = read_gpu_set(value);
  if (!gpus) return set;
  set.all = gpus->empty();
  set.gpus = *gpus;
  return set;
}

std::optional<ScenarioExecution> ScenarioReader::read_execution(const YamlValue& value,
                                                                Collective collective) {
  if (!value.present()) return std::nullopt;
  ScenarioExecution execution;
  YamlMap map(value, "execute");
  execution.backend = read_choice<std::string>(map.get("backend"), "backend", execution.backend,
                                               {{"host", "host"}});
  const YamlValue size = map.need("size");
  if (const auto text = size.text("size")) {
    if (const auto bytes = parse_bytes(*text)) {
      execution.size_bytes = *bytes;
    } else {
      size.problem(fmt::format("{} is not a size", quote(*text)), "such as 64MiB");
    }
  }
  const YamlValue algorithm = map.get("algorithm");
  if (const auto spec = algorithm.text("algorithm"); spec && *spec != "best") {
    execution.algorithm = algorithm_name(algorithm, *spec, collective);
  }
  map.finish();
  return execution;
}

/// The question makes sense on its machine: profile, GPUs, relays and root exist there. Fills in
/// the relays where they are all that are no ranks.
void ScenarioReader::check_machine(const YamlValue& topology, const YamlValue& root,
                                   const YamlValue& profile, const GpuSet& gpu_set,
                                   const RelaySet& relay_set, Query& question) {
  const Topology* machine = load(topology, question.topology);
  if (machine == nullptr) return;
  const auto found = located(profile.present() ? profile : topology,
                             [&] { return &machine->profile(question.profile); });
  if (!found) return;
  const Router router(*machine, **found, question.links);
  if (relay_set.all) question.relays = idle_gpus(*machine, question.gpus);
  located(relay_set.value.present() ? relay_set.value : topology,
          [&] { return chosen_relays(*machine, question.gpus, question.relays); });
  const auto placement = located(gpu_set.value.present() ? gpu_set.value : topology,
                                 [&] { return place_ranks(router, question.gpus); });
  if (placement && question.root >= static_cast<int>(placement->ranks.size())) {
    root.problem(
        fmt::format("root {} is not one of the {} ranks", question.root, placement->ranks.size()));
  }
}

const Topology* ScenarioReader::load(const YamlValue& value, const std::string& spec) {
  auto [machine, is_new] = machines_.try_emplace(spec);
  if (is_new) machine->second = located(value, [&] { return load_topology(spec); });
  return machine->second ? &*machine->second : nullptr;
}

}  // namespace

Scenario parse_scenario(std::string_view yaml, const std::string& file) {
  DiagnosticList problems;
  const YamlValue document = YamlValue::parse(yaml, file, problems);
  Scenario scenario = ScenarioReader(file, problems).read(document);
  problems.throw_if_any();
  return scenario;
}

}  // namespace espalier
