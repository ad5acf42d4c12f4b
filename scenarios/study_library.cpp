// SPDX-License-Identifier: Apache-2.0
// What a study asks of libraries that decide by themselves (Algorithm::call): for questions that
// name one, and for those that are compared with one.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/words.h"
#include "nccl/machine.h"
#include "nccl/version.h"
#include "scenarios/baseline.h"
#include "scenarios/buildable.h"
#include "scenarios/chooser.h"
#include "scenarios/study.h"
#include "scenarios/study_cache.h"
#include "topologies/launch_costs.h"

namespace espalier {
namespace {

/// Baseline::runtime_gain; of several kinds of links, what is gained on all of them.
double gain_between(const Topology& topology, const Profile& own, const Profile& library) {
  if (own.uses_measured) return 1;
  const auto efficiency = [](const Profile& profile, const Link& link) {
    const auto known = profile.links.find(link.kind);
    return known == profile.links.end() ? 1 : known->second.efficiency;
  };
  double gain = 0;
  for (const Link& link : topology.links) {
    if (link.link_class != LinkClass::gpu_fabric) continue;
    const double here = efficiency(own, link) / efficiency(library, link);
    gain = gain == 0 ? here : std::min(gain, here);
  }
  return gain == 0 ? 1 : gain;
}

}  // namespace

std::vector<std::string> Study::explain(const Query& query) {
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return {};
  const BuildRequest request = request_for(query, machine(query));
  std::vector<std::string> lines = split(espalier::explain(library_choice(query), request), '\n');
  std::erase(lines, "");
  return lines;
}

std::string Study::profile_used(const Query& query) {
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return profile(query);
  try {
    const std::optional<Query> decided = decided_by_library(query, machine(query));
    if (decided) return profile_word(decided->profile).runtime;
  } catch (const Error&) {
    // A machine that can't be asked about: that is the answer to the question.
  }
  return profile(query);
}

/// The one that a query names, or the one that this says its library's kernels run under.
std::string Study::profile(const Query& query) {
  const std::string named = profile_word(query.profile).runtime;
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return named;
  const std::string library = topology(query)->shared_profile(query.profile)->library;
  return library.empty() ? named : library;
}

/// A library with what the query says of it elsewhere than in its parameters.
AlgorithmChoice Study::library_choice(const Query& query) {
  AlgorithmChoice asked = choice(query.algorithm);
  const Machine& here = machine(query);
  const bool is_rccl = is_amd(*here.topology, here.placement);  // of which one version is known
  const auto force = [&](const std::string& parameter, const std::string& value) {
    if (value.empty() || asked.parameters.contains(parameter)) return;
    const std::string separator = asked.parameters.empty() ? ":" : ",";
    asked = choice(spec_of(asked) + separator + parameter + "=" + value);
  };
  force("proto", profile_word(query.profile).protocol);
  force("version", query.library_version == 0 || is_rccl
                       ? ""
                       : nccl_version_text(nearest_nccl(query.library_version)));
  return asked;
}

/// What a library decides about the query: its choice in full, under the profile that it runs
/// under. Nothing where the query says all that already, names no library, or one that can't.
std::optional<Query> Study::decided_by_library(const Query& query, const Machine& machine) {
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return std::nullopt;
  const AlgorithmChoice asked = library_choice(query);
  const BuildRequest request = request_for(query, machine);
  if (unsupported(asked, request)) return std::nullopt;
  const LibraryCall call = library_call(asked, request);
  Query concrete = query;
  concrete.algorithm = spec_of(decided(asked, call));
  concrete.profile = profile(query);
  auto runtime = machine.topology->shared_profile(concrete.profile);
  const bool is_theory = runtime->protocols.empty();
  if (!call.runtime.empty() && !is_theory) {
    const std::string named = profile_word(query.profile).runtime;
    concrete.profile = machine.topology->is_like(named, call.runtime) ? named : call.runtime;
    runtime = machine.topology->shared_profile(concrete.profile);
  }
  if (std::ranges::count(runtime->protocols, call.protocol, &Protocol::name) > 0) {
    concrete.profile += ":" + call.protocol;
  }
  concrete.chunk_bytes = 0;
  concrete.library_version = call.version;
  const bool is_same = concrete.algorithm == query.algorithm && concrete.profile == query.profile;
  return is_same ? std::nullopt : std::optional(concrete);
}

/// What the library cannot do here has no time.
std::optional<Baseline> Study::baseline(const Query& query) {
  const std::optional<Query> asked = baseline_query(query);
  if (!asked) return std::nullopt;
  try {
    std::optional<Baseline> found = baseline_of(*asked);
    if (found) {
      const Topology& topology = *machine(query).topology;
      // Not that of the algorithm: all answers for a size share what they are compared with.
      const Profile own = topology.profile(profile_word(query.profile).runtime);
      if (!own.library.empty()) {
        found->runtime_gain = gain_between(topology, own, topology.profile(own.library));
      }
    }
    return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return std::nullopt;
  }
}

const std::optional<Baseline>& Study::baseline_of(const Query& asked) {
  const Cache::BaselineKey key{&machine(asked),  asked.collective,      asked.root,  asked.in_place,
                               asked.size_bytes, asked.library_version, asked.launch};
  const auto [known, is_new] = cache_->baselines.try_emplace(key);
  if (!is_new) return known->second;
  const Outcome outcome = ask(asked);
  if (!outcome.ran()) return known->second;
  const Machine& here = machine(asked);
  known->second = {.time_s = outcome.report.time_s,
                   .algorithm = outcome.chosen.empty() ? asked.algorithm : outcome.chosen,
                   .version = outcome.library_version,
                   .relative_error = outcome.error->relative,
                   .library = std::string(nccl_name(is_amd(*here.topology, here.placement))),
                   .benchmark_s = outcome.benchmark_s};
  return known->second;
}

}  // namespace espalier
