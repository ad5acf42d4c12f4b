// SPDX-License-Identifier: Apache-2.0
#include "cli/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "algorithms/program_file.h"
#include "core/units.h"
#include "core/words.h"
#include "formats/machine.h"
#include "ir/chunk.h"
#include "scenarios/buildable.h"
#include "scenarios/chooser.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

std::optional<Machine> read_machine(Arguments& arguments) {
  const std::string spec = arguments.text("--topology");
  if (spec.empty()) return std::nullopt;
  const std::vector<int> gpus = arguments.gpus("--gpus");
  auto topology = arguments.reading(
      "--topology", [&] { return std::make_shared<const Topology>(open_machine(spec)); });
  const auto relays = read_relays(arguments, topology ? topology->get() : nullptr, gpus);
  if (!topology) return std::nullopt;
  const auto chosen = arguments.reading("--gpus", [&] { return chosen_gpus(**topology, gpus); });
  if (!chosen || !relays) return std::nullopt;
  return routed_machine(std::move(*topology), gpus, *relays);
}

BuildRequest build_request(const AlgorithmChoice& choice, Collective collective,
                           const ProgramRequest& request) {
  const Contract* stated = choice.file ? &choice.file->program.contract : nullptr;
  const int root = stated != nullptr && !request.root_given ? stated->root : request.root;
  const bool in_place = request.in_place || (stated != nullptr && stated->in_place);
  if (request.machine) {
    BuildRequest made = request_for(collective, root, in_place, *request.machine->router,
                                    request.machine->placement);
    made.size_bytes = request.size_bytes;
    return made;
  }
  BuildRequest blind;
  blind.collective = collective;
  blind.ranks = stated != nullptr && !request.ranks_given ? stated->ranks : request.ranks;
  blind.root = info(collective).rooted ? root : 0;
  blind.in_place = in_place;
  blind.host_of_rank.assign(static_cast<std::size_t>(blind.ranks), 0);
  return blind;
}

/// Of the file that a query's algorithm is, in another program's format; null where it is none.
const ForeignProgram* foreign_of(Study& study, const Query& query) {
  if (is_chooser(query.algorithm)) return nullptr;
  const auto& file = study.choice(query.algorithm).file;
  return file && file->foreign ? &*file->foreign : nullptr;
}

}  // namespace

void refuse_gpus(Arguments& arguments) {
  for (const char* option : {"--gpus", "--relay"}) {
    if (!arguments.given(option)) continue;
    arguments.problem(fmt::format("{} needs a --topology", option));
  }
}

std::optional<std::vector<int>> read_relays(Arguments& arguments, const Topology* machine,
                                            const std::vector<int>& gpus) {
  if (!arguments.given("--relay")) return std::vector<int>{};
  const bool all = arguments.text("--relay") == "all";
  std::vector<int> relays = arguments.gpus("--relay");
  if (machine == nullptr) return relays;
  if (all) return idle_gpus(*machine, gpus);
  if (!arguments.reading("--relay", [&] { return chosen_relays(*machine, gpus, relays); })) {
    return std::nullopt;
  }
  return relays;
}

