// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/median.h"
#include "core/units.h"
#include "core/words.h"
#include "report/page/parts.h"
#include "scenarios/describe.h"
#include "scenarios/tables.h"
#include "topologies/launch_costs.h"
#include "topologies/load.h"
#include "topologies/profile_grades.h"

namespace espalier {

namespace {

Json fact(const std::string& label, const std::string& value, const std::string& detail = {}) {
  Json json = {{"label", label}, {"value", value}};
  if (!detail.empty()) json["detail"] = detail;
  return json;
}

/// As the scripts of the page write them: micro as its letter, a space before a unit.
std::string time_text(double seconds) {
  std::string text = format_seconds(seconds);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "\u00b5");
  return text;
}
std::string size_text(std::int64_t bytes) {
  std::string text = describe_size(bytes);
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit != std::string::npos && text[unit] != ' ') text.insert(unit, " ");
  return text;
}

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

/// What is busiest among links, or among memories, arithmetic and thread blocks of nodes.
struct Busiest {
  double share = 0;                ///< of the time
  std::vector<std::string> names;  ///< and of those that are as busy but for a hundredth
};

Busiest busiest_of(const SimulatedPart& simulated, bool is_link) {
  Busiest found;
  for (const LinkUse& link : simulated.links) {
    if (link.is_link == is_link) found.share = std::max(found.share, link.utilization);
  }
  for (const LinkUse& link : simulated.links) {
    const bool is_among = link.is_link == is_link && link.utilization >= 0.99 * found.share;
    if (found.share > 0 && is_among) found.names.push_back(link.name);
  }
  return found;
}

std::string some_of(std::vector<std::string> names, std::size_t most = 2) {
  if (names.size() <= most) return join(names, ", ");
  const std::size_t more = names.size() - most;
  names.resize(most);
  return fmt::format("{} and {} more", join(names, ", "), more);
}

void add_simulated(const Outcome& one, Json& facts) {
  const SimulatedPart& simulated = *one.report.simulated;
  if (one.nccl) {
    const auto speedup = speedup_of(one);
    if (speedup) {
      facts.push_back(fact(
          "over NCCL", fmt::format("{:.3g}x", *speedup),
          fmt::format("{} {} needs {} ({})", one.nccl->library, version_text(one.nccl->version),
                      time_text(one.nccl->time_s), one.nccl->algorithm)));
    }
  }
  const Busiest links = busiest_of(simulated, true);
  const Busiest nodes = busiest_of(simulated, false);
  // A medium between processes of a computer is a link and a memory at once.
  const bool is_one_medium = links.names == nodes.names;
  const Busiest& binding = is_one_medium && nodes.share > links.share ? nodes : links;
  if (!binding.names.empty()) {
    facts.push_back(fact("binding links", some_of(binding.names),
                         fmt::format("busy {} of the time", percent(binding.share))));
  }
  if (nodes.share > links.share && !is_one_medium) {
    facts.push_back(fact("busier than links", some_of(nodes.names),
                         fmt::format("busy {} of the time", percent(nodes.share))));
  }
  if (one.error) {
    facts.push_back(
        fact("expected error", "\u00b1 " + percent(one.error->relative), one.error->from));
  }
}

/// What no link has to carry anything for is bounded without one.
std::string with_proof(const std::string& what, const Bound& bound) {
  return bound.kind.empty() ? what : fmt::format("{} (proof by {})", what, proof_of(bound));
}

/// Where each rank has a clock of its own: whose mean time is the longest, and those of all.
Json slowest_rank(const std::vector<double>& times_s) {
  const auto slowest = std::ranges::max_element(times_s);
  std::vector<std::string> all;
  for (const double time_s : times_s) all.push_back(time_text(time_s));
  return fact("slowest rank", fmt::format("{}, {}", slowest - times_s.begin(), time_text(*slowest)),
              "mean times by rank: " + join(all, ", "));
}

void add_checks(bool is_verified, bool is_consistent, Json& facts) {
  facts.push_back(fact("verified", is_verified ? "yes" : "no",
                       "every element of the result, races, deadlocks"));
  facts.push_back(fact(
      "order of combining", is_consistent ? "the same on all ranks" : "differs",
      is_consistent ? "results are the same in the last bit" : "ranks may differ in the last bit"));
}

