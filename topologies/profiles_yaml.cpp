// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "core/words.h"
#include "topologies/cpu_maker.h"
#include "topologies/embedded.h"
#include "topologies/machine_file.h"
#include "topologies/synonyms.h"

namespace espalier {

namespace {

/// A key in microseconds; untouched, to the last bit, when absent.
double read_seconds(YamlMap& map, const std::string& key, double default_s) {
  const double us = read_figure(map, key, kMicroseconds, -1);
  return us < 0 ? default_s : us * 1e-6;
}

/// "longer: [{above_kib: 4, overhead_us: 2}]", in place of those of a base.
void read_longer(const YamlValue& value, LinkProfile& link) {
  constexpr double kKib = 1024;
  if (!value.present()) return;
  link.longer.clear();
  for (const YamlValue& one : value.one_or_more()) {
    YamlMap map(one, "a length of messages");
    map.need("above_kib");
    map.need("overhead_us");
    StartUp::Longer longer;
    longer.above_bytes = kKib * read_figure(map, "above_kib", kKibibytes, 1);
    longer.s = read_seconds(map, "overhead_us", 0);
    map.finish();
    link.longer.push_back(longer);
  }
}

void read_link_profiles(const YamlValue& value, const std::map<std::string, LinkKind>& kinds,
                        Profile& profile) {
  YamlMap links(value, fmt::format("'links' of profile {}", quote(profile.name)));
  for (const auto& [kind, figures] : links.entries()) {
    if (!kinds.contains(kind)) {
      links.key_problem(kind, "unknown link kind " + quote(kind), meant_link_kind(kind, kinds));
      continue;
    }
    LinkProfile& link = profile.links[kind];
    YamlMap map(figures, fmt::format("{} in profile {}", quote(kind), quote(profile.name)));
    link.efficiency = read_figure(map, "efficiency", kEfficiency, link.efficiency);
    link.overhead_s = read_seconds(map, "overhead_us", link.overhead_s);
    read_longer(map.get("longer"), link);
    map.finish();
  }
}

/// "v100: 7.2" and so on: GB/s by the beginning of a GPU's model.
void read_rates(YamlMap& map, const std::string& key, std::map<std::string, double>& rates) {
  const YamlValue value = map.get(key);
  if (!value.present()) return;
  YamlMap entries(value, map.describe(key));
  for (const auto& [model, unused] : entries.entries()) {
    rates[model] = read_figure(entries, model, kGbps, 1);
  }
}

void read_times(YamlMap& map, const std::string& key, std::map<std::string, double>& times_s) {
  const YamlValue value = map.get(key);
  if (!value.present()) return;
  YamlMap entries(value, map.describe(key));
  for (const auto& [model, unused] : entries.entries()) {
    times_s[model] = read_seconds(entries, model, 0);
  }
}

/// By makers of CPUs. `read(entries, maker)`: -1 where the maker has no figure of its own.
template <class Read>
void read_by_cpu(YamlMap& map, const std::string& key, std::map<std::string, double>& figures,
                 const Read& read) {
  const YamlValue value = map.get(key);
  if (!value.present()) return;
  YamlMap entries(value, map.describe(key));
  for (const CpuMaker one : {CpuMaker::intel, CpuMaker::amd, CpuMaker::power, CpuMaker::other}) {
    const std::string maker(to_string(one));
    if (const double figure = read(entries, maker); figure >= 0) figures[maker] = figure;
  }
  entries.finish();
}

void read_hops(YamlMap& of_protocol, const std::string& key, const std::string& protocol,
               std::map<LinkClass, double>& hops_s) {
  const YamlValue value = of_protocol.get(key);
  YamlMap map(value, fmt::format("'{}' of protocol {}", key, quote(protocol)));
  for (const LinkClass one : {LinkClass::gpu_fabric, LinkClass::host, LinkClass::network}) {
    const double us = read_figure(map, std::string(to_string(one)), kMicroseconds, -1);
    if (us >= 0) hops_s[one] = us * 1e-6;
  }
  map.finish();
}

void read_protocol(const YamlValue& value, Protocol& protocol) {
  constexpr double kKib = 1024;
  YamlMap map(value, "protocol " + quote(protocol.name));
  protocol.title = map.text("title", protocol.title);
  protocol.wire = read_figure(map, "wire", kWire, protocol.wire);
  protocol.call_s = read_seconds(map, "call_us", protocol.call_s);
  read_hops(map, "hop_us", protocol.name, protocol.hop_s);
  read_hops(map, "hold_us", protocol.name, protocol.hold_s);
  read_times(map, "hop_more_us", protocol.hop_more_s);
  protocol.min_op_s = read_seconds(map, "min_op_us", protocol.min_op_s);
  read_by_cpu(map, "checked_gbps", protocol.checked_gbps,
              [](YamlMap& entries, const std::string& maker) {
                return read_figure(entries, maker, kGbps, -1);
              });
  protocol.slice_bytes =
      kKib * read_figure(map, "slice_kib", kKibibytes, protocol.slice_bytes / kKib);
  protocol.min_slice_bytes =
      kKib * read_figure(map, "min_slice_kib", kKibibytes, protocol.min_slice_bytes / kKib);
  protocol.slices_per_op = read_whole(map, "slices_per_op", kCount, protocol.slices_per_op);
  protocol.drift_ops = read_whole(map, "drift_ops", kLimit, protocol.drift_ops);
  protocol.lockstep_bytes =
      kKib * read_figure(map, "lockstep_kib", kKibibytes, protocol.lockstep_bytes / kKib);
  protocol.step_bytes = kKib * read_figure(map, "step_kib", kKibibytes, protocol.step_bytes / kKib);
  protocol.loop_bytes = kKib * read_figure(map, "loop_kib", kKibibytes, protocol.loop_bytes / kKib);
  protocol.pass_bytes = kKib * read_figure(map, "pass_kib", kKibibytes, protocol.pass_bytes / kKib);
  protocol.streamed_parts = read_whole(map, "streamed_parts", kCount, protocol.streamed_parts);
  protocol.drain_gbps = read_figure(map, "drain_gbps", kGbps, protocol.drain_gbps);
  read_rates(map, "copy_gbps", protocol.copy_gbps);
  read_rates(map, "block_gbps", protocol.block_gbps);
  read_rates(map, "gpu_gbps", protocol.gpu_gbps);
  const YamlValue not_on = map.get("not_on");
  if (not_on.present()) protocol.not_on.clear();
  for (const YamlValue& model : not_on.one_or_more()) {
    protocol.not_on.push_back(model.text("a GPU model").value_or(""));
  }
  protocol.over_host_links = map.boolean("over_host_links", protocol.over_host_links);
  protocol.in_switch = map.boolean("in_switch", protocol.in_switch);
  map.finish();
}

void read_protocols(const YamlValue& value, Profile& profile) {
  YamlMap map(value, fmt::format("'protocols' of profile {}", quote(profile.name)));
  for (const auto& [given, description] : map.entries()) {
    const std::string name = lower_case(given);  // as questions are read
    if (name == "auto" || name.find(':') != std::string::npos) {
      map.key_problem(given, "a protocol cannot be named " + quote(given));
      continue;
    }
    auto known = std::ranges::find(profile.protocols, name, &Protocol::name);
    if (known == profile.protocols.end()) {
      known = profile.protocols.insert(known, Protocol{});
      known->name = name;
    }
    read_protocol(description, *known);
  }
}

void read_switch_ops(const YamlValue& value, Profile& profile) {
  constexpr double kKib = 1024;
  YamlMap table(value, fmt::format("'in_switch' of profile {}", quote(profile.name)));
  for (const auto& [model, costs] : table.entries()) {
    SwitchOps& ops = profile.in_switch[model];
    const std::string what = fmt::format("ops in switches of {}", quote(model));
    YamlMap map(costs, what);
    ops.wire = read_figure(map, "wire", kWire, ops.wire);
    ops.call_s = read_seconds(map, "call_us", ops.call_s);
    ops.slice_s = read_seconds(map, "slice_us", ops.slice_s);
    const YamlValue slices = map.get("slices");
    if (slices.present()) ops.slices.clear();
    for (const YamlValue& one : slices.items("'slices'")) {
      YamlMap entry(one, "slices of " + what);
      entry.need("kib");
      const double previous = ops.slices.empty() ? 0 : ops.slices.back().below_bytes;
      SwitchOps::Slices& cut = ops.slices.emplace_back();
      cut.bytes = kKib * read_figure(entry, "kib", kKibibytes, 0);
      cut.below_bytes = kKib * read_figure(entry, "below_kib", kKibibytes, 0);
      cut.wire = read_figure(entry, "wire", kWire, 0);
      cut.fill_s = read_seconds(entry, "fill_us", 0);
      entry.finish();
      const bool is_open = cut.below_bytes <= 0;
      if (ops.slices.size() > 1 && (previous <= 0 || (!is_open && cut.below_bytes <= previous))) {
        one.problem("slices must come in order of 'below_kib'; only the last may be without");
      }
    }
    map.finish();
  }
}

/// "mi: msccl_amd": names of profiles, which are looked up when all are known.
void read_stand_ins(const YamlValue& value, Profile& profile) {
  YamlMap map(value, fmt::format("'on_models' of profile {}", quote(profile.name)));
  for (const auto& [model, name] : map.entries()) {
    profile.on_models[model] = name.text("the name of a profile").value_or("");
  }
}

LaunchCost read_launch_cost(YamlMap& map) {
  LaunchCost cost;
  cost.call_s = read_seconds(map, "call_us", 0);
  cost.block_s = read_seconds(map, "block_us", 0);
  const YamlValue since = map.get("since");
  if (const auto text = since.text("since")) {
    const std::optional<int> version = library_version(*text);
    if (!version) since.problem(quote(*text) + " is no version of a library", "such as \"2.18\"");
    cost.since = version.value_or(0);
  }
  map.finish();
  return cost;
}

/// A number, or `none` for the longer of both times, which takes away what a base says.
void read_sharpness(YamlMap& launch, double& sharpness) {
  const YamlValue value = launch.get("sharpness");
  if (value.kind() == YamlValue::Kind::scalar && value.text("sharpness") == kNoSharpness) {
    sharpness = std::numeric_limits<double>::infinity();
  } else {
    sharpness = read_figure(launch, "sharpness", kSharpness, sharpness);
  }
}

/// Replaces what a base says, but for how sharp the change-over is: that is known of few runtimes.
void read_launch(const YamlValue& value, Profile& profile) {
  if (!value.present()) return;
  profile.launch = {.sharpness = profile.launch.sharpness};
  YamlMap launch(value, fmt::format("'launch' of profile {}", quote(profile.name)));
  if (const YamlValue per_gpu = launch.get("per_gpu"); per_gpu.present()) {
    YamlMap map(per_gpu, "a process per GPU");
    profile.launch.per_gpu = read_launch_cost(map);
  }
  for (const YamlValue& one : launch.get("single").one_or_more()) {
    YamlMap map(one, "one process for all GPUs");
    const LaunchCost cost = read_launch_cost(map);
    std::vector<LaunchCost>& known = profile.launch.single;
    if (!known.empty() && cost.since <= known.back().since) {
      one.problem("launch costs must come in order of versions ('since')");
    }
    known.push_back(cost);
  }
  read_sharpness(launch, profile.launch.sharpness);
  if (const YamlValue graph = launch.get("graph"); graph.present()) {
    YamlMap map(graph, "a CUDA graph");
    profile.launch.graph_saves_s = read_seconds(map, "saves_us", 0);
    map.finish();
  }
  launch.finish();
}

/// "percent: 5" of all messages between two sizes, or of some bands of these sizes.
void read_percent(YamlMap& row, const ComparedError& all_sizes,
                  std::vector<ComparedError>& errors) {
  const YamlValue percent = row.need("percent");
  if (percent.kind() != YamlValue::Kind::map) {
    errors.push_back(all_sizes);
    errors.back().relative = read_figure(row, "percent", kPercent, 0) / 100;
    return;
  }
  YamlMap bands(percent, "'percent'");
  for (const SizeBand& band : size_bands()) {
    ComparedError of_band = restricted_to(all_sizes, band);
    const std::string title(band.title);
    const YamlValue value = bands.get(title);
    if (!value.present()) continue;
    of_band.relative = read_figure(bands, title, kPercent, 0) / 100;
    if (of_band.above_bytes >= of_band.up_to_bytes) {
      value.problem(fmt::format("there are no messages {} between 'above_kib' and 'up_to_kib'",
                                quote(band.title)));
    }
    errors.push_back(std::move(of_band));
  }
  bands.finish();
}

/// One or several; none where the key is absent.
std::vector<std::string> read_words(YamlMap& map, const std::string& key, std::string_view what) {
  std::vector<std::string> words;
  for (const YamlValue& word : map.get(key).one_or_more()) {
    words.push_back(word.text(what).value_or(""));
  }
  return words;
}

/// "launch: single" or a list; none where the key is absent.
std::vector<LaunchMode> read_launches(YamlMap& map) {
  std::vector<LaunchMode> launches;
  for (const YamlValue& word : map.get("launch").one_or_more()) {
    const std::string name = word.text("a launch mode").value_or("");
    const auto known = std::ranges::find_if(
        all_launch_modes(), [&](LaunchMode mode) { return to_string(mode) == name; });
    if (known != all_launch_modes().end()) {
      launches.push_back(*known);
      continue;
    }
    std::vector<std::string> names;
    for (const LaunchMode mode : all_launch_modes()) names.emplace_back(to_string(mode));
    word.problem(fmt::format("{} is not a launch mode", quote(name)), did_you_mean(name, names));
  }
  return launches;
}

void read_errors(const YamlValue& value, Profile& profile) {
  constexpr double kKib = 1024;
  for (const YamlValue& one : value.one_or_more()) {
    YamlMap map(one, fmt::format("an error of profile {}", quote(profile.name)));
    ComparedError row;
    map.need("gpus");
    row.models = read_words(map, "gpus", "a GPU model");
    row.collectives = read_words(map, "collectives", "a collective");
    row.algorithms = read_words(map, "algorithms", "an algorithm");
    row.forced = read_words(map, "forced", "a parameter");
    row.launches = read_launches(map);
    row.min_ranks = read_whole(map, "min_ranks", kCount, row.min_ranks);
    row.max_ranks = read_whole(map, "max_ranks", kCount, row.max_ranks);
    row.in_switch = map.boolean("in_switch", false);
    row.in_fabric = read_choice(map, "links", {"fabric", "all"}, 0) == 0;
    row.above_bytes = kKib * read_figure(map, "above_kib", kKibibytes, 0);
    row.up_to_bytes = kKib * read_figure(map, "up_to_kib", kKibibytes, row.up_to_bytes / kKib);
    map.need("compared");
    row.compared = map.text("compared", "");
    if (row.above_bytes >= row.up_to_bytes) {
      one.problem("'above_kib' must be less than 'up_to_kib'");
    }
    read_percent(map, row, profile.errors);
    map.finish();
  }
}

/// A profile that says `like: kernel` begins with that one's figures.
void read_base(YamlMap& map, const std::map<std::string, Profile>& known, Profile& profile) {
  const YamlValue value = map.get("like");
  const std::optional<std::string> like = value.text(map.describe("like"));
  if (!like) return;
  const auto base = known.find(*like);
  if (base == known.end() || *like == profile.name) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : known) {
      if (name != profile.name) names.push_back(name);
    }
    value.problem(fmt::format("profile {} is like {}, which is not known before it",
                              quote(profile.name), quote(*like)),
                  did_you_mean(*like, names));
    return;
  }
  const std::string name = profile.name;
  profile = base->second;
  profile.name = name;
  profile.like = *like;
  profile.on_models.clear();
}

