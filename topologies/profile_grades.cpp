// SPDX-License-Identifier: Apache-2.0
#include "topologies/profile_grades.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/file.h"
#include "core/yaml.h"
#include "topologies/cpu_maker.h"
#include "topologies/embedded.h"
#include "topologies/load.h"
#include "topologies/profile_file.h"

namespace espalier {

namespace {

constexpr double kMicrosecond = 1e-6;
constexpr double kKib = 1024;

/// A row of `grades`: figures whose names begin so.
struct Grade {
  std::string of;
  std::string grade;
  std::string from;
};
using Grades = std::map<std::string, std::vector<Grade>>;  ///< by profile

Grades read_grades(const YamlValue& all) {
  Grades grades;
  YamlMap by_profile(all, "the grades");
  for (const auto& [profile, rows] : by_profile.entries()) {
    for (const YamlValue& row : rows.items("grades of a profile")) {
      YamlMap entry(row, "a grade");
      const std::string grade = entry.text("grade");
      if (grade != "source" && grade != "fitted" && grade != "estimate") {
        row.problem("a grade is source, fitted or estimate");
      }
      for (const YamlValue& of : entry.need("of").one_or_more()) {
        grades[profile].push_back({of.text("a name").value_or(""), grade, entry.text("from")});
      }
      entry.finish();
    }
  }
  return grades;
}

Grades grades_of(std::string_view yaml, const std::string& file) {
  DiagnosticList problems;
  const YamlValue root = YamlValue::parse(yaml, file, problems);
  YamlMap map(root, "the profiles");
  const YamlValue all = map.get("grades");
  Grades grades;
  if (all.present()) grades = read_grades(all);
  problems.throw_if_any();
  return grades;
}

Grades built_in_grades() {
  const auto file = std::ranges::find(embedded_files(), "profiles.yaml", &EmbeddedFile::name);
  CHECK(file != embedded_files().end());
  return grades_of(file->text, "topologies/profiles.yaml");
}

/// Of the profile in a file; none where it can't be read any more.
std::vector<Grade> grades_of_file(const Profile& profile) {
  const std::string path = profile_word(profile.name).runtime;
  if (!names_profile_file(path)) return {};
  try {
    const Grades grades = grades_of(read_file(path), path);
    return grades.empty() ? std::vector<Grade>() : grades.begin()->second;
  } catch (const Error&) {
    return {};
  }
}
bool begins_so(const std::string& name, const std::string& beginning) {
  return name.starts_with(beginning) &&
         (name.size() == beginning.size() || name[beginning.size()] == '.');
}

/// The row with the longest beginning; null where there is none.
const Grade* longest_of(const std::vector<Grade>& rows, const std::string& name) {
  const Grade* best = nullptr;
  for (const Grade& row : rows) {
    const bool fits = begins_so(name, row.of);
    if (fits && (best == nullptr || row.of.size() > best->of.size())) best = &row;
  }
  return best;
}

/// Of a built-in profile.
const Grade* own_grade(const std::string& profile, const std::string& name) {
  static const Grades grades = built_in_grades();
  const auto rows = grades.find(profile);
  return rows == grades.end() ? nullptr : longest_of(rows->second, name);
}

/// Keys of a table by beginnings of models under which it has the figures of these GPUs.
std::set<std::string> keys_for(const std::map<std::string, double>& by_model,
                               const std::set<std::string>& models) {
  std::set<std::string> keys;
  for (const std::string& model : models) {
    std::string key = by_model.contains("other") ? "other" : "";
    for (const auto& [beginning, unused] : by_model) {
      const bool is_longer = key == "other" || beginning.size() > key.size();
      if (beginning != "other" && model.starts_with(beginning) && is_longer) key = beginning;
    }
    if (!key.empty()) keys.insert(key);
  }
  return keys;
}

class Figures {
 public:
  explicit Figures(const Topology& machine) : maker_(to_string(cpu_maker(machine))) {
    for (const NodeId gpu : machine.gpus()) models_.insert(machine.node(gpu).model);
    for (const Link& link : machine.links) classes_.insert(link.link_class);
    for (const Node& node : machine.nodes) {
      combines_ = combines_ || (node.combines && node.kind != NodeKind::fabric);
      combines_in_network_ =
          combines_in_network_ || (node.combines && node.kind == NodeKind::fabric);
    }
  }

