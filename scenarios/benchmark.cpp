// SPDX-License-Identifier: Apache-2.0
#include "scenarios/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "nccl/machine.h"
#include "nccl/version.h"

namespace espalier {
namespace {

/// Kernels of libraries move 16 bytes at a time where all operands of an op begin at multiples of
/// that (NVIDIA/nccl src/device/common_kernel.h); otherwise element by element, which is slower by
/// a factor that nobody fitted.
constexpr std::int64_t kVectorBytes = 16;
/// Of times with operands that do not: estimate.
constexpr double kUnalignedError = 0.5;

/// Whether ranks have blocks of the message that do not begin at multiples of a vector.
bool has_unaligned_blocks(const Outcome& outcome) {
  const Collective collective = outcome.query.collective;
  const bool has_blocks =
      collective == Collective::allgather || collective == Collective::reducescatter;
  return has_blocks && outcome.ranks > 1 &&
         outcome.report.message_bytes % (kVectorBytes * outcome.ranks) != 0;
}

std::int64_t default_of(const Algorithm& algorithm, const std::string& parameter) {
  return std::ranges::find(algorithm.parameters, parameter, &AlgorithmParameter::name)
      ->default_value;
}

/// Those of a library's parameters that have other values in `choice` than it chooses by itself.
/// What follows from one of them is not counted as forced.
std::vector<std::string> forced_parameters(const AlgorithmChoice& choice,
                                           const BuildRequest& request) {
  std::vector<std::string> forced;
  if (!is_library(choice) || request.ranks == 1) return forced;
  AlgorithmChoice open = choice;
  for (const std::string& parameter : forcible_parameters(choice)) open.parameters.erase(parameter);
  std::map<std::string, std::int64_t> chosen = library_call(open, request).parameters;
  for (const std::string& parameter : forcible_parameters(choice)) {
    const auto taken = choice.parameters.find(parameter);
    if (taken == choice.parameters.end()) continue;
    const auto own = chosen.find(parameter);  // absent: as by default
    const std::int64_t by_itself =
        own == chosen.end() ? default_of(*choice.algorithm, parameter) : own->second;
    if (taken->second == by_itself) continue;
    forced.push_back(parameter);
    open.parameters[parameter] = taken->second;
    chosen = library_call(open, request).parameters;
  }
  return forced;
}

}  // namespace

std::string compared_name(AlgorithmChoice choice) {
  std::erase_if(choice.parameters, [&](const auto& parameter) {
    return !is_library(choice) || parameter.first != kLibraryAlgorithm;
  });
  return spec_of(choice);
}

std::vector<std::string> forcible_parameters(const AlgorithmChoice& choice) {
  std::vector<std::string> names;
  if (!is_library(choice)) return names;
  for (const AlgorithmParameter& parameter : choice.algorithm->parameters) {
    const bool is_given = parameter.name == kLibraryVersion || parameter.name == kLibraryBuffers;
    if (!is_given) names.push_back(parameter.name);
  }
  return names;
}

namespace {

std::vector<double> starts_of_all(const Machine& machine, const Router& used, const Query& query) {
  if (query.run.start_together || !query.run.is_call) return {};
  return launch_starts_s(used.profile().launch, query.launch, query.library_version,
                         *machine.topology, machine.placement);
}

bool are_alike(const std::vector<double>& starts_s, const Fold& fold) {
  for (int rank = 0; fold.is_folded() && rank < static_cast<int>(starts_s.size()); ++rank) {
    const int in_first_group = fold.rank_of(fold.number_of(rank), 0);
    if (starts_s[static_cast<std::size_t>(rank)] !=
        starts_s[static_cast<std::size_t>(in_first_group)]) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool starts_fold(const Machine& machine, const Query& query, const Fold& fold) {
  return are_alike(starts_of_all(machine, *machine.router, query), fold);
}

std::vector<double> starts_of(const Machine& machine, const Router& used, const Query& query,
                              const Program& program, const Rotation* rotation) {
  std::vector<double> starts_s = starts_of_all(machine, used, query);
  const bool all_groups = groups_run(program, rotation) > 1;
  return all_groups || are_alike(starts_s, program.fold) ? starts_s : std::vector<double>();
}

namespace {

/// Whether every rank that sends does so to one other rank only: rings, and also chains.
bool goes_round(const Program& program) {
  std::map<PlaceId, PlaceId> receivers;
  for (const Op& op : program.ops) {
    for (const Operand& source : program.sources_of(op)) {
      if (op.in_switch) return false;
      if (source.place == op.dst.place) continue;
      const auto [known, is_new] = receivers.try_emplace(source.place, op.dst.place);
      if (known->second != op.dst.place) return false;
    }
  }
  return !receivers.empty();
}

/// What rows of errors call the algorithm of an outcome. Rings of program files are rings, whatever
/// the file is called.
std::string compared_name_of(const AlgorithmChoice& choice, const Outcome& outcome) {
  const bool is_ring = choice.file && outcome.program && goes_round(*outcome.program);
  return is_ring ? "ring" : compared_name(choice);
}

/// Whether a library was asked for in a version that these GPUs are too new for.
bool is_too_old(const AlgorithmChoice& choice, int version, const std::string& model) {
  return is_library(choice) && version > 0 && !is_amd_gpu(model) &&
         nearest_nccl(version) < first_nccl_for(compute_capability(model));
}

}  // namespace

double benchmark_of(const Machine& machine, const Router& used, const Outcome& outcome) {
  const SimulatedPart& simulated = *outcome.report.simulated;
  return launched_s(
      used.profile().launch, outcome.query.launch,
      {simulated.back_to_back_s, most_gpus_of_a_host(*machine.topology, machine.placement),
       simulated.blocks, outcome.library_version, simulated.busiest_s, simulated.together_s,
       outcome.query.timed_calls});
}

ExpectedError error_of(const Machine& machine, const Router& used, const AlgorithmChoice& choice,
                       const LinksUsed& links, const Outcome& outcome) {
  const Profile& profile = used.profile();
  if (!profile.protocols.empty() && has_unaligned_blocks(outcome)) {
    return estimated_error(
        fmt::format("each of the {} ranks has a block that is no multiple of {} bytes; kernels "
                    "copy such blocks element by element",
                    outcome.ranks, kVectorBytes),
        kUnalignedError);
  }
  Compared what;
  what.collective = to_string(outcome.query.collective);
  what.algorithm = compared_name_of(choice, outcome);
  what.launch = outcome.query.launch;
  what.ranks = outcome.ranks;
  what.in_switch = links.in_switch;
  what.in_fabric = links.scope == LinkScope::fabric;
  what.bytes = static_cast<double>(outcome.report.message_bytes);
  std::set<std::string> models;
  for (const NodeId gpu : machine.placement.ranks) models.insert(machine.topology->node(gpu).model);
  std::optional<ExpectedError> worst;
  for (const std::string& model : models) {
    what.model = model;
    what.forced.clear();
    ExpectedError error = expected_error(profile.errors, what);
    if (is_too_old(choice, outcome.library_version, model)) {
      error = estimated_error("no log is of a version that is older than its GPUs");
    } else if (!error.is_estimate) {
      // Only now: to ask the library once more takes a while on large machines.
      what.forced = forced_parameters(choice, request_for(outcome.query, machine));
      error = expected_error(profile.errors, what);
    }
    if (!worst || error.relative > worst->relative) worst = std::move(error);
  }
  return *worst;
}

}  // namespace espalier