void read_profile(const YamlValue& value, const std::map<std::string, LinkKind>& kinds,
                  const std::map<std::string, Profile>& known, Profile& profile) {
  YamlMap map(value, "profile " + quote(profile.name));
  read_base(map, known, profile);
  profile.errors.clear();  // of figures that are another's, or are changed here
  profile.title = map.text("title", profile.title);
  profile.uses_measured = map.boolean("uses_measured", profile.uses_measured);
  profile.models_memory = map.boolean("models_memory", profile.models_memory);
  profile.reduction = static_cast<ReductionMode>(
      read_choice(map, "reduction", {"free", "fused", "separate", "reading"},
                  static_cast<int>(profile.reduction)));
  profile.gets_wait = map.boolean("gets_wait", profile.gets_wait);
  profile.library = map.text("library", profile.library);
  profile.call_overhead_s = read_seconds(map, "call_overhead_us", profile.call_overhead_s);
  profile.local_overhead_s = read_seconds(map, "local_overhead_us", profile.local_overhead_s);
  profile.reduce_overhead_s = read_seconds(map, "reduce_overhead_us", profile.reduce_overhead_s);
  profile.staging_overhead_s = read_seconds(map, "staging_overhead_us", profile.staging_overhead_s);
  profile.message_s = read_seconds(map, "message_us", profile.message_s);
  read_by_cpu(map, "message_more_us", profile.message_more_s,
              [](YamlMap& entries, const std::string& maker) {
                return read_figure(entries, maker, kMicroseconds, -1e6) * 1e-6;
              });
  profile.blocks = read_whole(map, "blocks", kCount, profile.blocks);
  profile.splits_lanes = map.boolean("splits_lanes", profile.splits_lanes);
  profile.fifo_steps = read_whole(map, "fifo_steps", kCount, profile.fifo_steps);
  profile.interprets = map.boolean("interprets", profile.interprets);
  profile.dependence_s = read_seconds(map, "dependence_us", profile.dependence_s);
  read_stand_ins(map.get("on_models"), profile);
  read_link_profiles(map.get("links"), kinds, profile);
  read_protocols(map.get("protocols"), profile);
  read_switch_ops(map.get("in_switch"), profile);
  read_launch(map.get("launch"), profile);
  read_errors(map.get("errors"), profile);
  map.finish();
}