std::vector<OptionUse> program_options(std::vector<OptionUse> before,
                                       const std::vector<OptionUse>& after) {
  std::vector<OptionUse> all = std::move(before);
  all.insert(all.end(), {{"--ranks", "4"},
                         {"--topology"},
                         {"--gpus", "all"},
                         {"--relay"},
                         {"--collective"},
                         {"--root", "0"},
                         {"--in-place"},
                         {"--size"},
                         {"--chunks", "1"}});
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

std::optional<Contract> contract_in(const std::vector<std::string>& words) {
  const auto file = std::ranges::find_if(
      words, [](const std::string& word) { return !is_chooser(word) && is_program_file(word); });
  if (file == words.end()) return std::nullopt;
  try {
    return read_program_file(*file)->program.contract;
  } catch (const Error&) {
    return std::nullopt;
  }
}

ProgramRequest read_program_request(Arguments& arguments) {
  ProgramRequest request;
  request.ranks_given = arguments.given("--ranks");
  request.root_given = arguments.given("--root");
  request.machine = read_machine(arguments);
  if (arguments.text("--topology").empty()) {
    request.ranks = static_cast<int>(arguments.integer("--ranks", 1, kMaxPlaces));
    refuse_gpus(arguments);
  } else if (arguments.given("--ranks")) {
    arguments.problem("--ranks and --topology exclude each other",
                      "--gpus chooses ranks of a machine");
  }
  if (request.machine) request.ranks = request.machine->ranks();
  if (arguments.given("--collective")) {
    std::vector<std::pair<std::string, Collective>> collectives;
    for (const CollectiveInfo& collective : all_collectives()) {
      collectives.emplace_back(collective.name, collective.id);
    }
    request.collective = arguments.choice("--collective", collectives);
  }
  // Of a machine that can't be loaded, the number of ranks is not known.
  const int ranks = request.ranks > 0 ? request.ranks : kMaxPlaces;
  request.root = static_cast<int>(arguments.integer("--root", 0, ranks - 1));
  request.in_place = arguments.flag("--in-place");
  request.chunks = arguments.integer("--chunks", 1, kMaxUnits);
  const std::vector<std::int64_t> sizes = arguments.sizes("--size");
  if (sizes.size() > 1) arguments.problem_of("--size", "a program is of one size at most");
  if (!sizes.empty()) request.size_bytes = sizes.front();
  return request;
}

void require_served(Arguments& arguments, const AlgorithmChoice& choice,
                    std::optional<Collective> collective) {
  if (!collective) return;
  if (auto problem = not_served(choice, *collective)) arguments.problem(std::move(*problem));
}

std::vector<Collective> served(const AlgorithmChoice& choice, const ProgramRequest& request) {
  std::vector<Collective> all = choice.algorithm->collectives;
  if (request.collective) std::erase_if(all, [&](auto one) { return one != *request.collective; });
  return all;
}

std::optional<std::string> not_buildable(const AlgorithmChoice& choice, Collective collective,
                                         const ProgramRequest& request) {
  return not_built(choice, build_request(choice, collective, request));
}

Program build_program(const AlgorithmChoice& choice, Collective collective,
                      const ProgramRequest& request) {
  Program program = build(choice, build_request(choice, collective, request));
  // As it is simulated and executed.
  if (request.machine && !choice.file && not_routable(program, *request.machine)) {
    if (auto staged = staged_instead(program, *request.machine))
      program = std::move(staged->program);
  }
  if (request.chunks == 1 || (choice.file && !verify(*choice.file).ok())) return program;
  std::uint32_t longest = 0;
  for (const Op& op : program.ops) longest = std::max(longest, op.length);
  // With a byte per unit, sizes are units.
  const double piece = static_cast<double>(longest) / static_cast<double>(request.chunks);
  return chunk(program, plan_chunking(program, static_cast<double>(program.contract.units), piece));
}

std::vector<std::string> sizes_not_meant(Study& study, const std::vector<Query>& queries) {
  // By what is meant; the same for all sizes of a file mostly.
  std::map<std::string, std::vector<std::string>> sizes;
  for (const Query& query : queries) {
    const ForeignProgram* const foreign = foreign_of(study, query);
    if (foreign == nullptr) continue;
    const auto element_bytes = static_cast<std::int64_t>(size_of(query.run.type));
    const auto served = not_among(*foreign, query.size_bytes, element_bytes);
    if (!served) continue;
    sizes[fmt::format("{} is for {}", query.algorithm, *served)].push_back(
        describe_size(query.size_bytes));
  }
  std::vector<std::string> all;
  for (const auto& [meant, beyond] : sizes) {
    all.push_back(
        fmt::format("{}: its runtime would not use it for {}", meant, join(beyond, ", ")));
  }
  return all;
}

std::string beside_program(const ForeignProgram& foreign) {
  std::vector<std::string> parts;
  if (!foreign.protocol.empty()) parts.push_back("protocol " + foreign.protocol);
  if (const std::string range = range_of(foreign); !range.empty()) parts.push_back(range);
  if (!foreign.host_of_rank.empty()) parts.emplace_back("which ranks share a computer");
  return join(parts, ", ");
}

}  // namespace espalier
