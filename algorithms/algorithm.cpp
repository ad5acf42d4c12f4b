// SPDX-License-Identifier: Apache-2.0
#include "algorithms/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "algorithms/machine_findings.h"
#include "algorithms/program_file.h"
#include "core/check.h"
#include "core/words.h"
#include "planner/machine_order.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

const AlgorithmParameter* find_parameter(const Algorithm& algorithm, std::string_view name) {
  const auto found = std::find_if(algorithm.parameters.begin(), algorithm.parameters.end(),
                                  [&](const AlgorithmParameter& p) { return p.name == name; });
  return found == algorithm.parameters.end() ? nullptr : &*found;
}

std::vector<std::string> parameter_names(const Algorithm& algorithm) {
  std::vector<std::string> names;
  for (const AlgorithmParameter& parameter : algorithm.parameters) names.push_back(parameter.name);
  return names;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A word in small letters, without what only parts it: "NVLSTree" is how NCCL spells nvls_tree.
std::string bare(std::string_view word) {
  std::string letters = lower_case(word);
  std::erase(letters, '_');
  return letters;
}

/// The value that a word stands for; of a version with three parts ("2.18.5") that has none of its
/// own, the first two count.
std::optional<std::int64_t> parse_word(const AlgorithmParameter& parameter, std::string_view text) {
  const std::string letters = bare(text);
  const std::size_t dot = letters.find('.');
  const std::size_t second = dot == std::string::npos ? dot : letters.find('.', dot + 1);
  for (const std::string& known : {letters, letters.substr(0, second)}) {
    const auto word = std::ranges::find_if(
        parameter.words,
        [&](const AlgorithmParameter::Word& one) { return bare(one.name) == known; });
    if (word != parameter.words.end()) return word->value;
  }
  return std::nullopt;
}

/// "a whole number from 1 to 8", "one of ring, tree".
std::string values_of(const AlgorithmParameter& parameter) {
  if (parameter.words.empty()) {
    return fmt::format("a whole number from {} to {}", parameter.minimum, parameter.maximum);
  }
  std::vector<std::string> names;
  for (const AlgorithmParameter::Word& word : parameter.words) names.push_back(word.name);
  return "one of " + join(names, ", ");
}

std::string written_value(const AlgorithmParameter& parameter, std::int64_t value) {
  for (const AlgorithmParameter::Word& word : parameter.words) {
    if (word.value == value) return word.name;
  }
  return fmt::format("{}", value);
}

/// "k=2", or "algo" alone where the default is none of the values that can be written.
std::string default_of(const AlgorithmParameter& parameter) {
  const bool is_word = std::ranges::count(parameter.words, parameter.default_value,
                                          &AlgorithmParameter::Word::value) > 0;
  if (!parameter.words.empty() && !is_word) return parameter.name;
  return fmt::format("{}={}", parameter.name, written_value(parameter, parameter.default_value));
}

/// Reads one "name=value" of `choice.algorithm` into it; adds what is wrong to `problems`.
void parse_parameter(std::string_view text, AlgorithmChoice& choice, DiagnosticList& problems) {
  const Algorithm& algorithm = *choice.algorithm;
  const std::size_t equals = text.find('=');
  const std::string name(trim(text.substr(0, equals)));
  const AlgorithmParameter* parameter = find_parameter(algorithm, name);
  if (parameter == nullptr) {
    const std::vector<std::string> names = parameter_names(algorithm);
    problems.add({}, fmt::format("{} has no parameter {}", algorithm.name, quote(name)),
                 names.empty() ? "it takes none" : did_you_mean(name, names));
    return;
  }
  const std::string_view written =
      equals == std::string_view::npos ? std::string_view() : trim(text.substr(equals + 1));
  const std::optional<std::int64_t> value =
      parameter->words.empty() ? parse_integer(written) : parse_word(*parameter, written);
  if (!value || *value < parameter->minimum || *value > parameter->maximum) {
    problems.add({}, fmt::format("{}: {} cannot be {}", algorithm.name, name, quote(written)),
                 fmt::format("{}: {} ({})", default_of(*parameter), values_of(*parameter),
                             parameter->meaning));
    return;
  }
  if (!choice.parameters.emplace(name, *value).second) {
    problems.add({}, fmt::format("{}: {} is given twice", algorithm.name, name), "give it once");
  }
}

[[noreturn]] void throw_unknown(const std::string& name) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : all_algorithms()) names.push_back(algorithm->name);
  const auto is_file = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored);
  };
  std::string help = did_you_mean(name, names, algorithm_synonyms());
  if (name == "-") {
    help = "a program is read more than once, so save it in a file first: ./FILE";
  } else if (name.find('=') != std::string::npos) {
    help = "parameters follow their algorithm and a colon: knomial:k=4";
  } else if (is_file(name)) {
    help = fmt::format("./{} is the program in the file of that name", name);
  } else if (is_file(name + ".esp")) {
    help = fmt::format("did you mean './{}.esp'?", name);
  }
  throw Error(ErrorKind::usage, fmt::format("there is no algorithm {}", quote(name)), help);
}