ProfileTable read_built_in_profiles() {
  const auto& files = embedded_files();
  const auto found = std::find_if(files.begin(), files.end(), [](const EmbeddedFile& file) {
    return file.name == "profiles.yaml";
  });
  CHECK(found != files.end());
  DiagnosticList problems;
  const YamlValue root = YamlValue::parse(found->text, "topologies/profiles.yaml", problems);
  YamlMap map(root, "the profiles");
  const YamlValue schema = map.need("schema");
  if (schema.text("'schema'") != "espalier.profiles/1") {
    schema.problem("the schema of this file must be 'espalier.profiles/1'");
  }
  ProfileTable table;
  for (const YamlValue& source : map.need("sources").one_or_more()) {
    table.sources.push_back(source.text("a source").value_or(""));
  }
  read_link_kinds(map.need("link_kinds"), table.link_kinds);
  read_profiles(map.need("profiles"), table.link_kinds, table.profiles.edit());
  map.need("grades");  // see profile_grades.h
  map.finish();
  problems.throw_if_any();
  return table;
}

}  // namespace

double read_figure(YamlMap& map, const std::string& key, const Range& range, double default_value) {
  const YamlValue value = map.get(key);
  const std::optional<double> number = value.number(map.describe(key));
  if (!number) return default_value;
  if (range.contains(*number)) return *number;
  value.problem(outside(range, map.describe(key), *number));
  return default_value;
}

