// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>

#include "backends.h"
#include "cli/arguments.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "core/units.h"
#include "formats/format.h"
#include "report/csv.h"
#include "scenarios/scenario.h"
#include "topologies/load.h"
#include "training/model.h"

namespace espalier {

namespace {

/// One thing of a list, as `list` shows it: a line, and details below it.
struct Item {
  std::string name;
  std::string title;
  std::vector<std::pair<std::string, std::string>> details;
};

std::vector<Item> topologies() {
  std::vector<Item> items;
  for (const CatalogueEntry& entry : catalogue()) items.push_back({entry.name, entry.title, {}});
  for (const GenericMachine& generic : generic_machines()) {
    Item item{generic.name, generic.title, {}};
    for (const GenericParameter& parameter : generic.parameters) {
      item.details.emplace_back(fmt::format("{}={:g}", parameter.name, parameter.default_value),
                                parameter.meaning);
    }
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Item> algorithms() {
  std::vector<Item> items;
  for (const Algorithm* algorithm : all_algorithms()) {
    std::vector<std::string> collectives;
    for (const Collective collective : algorithm->collectives) {
      collectives.emplace_back(to_string(collective));
    }
    Item item{algorithm->name, algorithm->summary, {{"serves", join(collectives, ", ")}}};
    item.details.emplace_back("needs", algorithm->constraints);
    for (const AlgorithmParameter& parameter : algorithm->parameters) {
      item.details.emplace_back(
          fmt::format("{}={}", parameter.name, parameter.default_value),
          fmt::format("{} ({} to {})", parameter.meaning, parameter.minimum, parameter.maximum));
    }
    item.details.emplace_back("from", algorithm->paper);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Item> scenarios() {
  std::vector<Item> items;
  for (const ScenarioEntry& entry : builtin_scenarios()) {
    items.push_back({entry.name, entry.title, {}});
  }
  return items;
}

std::vector<Item> models() {
  std::vector<Item> items;
  for (const ModelEntry& entry : builtin_models()) {
    items.push_back({entry.name, entry.title, {}});
  }
  return items;
}

std::vector<Item> profiles() {
  std::vector<Item> items;
  for (const auto& [name, profile] : built_in_profiles().profiles) {
    items.push_back({name, profile.title, {}});
  }
  return items;
}

/// "25 GB/s"; machines have Ethernet of several speeds.
std::string rates_text(const std::string& kind) {
  std::vector<std::string> rates;
  for (const double gbps : catalogue_rates(kind)) rates.push_back(fmt::format("{:g}", gbps));
  return rates.empty() ? "as the machine says"
                       : join(rates, ", ") + " GB/s of one link, in machines of the catalogue";
}

std::vector<Item> link_kinds() {
  const ProfileTable& table = built_in_profiles();
  std::vector<Item> items;
  for (const auto& [name, kind] : table.link_kinds) {
    Item item{name, kind.title, {{"class", std::string(to_string(kind.link_class))}}};
    item.details.emplace_back("theory", rates_text(name));
    for (const auto& [profile_name, profile] : table.profiles) {
      const auto figures = profile.links.find(name);
      if (figures == profile.links.end() || profile_name == "ideal") continue;
      item.details.emplace_back(
          profile_name, fmt::format("{:g} % of theory, an op {}", 100 * figures->second.efficiency,
                                    cost_text(profile, name, kind.link_class)));
    }
    item.details.emplace_back("from", kind.source);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<Item> collectives() {
  std::vector<Item> items;
  for (const CollectiveInfo& collective : all_collectives()) {
    items.push_back({std::string(collective.name), std::string(collective.meaning), {}});
  }
  return items;
}

std::vector<Item> backends() {
  std::vector<Item> items;
  for (const BackendEntry& entry : all_backends()) {
    items.push_back({std::string(entry.name), std::string(entry.meaning), {}});
  }
  return items;
}

std::vector<Item> formats() {
  std::vector<Item> items;
  for (const Format* format : all_formats()) {
    std::vector<std::string> read, written;
    if (format->read_machine != nullptr) read.emplace_back("machines");
    if (format->read_program != nullptr) read.emplace_back("programs");
    if (format->read_tables != nullptr) read.emplace_back("measured tables");
    if (format->write_machine != nullptr) written.emplace_back("machines");
    if (format->write_program != nullptr) written.emplace_back("programs");
    Item item{format->name, format->title, {}};
    if (!read.empty()) item.details.emplace_back("read", join(read, ", "));
    if (!written.empty()) item.details.emplace_back("written", join(written, ", "));
    items.push_back(std::move(item));
  }
  items.push_back({"esp", "our own text form", {{"read", "programs"}, {"written", "programs"}}});
  items.push_back({"yaml", "our own files", {{"read", "machines"}, {"written", "machines"}}});
  items.push_back({"nccl-csv",
                   "rows of NCCL's example tuner plugin (NCCL_TUNER_CONFIG_FILE)",
                   {{"written", "choices, by tune --format"}}});
  items.push_back({"graphviz",
                   "graphs that dot draws",
                   {{"written", "machines by show --dot, plans by plan --dot"}}});
  std::ranges::sort(items, {}, &Item::name);
  return items;
}

struct Kind {
  std::string_view name;
  std::string_view meaning;
  std::vector<Item> (*items)();
  std::vector<std::string> notes = {};  ///< lines below the list
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"topologies",
       "built-in machines, and generic ones with parameters",
       topologies,
       {"A machine with a network can be a cluster: NAME:nodes=N. Generic ones: "
        "ring:n=1024,gbps=50"}},
      {"algorithms", "which collectives each serves, what it needs, and its source", algorithms},
      {"scenarios", "studies to run", scenarios},
      {"models", "networks to train, with the sizes of their gradients", models},
      {"profiles", "ways of moving bytes", profiles},
      {"link_kinds", "kinds of links, how fast they are, and who says so", link_kinds,
       built_in_profiles().sources},
      {"collectives", "the operations that can be simulated and run", collectives},
      {"backends", "what runs programs", backends},
      {"formats", "files that can be read and written", formats}};
  return all;
}

/// Details of algorithms differ and stand below each; machines share theirs, which follow the list.
void print(const Console& console, const std::vector<Item>& items, bool shared_details) {
  std::size_t name_width = 0;
  for (const Item& item : items) name_width = std::max(name_width, item.name.size());
  Columns shared("ll");
  std::set<std::string> seen;
  for (const Item& item : items) {
    const std::string name = fmt::format("{:<{}}", item.name, name_width);
    console.out << styled(console, Style::bold, name) << "  " << item.title << '\n';
    Columns details("ll");
    for (const auto& [what, text] : item.details) {
      if (!shared_details) details.add({what, text});
      if (shared_details && seen.insert(what).second) shared.add({what, text});
    }
    console.out << details.render(std::string(name_width + 2, ' '));
  }
  if (!seen.empty()) console.out << "\nParameters of generic machines\n" << shared.render("  ");
}

Json items_json(const std::vector<Item>& items) {
  Json all = Json::array();
  for (const Item& item : items) {
    Json& json = all.emplace_back();
    json["name"] = item.name;
    json["title"] = item.title;
    for (const auto& [what, text] : item.details) json["details"][what] = text;
  }
  return all;
}

/// A row for every detail; what has none has a row of its own.
std::string items_csv(const std::vector<Item>& items) {
  CsvText text({"name", "title", "detail", "text"});
  for (const Item& item : items) {
    const Json row = {{"name", item.name}, {"title", item.title}};
    if (item.details.empty()) text.add(row);
    for (const auto& [what, about] : item.details) {
      Json detailed = row;
      detailed["detail"] = what;
      detailed["text"] = about;
      text.add(detailed);
    }
  }
  return text.finish();
}

int run_list(Arguments& arguments, const Console& console) {
  const std::string json_file = arguments.output("--json");
  const std::string csv_file = arguments.output("--csv");
  const std::string wanted = arguments.positionals().empty() ? "" : arguments.positionals().front();
  const auto kind = std::ranges::find(kinds(), wanted, &Kind::name);
  if (kind == kinds().end() && !wanted.empty()) {
    arguments.problem(fmt::format("there is no list of {}", quote(wanted)),
                      did_you_mean(wanted, words_of(WordKind::list_kind)));
  }
  arguments.finish();
  std::vector<Item> items;
  if (kind != kinds().end()) {
    items = kind->items();
  } else {
    for (const Kind& one : kinds())
      items.push_back({std::string(one.name), std::string(one.meaning), {}});
  }
  if (arguments.prints_text()) {
    print(console, items, wanted == "topologies");
    if (kind != kinds().end() && !kind->notes.empty()) {
      console.out << '\n';
      for (const std::string& note : kind->notes) console.out << wrap(note, console.width, "");
    }
  }
  if (!json_file.empty()) {
    const std::string what = wanted.empty() ? "lists" : wanted;
    write_output(console, json_file,
                 dump_results("espalier.list/1", items_json(items), {{"list", what}}));
  }
  if (!csv_file.empty()) write_output(console, csv_file, items_csv(items));
  return 0;
}

}  // namespace

const Verb& list_verb() {
  static const Verb verb = {
      "list",
      "list topologies, algorithms, scenarios, ...",
      "Without WHAT, says what can be listed. The list of algorithms shows which collectives "
      "each one serves, its parameters, what it needs, and the paper it comes from.",
      {"WHAT",
       "topologies, algorithms, scenarios, models, profiles, formats, link_kinds, collectives or "
       "backends",
       WordKind::list_kind, 0, 1},
      {{"--json"}, {"--csv"}},
      {{"list topologies", "machines that can be simulated"},
       {"list algorithms --json -", "as JSON"}},
      run_list};
  return verb;
}

}  // namespace espalier