/// The request with the choice's parameters, the ones not given at their defaults.
BuildRequest resolve_parameters(const AlgorithmChoice& choice, BuildRequest request) {
  CHECK(choice.algorithm != nullptr);
  request.parameters = choice.parameters;
  for (const AlgorithmParameter& parameter : choice.algorithm->parameters) {
    request.parameters.emplace(parameter.name, parameter.default_value);
  }
  return request;
}

/// Why an algorithm that uses no relays can't be where there are some.
std::optional<std::string> needs_relays(const Algorithm& algorithm, const BuildRequest& request) {
  if (request.placement->relays.empty()) return std::nullopt;
  Placement without = *request.placement;
  without.relays.clear();
  const auto apart = unreachable_pair(*request.router, without);
  if (!apart) return std::nullopt;
  const auto name = [&](int rank) -> const std::string& {
    const NodeId gpu = without.ranks[static_cast<std::size_t>(rank)];
    return request.router->topology().node(gpu).name;
  };
  return fmt::format("only relays connect ranks {} ({}) and {} ({}), and {} does not use relays",
                     apart->first, name(apart->first), apart->second, name(apart->second),
                     algorithm.name);
}

}  // namespace

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm* algorithm : all_algorithms()) {
    if (algorithm->name == name) return algorithm;
  }
  return nullptr;
}

const Synonyms& algorithm_synonyms() {
  static const Synonyms synonyms = {
      {"rabenseifner", "halving_doubling"},
      {"recursive_doubling", "halving_doubling"},
      {"recursive_halving", "halving_doubling"},
      {"butterfly", "halving_doubling"},
      {"dbt", "double_binary_tree"},
      {"ps", "parameter_server"},
      {"forestcoll", "optimal"},
      {"rccl", "nccl"},
      {"2level", "two_level"},
      {"linear", "direct"},
      {"oneshot", "all_pairs"},
      {"pipeline", "pipelined_chain"},
  };
  return synonyms;
}

AlgorithmChoice parse_algorithm(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  const std::string name(trim(spec.substr(0, colon)));
  AlgorithmChoice choice;
  choice.label = std::string(trim(spec));
  if (is_program_file(choice.label)) {
    choice.file = read_program_file(choice.label);
    choice.algorithm = &choice.file->record;
    return choice;
  }
  choice.algorithm = find_algorithm(name);
  if (choice.algorithm == nullptr) throw_unknown(name);
  if (colon == std::string_view::npos) return choice;
  DiagnosticList problems;
  for (const std::string& part : split(spec.substr(colon + 1), ',')) {
    parse_parameter(part, choice, problems);
  }
  problems.throw_if_any(ErrorKind::usage);
  return choice;
}

std::string spec_of(const AlgorithmChoice& choice) {
  std::string spec = choice.algorithm->name;
  for (const auto& [name, value] : choice.parameters) {
    const AlgorithmParameter* parameter = find_parameter(*choice.algorithm, name);
    spec += fmt::format(
        "{}{}={}", spec.size() == choice.algorithm->name.size() ? ":" : ",", name,
        parameter == nullptr ? fmt::format("{}", value) : written_value(*parameter, value));
  }
  return spec;
}