int read_whole(YamlMap& map, const std::string& key, const Range& range, int default_value) {
  const YamlValue value = map.get(key);
  const std::optional<std::int64_t> number = value.integer(map.describe(key));
  if (!number) return default_value;
  if (range.contains(static_cast<double>(*number))) return static_cast<int>(*number);
  value.problem(outside(range, map.describe(key), static_cast<double>(*number)));
  return default_value;
}

int read_choice(YamlMap& map, const std::string& key, const std::vector<std::string>& choices,
                int default_value) {
  const YamlValue value = map.get(key);
  const std::optional<std::string> word = value.text(map.describe(key));
  if (!word) return default_value;
  const auto found = std::find(choices.begin(), choices.end(), *word);
  if (found != choices.end()) return static_cast<int>(found - choices.begin());
  value.problem(fmt::format("unknown {} {}", key, quote(*word)), did_you_mean(*word, choices));
  return default_value;
}

void read_link_kinds(const YamlValue& value, std::map<std::string, LinkKind>& kinds) {
  YamlMap map(value, "'link_kinds'");
  for (const auto& [kind, description] : map.entries()) {
    YamlMap entry(description, "link kind " + quote(kind));
    entry.need("class");
    LinkKind& known = kinds[kind];
    known.link_class = static_cast<LinkClass>(read_choice(
        entry, "class", {"gpu_fabric", "host", "network"}, static_cast<int>(LinkClass::host)));
    known.title = entry.text("title", known.title);
    known.source = entry.text("source", known.source);
    entry.finish();
  }
}