Json of_run(const Outcome& one) {
  Json facts = Json::array();
  facts.push_back(fact("time", time_text(one.report.time_s),
                       "of one call with " + size_text(one.report.message_bytes)));
  facts.push_back(fact("bus bandwidth", format_gbps(one.busbw_gbps()) + " GB/s",
                       "algbw " + format_gbps(one.report.algbw_gbps()) + " GB/s"));
  std::string text = fmt::format("{} moves {} in {}, {} GB/s bus bandwidth", algorithm_label(one),
                                 size_text(one.report.message_bytes), time_text(one.report.time_s),
                                 format_gbps(one.busbw_gbps()));
  if (const auto speedup = speedup_of(one)) text += fmt::format(", {:.3g}x NCCL", *speedup);
  if (one.bound && one.fraction > 0) {
    text += fmt::format(", {} of the bound", percent(one.fraction));
    const std::string least =
        fmt::format("no schedule takes less than {}", time_text(one.least_s()));
    facts.push_back(fact("of the bound", percent(one.fraction), with_proof(least, *one.bound)));
  }
  if (one.report.simulated) add_simulated(one, facts);
  if (one.report.executed) {
    const ExecutedPart& executed = *one.report.executed;
    if (!executed.rank_times_s.empty()) facts.push_back(slowest_rank(executed.rank_times_s));
    if (executed.wrong) {
      facts.push_back(fact("wrong elements", fmt::format("{}", *executed.wrong)));
      text += *executed.wrong == 0 ? ", every element right"
                                   : fmt::format(", {} wrong elements", *executed.wrong);
    }
  }
  add_checks(one.verified, one.order_consistent, facts);
  return {{"text", text + "."}, {"facts", std::move(facts)}};
}

Json of_plan(const Planned& plan) {
  Json facts = Json::array();
  const std::string rate = format_gbps(plan.forest.algbw_gbps) + " GB/s";
  facts.push_back(fact("rate", rate, fmt::format("exactly {} GB/s", plan.forest.exact_algbw)));
  facts.push_back(fact("of the bound", percent(plan.fraction),
                       with_proof(format_gbps(plan.bound.algbw_gbps) + " GB/s", plan.bound)));
  std::vector<std::string> binding;
  for (const LinkLoad& load : plan.loads) {
    if (share_used(load, plan.forest) < 0.99) continue;
    binding.push_back(link_name(*plan.machine->topology, load.hop.link, load.hop.forward));
  }
  if (!binding.empty()) facts.push_back(fact("binding links", some_of(binding)));
  facts.push_back(fact("trees or paths", fmt::format("{}", plan.forest.trees.size()),
                       fmt::format("of {} equal parts", plan.forest.units)));
  if (!plan.forest.note.empty()) facts.push_back(fact("note", plan.forest.note));
  return {{"text", fmt::format("{} plans {} at {}, {} of the bound.", plan.query.algorithm,
                               to_string(plan.query.collective), rate, percent(plan.fraction))},
          {"facts", std::move(facts)}};
}

Json of_training(const TrainingOutcome& one) {
  Json facts = Json::array();
  facts.push_back(fact("iteration", time_text(one.iteration_s()),
                       fmt::format("{:.4g} samples per second", one.samples_per_s())));
  facts.push_back(fact("computation", time_text(one.compute_s)));
  facts.push_back(fact("communication", time_text(one.communication_s),
                       time_text(one.hidden_s()) + " of it hidden behind computation"));
  facts.push_back(fact("exposed", time_text(one.exposed_s()),
                       percent(one.exposed_s() / one.iteration_s()) + " of the iteration"));
  facts.push_back(
      fact("efficiency", percent(one.efficiency()), "of as many GPUs that need not communicate"));
  // Which need not bind: computation may hide all that they carry.
  const Busiest links = busiest_of(*one.report.simulated, true);
  if (!links.names.empty()) {
    facts.push_back(fact("busiest links", some_of(links.names),
                         fmt::format("busy {} of the iteration", percent(links.share))));
  }
  add_checks(true, one.order_consistent, facts);
  return {{"text",
           fmt::format("{} on {}: {} per iteration with {}, efficiency {}.", one.query.model->name,
                       counted(one.ranks, "GPU"), time_text(one.iteration_s()),
                       one.query.exchange.algorithm, percent(one.efficiency()))},
          {"facts", std::move(facts)}};
}

/// Of simulated beside measured.
void add_errors(const Page& page, Json& verdict) {
  std::vector<double> errors;
  for (const PagedPoint& measured : page.measured) {
    for (const PagedPoint& predicted : page.points) {
      const Outcome& a = predicted.outcome;
      const Outcome& b = measured.outcome;
      if (!b.report.executed || a.query.algorithm != b.query.algorithm ||
          a.query.size_bytes != b.query.size_bytes || a.query.in_place != b.query.in_place) {
        continue;
      }
      const Comparison row{a, b};
      errors.push_back(std::abs(row.error()));
    }
  }
  if (errors.empty()) return;
  const double median_error = median(errors);
  verdict["facts"].push_back(
      fact("median error", percent(median_error),
           fmt::format("of {}, beside measured ones", counted(errors.size(), "simulated time"))));
  verdict["text"] = fmt::format("{} Simulated times are off by {} in the median.",
                                verdict["text"].get<std::string>(), percent(median_error));
}

/// Of the largest message that a library was measured for, too.
void add_measured_speedup(const Page& page, Json& verdict) {
  const PagedPoint* largest = nullptr;
  for (const PagedPoint& point : page.measured) {
    const std::int64_t bytes = point.outcome.report.message_bytes;
    if (point.measured_speedup &&
        (largest == nullptr || bytes > largest->outcome.report.message_bytes)) {
      largest = &point;
    }
  }
  if (largest == nullptr) return;
  const std::string speedup = fmt::format("{:.3g}x", *largest->measured_speedup);
  verdict["facts"].push_back(
      fact("measured speed-up", speedup,
           fmt::format("over NCCL, of {} with {}", largest->outcome.query.algorithm,
                       size_text(largest->outcome.report.message_bytes))));
  verdict["text"] = fmt::format("{} Measured beside NCCL's own collective: {}.",
                                verdict["text"].get<std::string>(), speedup);
}