  std::vector<GradedFigure> of(const Profile& profile) {
    all_.clear();
    // What a protocol adds to a call is a figure of its own (Profile::under).
    add("call_overhead_us", (profile.call_overhead_s - profile.protocol.call_s) / kMicrosecond,
        "us");
    add("local_overhead_us", profile.local_overhead_s / kMicrosecond, "us");
    add("reduce_overhead_us", profile.reduce_overhead_s / kMicrosecond, "us");
    add("staging_overhead_us", profile.staging_overhead_s / kMicrosecond, "us");
    add("message_us", profile.message_s / kMicrosecond, "us");
    for (const std::string& key : keys_for(profile.message_more_s, {maker_})) {
      add("message_more_us." + key, profile.message_more_s.at(key) / kMicrosecond, "us");
    }
    add("dependence_us", profile.dependence_s / kMicrosecond, "us");
    add("blocks", profile.blocks, "");
    add("fifo_steps", profile.fifo_steps, "");
    add_launches(profile.launch);
    for (const Protocol& protocol : profile.protocols) add_protocol(protocol);
    add_switch_ops(profile);
    return std::move(all_);
  }

 private:
  void add(std::string name, double value, std::string unit) {
    if (value > 0) all_.push_back({std::move(name), value, std::move(unit), {}, {}});
  }

  void add_launch(const std::string& name, const LaunchCost& cost) {
    add(name + ".call_us", cost.call_s / kMicrosecond, "us");
    add(name + ".block_us", cost.block_s / kMicrosecond, "us");
  }
  void add_launches(const LaunchCosts& costs) {
    if (costs.per_gpu) add_launch("launch.per_gpu", *costs.per_gpu);
    for (const LaunchCost& cost : costs.single) {
      add_launch("launch.single." + version_text(cost.since), cost);
    }
    if (!costs.single.empty() && std::isfinite(costs.sharpness)) {
      add("launch.sharpness", costs.sharpness, "");
    }
    add("launch.graph.saves_us", costs.graph_saves_s / kMicrosecond, "us");
  }

  void add_protocol(const Protocol& protocol) {
    const std::string name = "protocols." + protocol.name + ".";
    if (protocol.wire != 1) add(name + "wire", protocol.wire, "");
    add(name + "call_us", protocol.call_s / kMicrosecond, "us");
    add_by_class(name + "hop_us.", protocol.hop_s);
    add_by_class(name + "hold_us.", protocol.hold_s);
    for (const std::string& key : keys_for(protocol.hop_more_s, models_)) {
      add(name + "hop_more_us." + key, protocol.hop_more_s.at(key) / kMicrosecond, "us");
    }
    add(name + "min_op_us", protocol.min_op_s / kMicrosecond, "us");
    for (const std::string& key : keys_for(protocol.checked_gbps, {maker_})) {
      add(name + "checked_gbps." + key, protocol.checked_gbps.at(key), "GB/s");
    }
    add(name + "slice_kib", protocol.slice_bytes / kKib, "KiB");
    add(name + "min_slice_kib", protocol.min_slice_bytes / kKib, "KiB");
    add(name + "drift_ops", protocol.drift_ops, "");
    add(name + "lockstep_kib", protocol.lockstep_bytes / kKib, "KiB");
    add(name + "step_kib", protocol.step_bytes / kKib, "KiB");
    add(name + "loop_kib", protocol.loop_bytes / kKib, "KiB");
    add(name + "pass_kib", protocol.pass_bytes / kKib, "KiB");
    add(name + "drain_gbps", protocol.drain_gbps, "GB/s");
    add_by_model(name + "block_gbps.", protocol.block_gbps);
    add_by_model(name + "gpu_gbps.", protocol.gpu_gbps);
    add_by_model(name + "copy_gbps.", protocol.copy_gbps);
  }
  void add_by_class(const std::string& name, const std::map<LinkClass, double>& times_s) {
    for (const auto& [link_class, time_s] : times_s) {
      if (!classes_.contains(link_class)) continue;
      add(name + std::string(to_string(link_class)), time_s / kMicrosecond, "us");
    }
  }
  void add_by_model(const std::string& name, const std::map<std::string, double>& rates) {
    for (const std::string& key : keys_for(rates, models_)) {
      add(name + key, rates.at(key), "GB/s");
    }
  }