std::string meant_link_kind(const std::string& word, const std::map<std::string, LinkKind>& kinds) {
  std::vector<std::string> names;
  for (const auto& [kind, unused] : kinds) names.push_back(kind);
  return did_you_mean(word, names, link_kind_synonyms());
}

namespace {

/// GB/s that a memory reaches; those that are not given are not modelled.
void read_memory_rates(YamlMap& map, MemoryRates& rates) {
  rates.gbps = read_figure(map, "gbps", kGbps, rates.gbps);
  rates.reduce_gbps = read_figure(map, "reduce_gbps", kGbps, 0);
  read_exchange(map, rates.exchange);
}

WorkingSet read_working_set(const YamlValue& value, const std::string& memory) {
  YamlMap map(value, "a working set of memory " + quote(memory));
  WorkingSet set;
  map.need("mib");
  set.bytes = kMebibyte * read_figure(map, "mib", kMebibytes, 1);
  set.all.gbps = 1;
  YamlMap all(map.need("all"), map.describe("all"));
  all.need("gbps");
  read_memory_rates(all, set.all);
  all.finish();
  if (const YamlValue rates = map.get("one"); rates.present()) {
    YamlMap one(rates, map.describe("one"));
    read_memory_rates(one, set.one);
    one.finish();
  }
  map.finish();
  return set;
}

}  // namespace