void add_judged(const Page& page, Json& verdict) {
  const auto met = std::ranges::count_if(page.judged, [](auto& one) { return one.as_expected(); });
  verdict["facts"].push_back(
      fact("expectations", fmt::format("{} of {} as stated", met, page.judged.size())));
  const bool is_one = page.judged.size() == 1;
  verdict["text"] =
      fmt::format("{} of {} {} out as stated. {}", met, counted(page.judged.size(), "expectation"),
                  is_one ? "comes" : "come", verdict["text"].get<std::string>());
}

/// What the profile costs beside links.
Json figures_json(const Profile& profile, const Topology& topology) {
  Json figures = Json::array();
  for (const GradedFigure& one : graded_figures(profile, topology)) {
    figures.push_back({{"name", one.name},
                       {"value", drawn(one.value)},
                       {"unit", one.unit},
                       {"grade", one.grade},
                       {"from", one.from}});
  }
  return figures;
}

Json profile_json(const Profile& profile, const Topology& topology) {
  Json errors = Json::array();
  for (const ComparedError& row : profile.errors) {
    errors.push_back(
        {{"of", row.collectives.empty() ? "any collective" : join(row.collectives, ", ")},
         {"on", join(row.models, ", ")},
         {"relative", drawn(row.relative)},
         {"compared", row.compared}});
  }
  std::set<std::pair<std::string, LinkClass>> kinds;
  for (const Link& link : topology.links) kinds.emplace(link.kind, link.link_class);
  Json constants = Json::array();
  for (const auto& [kind, link_class] : kinds) {
    const auto of_kind = profile.links.find(kind);
    const double efficiency = of_kind == profile.links.end() ? 1 : of_kind->second.efficiency;
    const auto& known = built_in_profiles().link_kinds;
    const auto what = known.find(kind);
    const std::string source = what == known.end() ? "the machine's file" : what->second.source;
    const auto own = graded_link(profile, topology, kind);
    const std::string grade = source.starts_with("estimate")                 ? "estimate"
                              : source.find("estimate") == std::string::npos ? "source"
                                                                             : "partly estimate";
    constants.push_back({{"of", kind},
                         {"efficiency", drawn(efficiency)},
                         {"cost", cost_text(profile, kind, link_class)},
                         {"source", own ? own->from : source},
                         {"grade", own ? own->grade : grade}});
  }
  return {{"name", profile.name},
          {"title", profile.title},
          {"constants", std::move(constants)},
          {"figures", figures_json(profile, topology)},
          {"errors", std::move(errors)}};
}

/// The fastest plan: what the page is about, or a fact beside what ran.
void add_plan(const Page& page, Json& verdict) {
  if (page.plans.empty()) return;
  const Planned& fastest = **std::ranges::max_element(
      page.plans, {}, [](const Planned* plan) { return plan->forest.algbw_gbps; });
  Json plan = of_plan(fastest);
  if (page.trained.empty() && page.points.empty() && page.runs.empty()) {
    verdict = std::move(plan);
  } else {
    verdict["facts"].push_back(
        fact("plan", format_gbps(fastest.forest.algbw_gbps) + " GB/s", plan["text"]));
  }
}

}  // namespace

Json verdict_json(const Page& page) {
  Json verdict = {{"text", "Nothing ran."}, {"facts", Json::array()}};
  if (!page.trained.empty() && (page.verb == "train" || page.points.empty())) {
    verdict = of_training(page.trained.front());
  } else if (!page.runs.empty() && page.runs.front().outcome.report.simulated) {
    verdict = of_run(page.runs.front().outcome);
  } else if (!page.points.empty()) {
    verdict = of_run(page.points.front().outcome);
  }
  add_plan(page, verdict);
  add_errors(page, verdict);
  add_measured_speedup(page, verdict);
  if (!page.judged.empty()) add_judged(page, verdict);
  return verdict;
}

Json provenance_json(const Page& page) {
  Json json = {
      {"version", page.version}, {"command", page.command}, {"curves_drawn_by", curve_library()}};
  json["inputs"] = Json::array();
  for (const auto& [name, text] : page.inputs) {
    const uLong sum =
        crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
    json["inputs"].push_back(
        {{"name", name}, {"bytes", text.size()}, {"crc32", fmt::format("{:08x}", sum)}});
  }
  json["machines"] = Json::array();
  for (const PagedMachine& machine : page.machines) {
    const Topology& topology = *machine.topology;
    Json profiles = Json::array();
    for (const Profile& profile : machine.profiles) {
      profiles.push_back(profile_json(profile, topology));
    }
    json["machines"].push_back({{"name", topology.name},
                                {"title", topology.title},
                                {"sources", topology.sources},
                                {"notes", topology.notes},
                                {"profiles", std::move(profiles)}});
  }
  return json;
}

}  // namespace espalier