bool is_portfolio(const AlgorithmChoice& choice) {
  if (choice.file || !choice.parameters.empty()) return false;
  return std::ranges::any_of(choice.algorithm->parameters, [](const AlgorithmParameter& parameter) {
    return parameter.name == kPlanItself;
  });
}

std::vector<const AlgorithmParameter*> open_parameters(const AlgorithmChoice& choice) {
  std::vector<const AlgorithmParameter*> open;
  for (const AlgorithmParameter& parameter : choice.algorithm->parameters) {
    if (parameter.weighed && !choice.parameters.contains(parameter.name))
      open.push_back(&parameter);
  }
  return open;
}

bool is_library(const AlgorithmChoice& choice) { return choice.algorithm->call != nullptr; }

LibraryCall library_call(const AlgorithmChoice& choice, BuildRequest request) {
  CHECK(is_library(choice));
  return choice.algorithm->call(resolve_parameters(choice, std::move(request)));
}

std::string explain(const AlgorithmChoice& choice, BuildRequest request) {
  CHECK(is_library(choice));
  return choice.algorithm->explain(resolve_parameters(choice, std::move(request)));
}

AlgorithmChoice decided(const AlgorithmChoice& choice, const LibraryCall& call) {
  AlgorithmChoice made = choice;
  made.parameters = call.parameters;
  return made;
}

const Router& BuildRequest::fabric_router() const {
  CHECK(router != nullptr);
  std::optional<Router>& fabric = found->fabric;
  if (!fabric) fabric.emplace(router->topology(), router->shared_profile(), LinkScope::fabric);
  return *fabric;
}

std::shared_ptr<MachineFindings> nothing_found() { return std::make_shared<MachineFindings>(); }

std::shared_ptr<MachineFindings> found_whatever_profile(const MachineFindings& found) {
  auto made = nothing_found();
  made->nccl = found.nccl;
  return made;
}

BuildRequest request_for(Collective collective, int root, bool in_place, const Router& router,
                         const Placement& placement) {
  BuildRequest request;
  request.collective = collective;
  request.ranks = static_cast<int>(placement.ranks.size());
  request.root = info(collective).rooted ? root : 0;
  request.in_place = in_place;
  request.host_of_rank = placement.host_of_rank;
  request.hosts = static_cast<int>(placement.hosts.size());
  request.router = &router;
  request.placement = &placement;
  return request;
}

namespace {

bool supports(const Algorithm& algorithm, Collective collective) {
  return std::ranges::count(algorithm.collectives, collective) > 0;
}

}  // namespace

std::optional<std::string> unsupported(const AlgorithmChoice& choice, const BuildRequest& request) {
  CHECK(choice.algorithm != nullptr);
  const Algorithm& algorithm = *choice.algorithm;
  if (choice.file) {
    if (auto reason = mismatch(*choice.file, request)) return reason;
  }
  if (!supports(algorithm, request.collective)) {
    return fmt::format("does not support {}", to_string(request.collective));
  }
  // A program of one group's ops has fewer.
  const int max_ranks = request.fold.is_folded() ? kMaxLinearRanks : algorithm.max_ranks;
  if (request.ranks > max_ranks) {
    return fmt::format("supports at most {} ranks; for more, its program would be too large",
                       max_ranks);
  }
  const bool has_machine = request.router != nullptr && request.placement != nullptr;
  if (algorithm.needs_machine && request.ranks > 1 && !has_machine) {
    return "needs a machine";
  }
  if (has_machine && !algorithm.uses_relays) {
    if (auto reason = needs_relays(algorithm, request)) return reason;
  }
  if (algorithm.unsupported == nullptr) return std::nullopt;
  return algorithm.unsupported(resolve_parameters(choice, request));
}

std::optional<double> ops(const AlgorithmChoice& choice, BuildRequest request) {
  if (choice.file || choice.algorithm->ops == nullptr) return std::nullopt;
  return choice.algorithm->ops(resolve_parameters(choice, std::move(request)));
}