void read_exchange(YamlMap& map, ExchangeRates& rates) {
  const YamlValue value = map.get("exchange_gbps");
  if (!value.present()) return;
  rates = {};
  if (value.kind() != YamlValue::Kind::map) {
    rates.gbps = read_figure(map, "exchange_gbps", kGbps, 1);
    return;
  }
  YamlMap kinds(value, map.describe("exchange_gbps"));
  kinds.need("fresh");
  rates.gbps = read_figure(kinds, "fresh", kGbps, 1);
  rates.unchanged_gbps = read_figure(kinds, "unchanged", kGbps, 0);
  rates.passed_on_gbps = read_figure(kinds, "passed_on", kGbps, 0);
  kinds.finish();
}

void read_memories(const YamlValue& value, std::map<std::string, SharedMemory>& memories) {
  YamlMap map(value, "'memories'");
  for (const auto& [name, figures] : map.entries()) {
    YamlMap entry(figures, "memory " + quote(name));
    entry.need("gbps");
    SharedMemory& memory = memories[name];
    memory.gbps = 1;
    read_memory_rates(entry, memory);
    for (const YamlValue& set : entry.get("working_sets").items("'working_sets'")) {
      memory.working_sets.push_back(read_working_set(set, name));
    }
    entry.finish();
  }
}

void read_profiles(const YamlValue& value, const std::map<std::string, LinkKind>& kinds,
                   std::map<std::string, Profile>& profiles) {
  YamlMap map(value, "'profiles'");
  for (const auto& [name, description] : map.entries()) {
    Profile& profile = profiles[name];
    profile.name = name;
    if (name.find(':') != std::string::npos) {
      map.key_problem(name, fmt::format("the name of profile {} must not have a ':', which begins "
                                        "a protocol",
                                        quote(name)));
    }
    read_profile(description, kinds, profiles, profile);
  }
  for (const auto& [name, description] : map.entries()) {
    for (const auto& [model, stand_in] : profiles[name].on_models) {
      const auto known = profiles.find(stand_in);
      if (known != profiles.end() && known->second.on_models.empty()) continue;
      description.problem(fmt::format(
          "on {}, profile {} is to be {}, which is {}", model, quote(name), quote(stand_in),
          known == profiles.end() ? "not known" : "replaced there itself"));
    }
  }
}

const ProfileTable& built_in_profiles() {
  static const ProfileTable table = read_built_in_profiles();
  return table;
}

}  // namespace espalier