  void add_switch_ops(const Profile& profile) {
    std::map<std::string, double> known;  // the values do not matter
    for (const auto& [key, unused] : profile.in_switch) known.emplace(key, 1);
    std::set<std::string> keys = combines_ ? keys_for(known, models_) : std::set<std::string>();
    if (combines_in_network_ && known.contains("network")) keys.insert("network");
    for (const std::string& key : keys) {
      const SwitchOps& ops = profile.in_switch.at(key);
      const std::string name = "in_switch." + key + ".";
      if (ops.wire != 1) add(name + "wire", ops.wire, "");
      add(name + "call_us", ops.call_s / kMicrosecond, "us");
      add(name + "slice_us", ops.slice_s / kMicrosecond, "us");
    }
  }

  const std::string maker_;  ///< of CPUs
  std::set<std::string> models_;
  std::set<LinkClass> classes_;
  bool combines_ = false;
  bool combines_in_network_ = false;
  std::vector<GradedFigure> all_;
};

const GradedFigure* find_figure(const std::vector<GradedFigure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &GradedFigure::name);
  return found == figures.end() ? nullptr : &*found;
}

/// But for what adding and taking away rounds.
bool is_same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

/// Of what a file changes, as far as that says.
void grade_by_file(const std::vector<Grade>& rows, const std::string& file, GradedFigure& figure) {
  const Grade* const said = longest_of(rows, figure.name);
  figure.grade = said != nullptr ? said->grade : "its file";
  figure.from = said != nullptr ? said->from : file;
}

/// Of a profile as it is built in, of which every figure has a grade.
std::vector<GradedFigure> built_in_figures(const Profile& profile, const Topology& machine) {
  std::vector<GradedFigure> figures = Figures(machine).of(profile);
  std::vector<GradedFigure> inherited;
  if (!profile.like.empty()) {
    inherited = built_in_figures(built_in_profiles().profiles.at(profile.like), machine);
  }
  for (GradedFigure& one : figures) {
    if (const Grade* own = own_grade(profile.name, one.name)) {
      one.grade = own->grade;
      one.from = own->from;
    } else if (const GradedFigure* base = find_figure(inherited, one.name);
               base != nullptr && is_same(base->value, one.value)) {
      one.grade = base->grade;
      one.from = base->from;
    }
  }
  return figures;
}

}  // namespace

void check_grades(const YamlValue& grades) { read_grades(grades); }

std::vector<GradedFigure> graded_figures(const Profile& profile, const Topology& machine) {
  const auto& built_in = built_in_profiles().profiles;
  const std::string name = profile_word(profile.name).runtime;
  const bool is_built_in = built_in.contains(name);  // or a machine's file changed it
  const auto known = built_in.find(is_built_in ? name : profile.like);
  std::vector<GradedFigure> base;
  if (known != built_in.end()) base = built_in_figures(known->second, machine);
  const std::vector<Grade> of_file = grades_of_file(profile);
  std::vector<GradedFigure> figures = Figures(machine).of(profile);
  for (GradedFigure& one : figures) {
    const GradedFigure* const same = find_figure(base, one.name);
    const bool is_changed = same == nullptr || !is_same(same->value, one.value);
    if (!is_changed) {
      one.grade = same->grade;
      one.from = same->from;
    } else {
      grade_by_file(of_file, is_built_in ? machine.name : name, one);
    }
  }
  return figures;
}

std::optional<GradedFigure> graded_link(const Profile& profile, const Topology& machine,
                                        const std::string& kind) {
  const std::string name = profile_word(profile.name).runtime;
  const auto own = profile.links.find(kind);
  if (!names_profile_file(name) || own == profile.links.end()) return std::nullopt;
  const auto like = machine.profiles.find(profile.like);
  if (like != machine.profiles.end()) {
    const auto same = like->second.links.find(kind);
    if (same != like->second.links.end() &&
        is_same(same->second.efficiency, own->second.efficiency)) {
      return std::nullopt;
    }
  }
  GradedFigure figure{fmt::format("links.{}.efficiency", kind), own->second.efficiency, {}, {}, {}};
  grade_by_file(grades_of_file(profile), name, figure);
  return figure;
}

}  // namespace espalier
