// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/units.h"
#include "core/words.h"
#include "core/yaml.h"
#include "scenarios/block_reader.h"
#include "scenarios/chooser.h"
#include "scenarios/expectation_reader.h"
#include "scenarios/reading.h"
#include "scenarios/training_block.h"

namespace espalier {

namespace {

BlockReader::Check serves(Collective collective) {
  return [collective](const std::string& algorithm) { check_algorithm(algorithm, collective); };
}

/// Everything that all queries of a block share.
Query read_question(YamlMap& map, const BlockReader& reader) {
  Query question;
  question.collective = read_collective(map.need("collective"));
  const YamlValue root = map.get("root");
  if (const auto number = root.integer("root")) {
    if (!info(question.collective).rooted) {
      root.problem(fmt::format("{} has no root", to_string(question.collective)));
    } else if (*number < 0 || *number > kMaxPlaces) {
      root.problem("root must be the number of a rank, 0 or more");
    } else {
      question.root = static_cast<int>(*number);
    }
  }
  question.in_place = map.boolean("in_place", false);
  question.launch = read_launch_mode(map.get("launch"));
  question.against_nccl = map.boolean("vs_nccl", false);
  reader.read_transfers(map, question);
  return question;
}

std::optional<ScenarioExecution> read_execution(const YamlValue& value, Collective collective,
                                                const BlockReader& reader) {
  if (!value.present()) return std::nullopt;
  ScenarioExecution execution;
  YamlMap map(value, "execute");
  const YamlValue backend = map.get("backend");
  execution.backend = backend.text("backend").value_or(execution.backend);
  execution.where = backend.where();
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
    execution.algorithm = reader.read_algorithm(algorithm, *spec, serves(collective));
  }
  map.finish();
  return execution;
}

/// Sizes and microseconds, each size once however it is written.
std::map<std::int64_t, double> read_times(const YamlValue& value) {
  std::map<std::int64_t, double> time_s;
  std::map<std::int64_t, std::string> written;
  YamlMap times(value, "measured times");
  const auto entries = times.entries();
  if (value.kind() == YamlValue::Kind::map && entries.empty()) {
    value.problem("'us' of 'measured' needs at least one size", "such as {1MiB: 89.15}");
  }
  for (const auto& [size, time] : entries) {
    const auto bytes = parse_bytes(size);
    const auto us = time.number("a measured time");
    if (!bytes || *bytes <= 0) {
      times.key_problem(size, fmt::format("{} is not a size", quote(size)), "such as 64MiB");
      continue;
    }
    if (const auto [known, is_new] = written.emplace(*bytes, size); !is_new) {
      times.key_problem(size, fmt::format("{} is the same size as {}, which has a time already",
                                          quote(size), quote(known->second)));
      continue;
    }
    if (us && !(*us > 0)) {
      time.problem("a measured time must be more than 0 us");
    } else if (us) {
      time_s[*bytes] = *us * 1e-6;
    }
  }
  return time_s;
}

std::optional<MeasuredSeries> read_measured(const YamlValue& value) {
  if (!value.present()) return std::nullopt;
  MeasuredSeries series;
  YamlMap map(value, "'measured'");
  series.source = map.need("source").text("source of measured times").value_or("");
  series.fitted = map.text("fitted");
  series.time_s = read_times(map.need("us"));
  map.finish();
  return series;
}

CollectiveStudy read_collectives(YamlMap& map, BlockReader& reader) {
  CollectiveStudy study;
  const Query question = read_question(map, reader);
  const YamlValue root = map.get("root");
  study.measured = read_measured(map.get("measured"));
  std::vector<std::int64_t> sizes;
  if (study.measured) {
    for (const auto& [bytes, unused] : study.measured->time_s) sizes.push_back(bytes);
    if (const YamlValue given = map.get("sizes"); given.present()) {
      given.problem("the sizes of a block with measured times are those that were measured",
                    "leave out 'sizes'");
    }
  } else {
    sizes = reader.read_sizes(map.need("sizes"), "sizes");
  }
  const auto algorithms =
      reader.read_algorithms(map.get("algorithms"), question.collective,
                             Study::applicable(question.collective), serves(question.collective));
  study.execute = read_execution(map.get("execute"), question.collective, reader);
  const double questions =
      static_cast<double>(sizes.size()) * static_cast<double>(algorithms.size());
  for (const Place& place : reader.read_places(map, question, questions)) {
    if (place.ranks > 0 && question.root >= place.ranks) {
      root.problem(fmt::format("root {} is not one of the {} ranks", question.root, place.ranks));
    }
    std::vector<Query>& table = study.tables.emplace_back();
    for (const std::int64_t size_bytes : sizes) {
      for (const std::string& algorithm : algorithms) {
        Query& query = table.emplace_back(place.question);
        query.size_bytes = size_bytes;
        query.algorithm = algorithm;
      }
    }
  }
  return study;
}

ScenarioBlock read_block(const YamlValue& value, BlockReader& reader) {
  ScenarioBlock block;
  YamlMap map(value, "a block");
  block.title = map.need("title").text("title of a block").value_or("");
  block.note = map.text("note");
  const YamlValue topology = map.get("topology");
  const YamlValue training = map.get("training");
  const YamlValue expect = map.get("expect");
  if (training.present()) {
    const auto& study = block.study.emplace<TrainingStudy>(read_training(map, training, reader));
    map.finish();
    block.expectations = read_expectations(expect, training_figures(study.tables, reader.folder()));
  } else {
    auto& study = block.study.emplace<CollectiveStudy>(read_collectives(map, reader));
    map.finish();
    const auto machine = [&](const std::string& spec) { return reader.load(topology, spec); };
    block.expectations =
        read_expectations(expect, collective_figures(study.tables, reader.folder(), machine));
    const auto asks_for = [&](Measure measure) {
      return std::ranges::count(block.expectations, measure, &ExpectedResult::measure) > 0;
    };
    for (std::vector<Query>& table : study.tables) {
      for (Query& query : table) {
        if (asks_for(Measure::speedup)) query.against_nccl = true;
        // Of links that are alike a folded program names one.
        if (asks_for(Measure::link_share)) query.may_fold = false;
      }
    }
  }
  return block;
}

/// Of files that scenarios name, and may lie beside them.
constexpr std::array<std::string_view, 4> kOtherSchemas = {
    "espalier.topology/1", "espalier.tuning/1", "espalier.model/1", "espalier.profiles/1"};

Scenario read_scenario(const YamlValue& document, BlockReader& reader) {
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
    scenario.blocks.push_back(read_block(block, reader));
  }
  if (blocks.kind() == YamlValue::Kind::list && scenario.blocks.empty()) {
    blocks.problem("a scenario needs at least one block");
  }
  return scenario;
}

}  // namespace

std::string other_schema(std::string_view yaml) {
  DiagnosticList ignored;
  const YamlValue document = YamlValue::parse(yaml, "", ignored);
  if (document.kind() != YamlValue::Kind::map) return {};
  const auto schema = YamlMap(document, "").get("schema").text("");
  const bool is_other = schema && std::ranges::count(kOtherSchemas, *schema) > 0;
  return is_other ? *schema : "";
}

Scenario parse_scenario(std::string_view yaml, const std::string& file) {
  DiagnosticList problems;
  const YamlValue document = YamlValue::parse(yaml, file, problems);
  BlockReader reader(std::filesystem::path(file).parent_path(), problems);
  Scenario scenario = read_scenario(document, reader);
  problems.throw_if_any();
  return scenario;
}

}  // namespace espalier
