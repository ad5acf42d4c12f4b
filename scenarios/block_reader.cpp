// SPDX-License-Identifier: Apache-2.0
#include "scenarios/block_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/units.h"
#include "core/words.h"
#include "formats/machine.h"
#include "scenarios/chooser.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {

/// One set of GPUs as the file gives it.
struct BlockReader::GpuSet {
  YamlValue value;        ///< for the location of problems; missing: all GPUs
  std::vector<int> gpus;  ///< empty: all
};

/// GPUs that may relay, as the file gives them.
struct BlockReader::RelaySet {
  YamlValue value;   ///< missing: none
  bool all = false;  ///< all that are no ranks
  std::vector<int> gpus;
};

std::vector<Place> BlockReader::read_places(YamlMap& map, Query question, double questions) {
  const YamlValue topologies = map.need("topology");
  const std::vector<GpuSet> gpu_sets = read_gpu_sets(map.get("gpus"));
  const RelaySet relay_set = read_relay_set(map.get("relay"));
  const YamlValue profile_value = map.get("profile");
  std::vector<YamlValue> profiles = profile_value.one_or_more();
  if (profile_value.present() && profiles.empty()) profile_value.problem("no profile");
  if (!profile_value.present()) profiles.emplace_back();  // the usual one
  const std::vector<YamlValue> machines = topologies.one_or_more();
  if (topologies.present() && machines.empty()) topologies.problem("no topology");
  std::vector<Place> places;
  for (const std::size_t count : {machines.size(), gpu_sets.size(), profiles.size()}) {
    questions *= static_cast<double>(count);
  }
  if (questions > kMaxQueries) {
    map.problem(fmt::format("this block asks more than {} questions", kMaxQueries),
                "use fewer topologies, GPU sets, profiles, algorithms and so on");
    return places;
  }
  // What is listed twice is asked once.
  std::set<std::string> seen;
  for (const YamlValue& machine : machines) {
    const auto spec = machine.text("topology");
    if (!spec) continue;
    question.topology = machine_path(*spec, folder_);
    if (!seen.insert(question.topology).second) continue;
    const Topology* topology = load(machine, question.topology);
    std::vector<std::string> names;
    for (const YamlValue& profile : profiles) {
      const std::string name =
          machine_path(profile.text("profile").value_or(question.profile), folder_);
      if (std::ranges::count(names, name) > 0) continue;
      names.push_back(name);
      if (topology == nullptr) continue;
      located(profile.present() ? profile : machine,
              [&] { return topology->profile(names.back()); });
    }
    for (const GpuSet& gpu_set : gpu_sets) {
      Place place{question, 0, topology};
      place.question.gpus = gpu_set.gpus;
      if (topology != nullptr) choose_gpus(machine, gpu_set, relay_set, place);
      for (const std::string& name : names) {
        place.question.profile = name;
        places.push_back(place);
      }
    }
  }
  return places;
}

/// Fills in relays and ranks. The GPUs exist, or there are problems.
void BlockReader::choose_gpus(const YamlValue& machine, const GpuSet& gpu_set,
                              const RelaySet& relay_set, Place& place) const {
  Query& question = place.question;
  question.relays = relay_set.all ? idle_gpus(*place.machine, question.gpus) : relay_set.gpus;
  located(relay_set.value.present() ? relay_set.value : machine,
          [&] { return chosen_relays(*place.machine, question.gpus, question.relays); });
  const auto gpus = located(gpu_set.value.present() ? gpu_set.value : machine,
                            [&] { return chosen_gpus(*place.machine, question.gpus); });
  if (gpus) place.ranks = static_cast<int>(gpus->size());
}

void BlockReader::read_transfers(YamlMap& map, Query& question) const {
  question.links = read_links(map.get("links"));
  const YamlValue chunk = map.get("chunk");
  if (const auto text = chunk.text("chunk"); text && *text != "auto") {
    question.chunk_bytes = parse_bytes(*text);
    if (!question.chunk_bytes) {
      chunk.problem(fmt::format("{} is not a chunk size", quote(*text)),
                    "auto, 0 for whole messages, or a size such as 4MiB");
    }
  }
}

std::vector<std::int64_t> BlockReader::read_sizes(const YamlValue& values,
                                                  const std::string& key) const {
  std::vector<std::int64_t> sizes;
  if (values.kind() == YamlValue::Kind::list && values.one_or_more().empty()) {
    values.problem("no " + key, "such as 1GiB, or 4KiB..1GiB");
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

std::vector<std::string> BlockReader::read_algorithms(const YamlValue& value, Collective collective,
                                                      const std::vector<std::string>& usual,
                                                      const Check& check) const {
  if (!value.present()) return usual;
  std::vector<std::string> algorithms;
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(algorithms, name) == 0) algorithms.push_back(name);
  };
  for (const YamlValue& item : value.one_or_more()) {
    const auto words = item.text("algorithm");
    if (!words) continue;
    for (const std::string& spec : split_algorithms(*words)) {
      if (spec == "all") {
        for (const std::string& name : Study::applicable(collective)) add(name);
      } else {
        add(read_algorithm(item, spec, check));
      }
    }
  }
  if (algorithms.empty()) value.problem("no algorithms", "all, or a list of names");
  return algorithms;
}

std::string BlockReader::read_algorithm(const YamlValue& value, const std::string& spec,
                                        const Check& check) const {
  const std::string algorithm = in_folder(spec, folder_.string());
  located(value, [&] {
    check(algorithm);
    return true;
  });
  return algorithm;
}

const Topology* BlockReader::load(const YamlValue& value, const std::string& topology) {
  auto [machine, is_new] = machines_.try_emplace(topology);
  if (is_new) machine->second = located(value, [&] { return open_machine(topology); });
  return machine->second ? &*machine->second : nullptr;
}

std::shared_ptr<const Model> BlockReader::load_model(const YamlValue& value,
                                                     const std::string& model) {
  auto [known, is_new] = models_.try_emplace(model);
  if (is_new) {
    auto loaded =
        located(value, [&] { return espalier::load_model(machine_path(model, folder_)); });
    if (loaded) known->second = std::make_shared<const Model>(std::move(*loaded));
  }
  return known->second;
}

/// A list of plain numbers is one set; any other list holds a set per element.
std::vector<BlockReader::GpuSet> BlockReader::read_gpu_sets(const YamlValue& value) {
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
    // A wrong set is diagnosed; its machine is looked at all the same.
    std::vector<int> gpus = read_gpu_set(set).value_or(std::vector<int>{});
    if (std::ranges::count(sets, gpus, &GpuSet::gpus) > 0) continue;
    sets.push_back({set, std::move(gpus)});
  }
  return sets;
}

BlockReader::RelaySet BlockReader::read_relay_set(const YamlValue& value) {
  RelaySet set{value, false, {}};
  if (!value.present()) return set;
  const auto gpus = read_gpu_set(value);
  if (!gpus) return set;
  set.all = gpus->empty();
  set.gpus = *gpus;
  return set;
}

}  // namespace espalier
