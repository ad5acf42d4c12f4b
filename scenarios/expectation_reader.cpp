// SPDX-License-Identifier: Apache-2.0
#include "scenarios/expectation_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/reading.h"

namespace espalier {

namespace {

/// What a figure says of its query; nothing: any.
struct Wanted {
  std::optional<std::string> topology;
  std::optional<std::vector<int>> gpus;
  std::optional<std::int64_t> size_bytes;
  std::optional<std::string> algorithm;

  bool admits(const Query& query) const {
    return (!topology || query.topology == *topology) && (!gpus || query.gpus == *gpus) &&
           (!size_bytes || query.size_bytes == *size_bytes) &&
           (!algorithm || query.algorithm == *algorithm);
  }
};

/// "2%" or 0.02.
std::optional<double> read_share(const YamlValue& value) {
  const auto text = value.text("tolerance");
  if (!text) return std::nullopt;
  const bool per_cent = text->ends_with('%');
  const auto number = parse_number(text->substr(0, text->size() - (per_cent ? 1 : 0)));
  if (!number || *number < 0) {
    value.problem(fmt::format("{} is no tolerance", quote(*text)), "such as 2%");
    return std::nullopt;
  }
  return per_cent ? *number / 100 : *number;
}

std::optional<double> read_number(YamlMap& map, const std::string& key) {
  return map.get(key).number(key);
}

}  // namespace

std::vector<ExpectedResult> ExpectationReader::read(const YamlValue& value) const {
  std::vector<ExpectedResult> expectations;
  for (const YamlValue& item : value.one_or_more()) {
    if (auto expectation = read_one(item)) expectations.push_back(std::move(*expectation));
  }
  return expectations;
}

std::optional<ExpectedResult> ExpectationReader::read_one(const YamlValue& value) const {
  YamlMap map(value, "an expectation");
  ExpectedResult expectation;
  expectation.where = value.where();
  expectation.title = map.need("title").text("title of an expectation").value_or("");
  expectation.claim = map.text("claim");
  expectation.note = map.text("note");
  Choices<Measure> measures;
  for (const Measure measure : all_measures()) measures.emplace_back(to_string(measure), measure);
  expectation.measure = read_choice(map.get("measure"), "measure", Measure::algbw_gbps, measures);
  const auto of = read_figure(map.need("of"), expectation.measure);
  const YamlValue over = map.get("over");
  if (over.present()) expectation.over = read_figure(over, expectation.measure);
  read_range(map, expectation);
  expectation.verdict = read_choice<Verdict>(map.get("verdict"), "verdict", Verdict::reproduced,
                                             {{"reproduced", Verdict::reproduced},
                                              {"direction", Verdict::direction},
                                              {"unexplained", Verdict::unexplained}});
  const bool has_range = map.get("at_least").present() || map.get("at_most").present();
  if (expectation.verdict == Verdict::direction && (!map.get("paper").present() || !has_range)) {
    map.problem(
        "a direction is what lies between at_least and at_most but is not the paper's figure",
        "give paper, and at_least or at_most");
  }
  if (expectation.verdict != Verdict::reproduced && expectation.note.empty()) {
    map.problem("what is not reproduced needs a note that says why");
  }
  map.finish();
  if (!of || (over.present() && !expectation.over)) return std::nullopt;
  expectation.of = *of;
  return expectation;
}

/// The paper's figure and the range.
void ExpectationReader::read_range(YamlMap& map, ExpectedResult& expectation) const {
  expectation.paper = read_number(map, "paper");
  expectation.at_least = read_number(map, "at_least");
  expectation.at_most = read_number(map, "at_most");
  const YamlValue tolerance = map.get("tolerance");
  const bool has_paper = map.get("paper").present();
  if (has_paper && !tolerance.present()) {
    map.problem("paper needs a tolerance", "such as tolerance: 2%");
  } else if (!has_paper && tolerance.present()) {
    tolerance.problem("a tolerance is that of paper, which is not given");
  }
  expectation.tolerance = read_share(tolerance).value_or(0);
  if (!has_paper && !map.get("at_least").present() && !map.get("at_most").present()) {
    map.problem("nothing is expected", "give paper with tolerance, at_least or at_most");
  }
  if (expectation.at_least && expectation.at_most && *expectation.at_least > *expectation.at_most) {
    map.problem("at_least is more than at_most");
  }
}

std::optional<Figure> ExpectationReader::read_figure(const YamlValue& value,
                                                     Measure measure) const {
  if (!value.present()) return std::nullopt;
  YamlMap map(value, "a figure");
  Wanted wanted;
  bool wrong = false;
  if (const auto spec = map.get("topology").text("topology")) {
    wanted.topology = machine_path(*spec, folder_);
  }
  if (const YamlValue gpus = map.get("gpus"); gpus.present()) {
    wanted.gpus = read_gpu_set(gpus);
    wrong = !wanted.gpus;
  }
  const YamlValue size = map.get("size");
  if (const auto text = size.text("size")) {
    wanted.size_bytes = parse_bytes(*text);
    if (!wanted.size_bytes) {
      size.problem(fmt::format("{} is not a size", quote(*text)), "such as 64MiB");
      wrong = true;
    }
  }
  if (const auto spec = map.get("algorithm").text("algorithm")) {
    wanted.algorithm = in_folder(*spec, folder_.string());
  }
  const auto link = read_link(map, measure);
  map.finish();
  const auto link_text = link ? link->text("link") : std::nullopt;
  if (wrong || !link || (link->present() && !link_text)) return std::nullopt;
  const std::string name = link_text.value_or("");

  std::vector<Figure> found;
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    for (std::size_t query = 0; query < tables_[table].size(); ++query) {
      if (wanted.admits(tables_[table][query])) found.push_back({table, query, name});
    }
  }
  if (found.size() == 1) {
    const Figure& figure = found.front();
    const Query& query = tables_[figure.table][figure.query];
    return name.empty() || check_link(*link, name, query) ? std::optional(figure) : std::nullopt;
  }
  value.problem(found.empty()
                    ? "no question of the block is meant by this"
                    : fmt::format("{} questions of the block are meant by this", found.size()),
                "topology, gpus, size and algorithm, as the block has them, tell one");
  return std::nullopt;
}

/// A missing value for measures that need none; nothing when it is wrong.
std::optional<YamlValue> ExpectationReader::read_link(YamlMap& map, Measure measure) const {
  if (measure == Measure::link_share) {
    const YamlValue link = map.need("link");
    return link.present() ? std::optional(link) : std::nullopt;
  }
  if (const YamlValue link = map.get("link"); link.present()) {
    link.problem(fmt::format("{} is not of a link", to_string(measure)), "measure: link_share");
  }
  return YamlValue();
}

bool ExpectationReader::check_link(const YamlValue& value, const std::string& name,
                                   const Query& query) const {
  const Topology* machine = machines_(query.topology);
  if (machine == nullptr) return false;
  std::vector<std::string> names;
  for (LinkId link = 0; link < static_cast<LinkId>(machine->links.size()); ++link) {
    for (const bool forward : {true, false}) names.push_back(link_name(*machine, link, forward));
  }
  if (std::ranges::count(names, name) > 0) return true;
  value.problem(fmt::format("{} has no link {}", query.topology, quote(name)),
                did_you_mean(name, names));
  return false;
}

}  // namespace espalier