std::int64_t rounds(const AlgorithmChoice& choice, BuildRequest request) {
  if (choice.file || choice.algorithm->rounds == nullptr) return 0;
  return choice.algorithm->rounds(resolve_parameters(choice, std::move(request)));
}

std::optional<std::string> recipe(const AlgorithmChoice& choice, BuildRequest request) {
  if (choice.file || choice.algorithm->recipe == nullptr) return std::nullopt;
  return choice.algorithm->recipe(resolve_parameters(choice, std::move(request)));
}

std::optional<std::string> not_built(const AlgorithmChoice& choice, const BuildRequest& request) {
  constexpr double kMostOps = 12e6;
  if (auto reason = unsupported(choice, request)) return reason;
  const std::optional<double> count = ops(choice, request);
  if (!count || *count <= kMostOps) return std::nullopt;
  return fmt::format(
      "its program would be too large: about {:.0f} million ops, where {:.0f} million are built",
      *count / 1e6, kMostOps / 1e6);
}

bool folds_when_cut(const AlgorithmChoice& choice) {
  const auto& asks = choice.algorithm->folds_when_cut;
  return asks == nullptr || asks(choice);
}

std::vector<Fold> folds(const AlgorithmChoice& choice, BuildRequest request) {
  const Algorithm& algorithm = *choice.algorithm;
  const bool may = !choice.file && algorithm.folds != nullptr;
  if (!may || !supports(algorithm, request.collective)) return {};
  return algorithm.folds(resolve_parameters(choice, std::move(request)));
}

std::vector<Fold> folds(const AlgorithmChoice& choice, BuildRequest request, const Forest& forest) {
  if (choice.file || choice.algorithm->folds_of_plan == nullptr) return {};
  return choice.algorithm->folds_of_plan(resolve_parameters(choice, std::move(request)), forest);
}

Program build(const AlgorithmChoice& choice, BuildRequest request) {
  if (choice.file) {
    if (choice.file->foreign) {
      for (const ForeignNote& note : choice.file->foreign->notes) {
        const bool is_warning = note.severity == ForeignNote::Severity::warning;
        request.notes->push_back(
            fmt::format("{}: {}{}", choice.label, is_warning ? "warning: " : "", note.text));
      }
    }
    return choice.file->program;
  }
  if (choice.algorithm->build == nullptr) return build(choice, request, plan(choice, request));
  CHECK(!unsupported(choice, request));
  return choice.algorithm->build(resolve_parameters(choice, std::move(request)));
}

namespace {

/// With ranks in the machine's order, so that plans do not depend on that of the user's list.
Forest plan_in_order(const Algorithm& algorithm, BuildRequest request) {
  // Whom a rank of a sendrecv sends to is a matter of its number.
  if (request.placement == nullptr || request.collective == Collective::sendrecv) {
    return algorithm.plan(request);
  }
  const MachineOrder order = machine_order(*request.placement);
  request.placement = &order.placement;
  request.host_of_rank = order.placement.host_of_rank;
  if (info(request.collective).rooted) request.root = order.rank(request.root);
  Forest forest = algorithm.plan(request);
  rename_sites(forest, order);
  return forest;
}

}  // namespace

Forest plan(const AlgorithmChoice& choice, BuildRequest request) {
  CHECK(choice.algorithm->plan != nullptr && !unsupported(choice, request));
  request = resolve_parameters(choice, std::move(request));
  Forest forest = plan_in_order(*choice.algorithm, request);
  if (request.ranks == 1) return forest;
  // Every figure and program that comes of a wrong plan would be wrong, too.
  const auto problems = check_forest(forest, *request.router, *request.placement);
  if (!problems.empty()) check_failed(problems.front().c_str(), __FILE__, __LINE__);
  return forest;
}

Program build(const AlgorithmChoice& choice, BuildRequest request, const Forest& forest) {
  CHECK(choice.algorithm->write != nullptr && !unsupported(choice, request));
  return choice.algorithm->write(resolve_parameters(choice, std::move(request)), forest);
}

}  // namespace espalier
