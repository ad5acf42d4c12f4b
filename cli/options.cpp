// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "algorithms/algorithm.h"
#include "backends.h"
#include "cli/verb.h"
#include "core/check.h"
#include "core/error.h"
#include "core/words.h"
#include "formats/format.h"
#include "ir/data.h"
#include "run/backend.h"
#include "run/launch.h"
#include "scenarios/scenario.h"
#include "topologies/load.h"
#include "topologies/synonyms.h"
#include "training/model.h"

namespace espalier {

const std::vector<OptionSpec>& all_options() {
  static const std::vector<OptionSpec> options = {
      {"--topology", "T", WordKind::topology, false,
       "the machine: NAME, NAME:nodes=N, NAME:nvlink2.gbps=x2 (a what-if), a YAML file, "
       "a file of NCCL or nvidia-smi (see list formats), or ring:n=8"},
      {"--measured", "FILE", WordKind::file, false,
       "output of nccl-tests or rccl-tests to compare with, text or JSON"},
      {"--gpus", "LIST", WordKind::free, false, "its GPUs that are ranks: 0,1,4, 0-7 or all"},
      {"--relay", "LIST", WordKind::free, false,
       "idle GPUs that may relay: 4-7, or all; they hold, forward and combine data"},
      {"--ranks", "N", WordKind::free, false, "number of ranks, if no machine is named"},
      {"--model", "M", WordKind::model, false, "the network to train: a name, or a YAML file"},
      {"--gpu-counts", "LIST", WordKind::free, false,
       "numbers of GPUs to train on, counted from the first: 1,2,4,8"},
      {"--batch", "N", WordKind::free, false,
       "samples per GPU and iteration; by default the batch of the model's step time"},
      {"--gpu-type", "GPU", WordKind::free, false,
       "use the step time of this GPU, such as v100-sxm2; by default that of the machine's GPUs"},
      {"--compute-ms", "MS", WordKind::free, false,
       "how long one GPU computes in an iteration; replaces the model's step time"},
      {"--fusion", "SIZE", WordKind::size, false,
       "size of the fusion buffer: 64MiB, a list, or 0 to exchange every tensor separately"},
      {"--no-overlap", "", WordKind::flag, false,
       "exchange gradients after the backward pass only"},
      {"--collective", "C", WordKind::collective, false, "the collective"},
      {"--root", "RANK", WordKind::free, false, "the root of a rooted collective"},
      {"--algorithm", "A...", WordKind::algorithm, true,
       "names as ring or knomial:k=4, programs in files as ./mine.esp, separated by spaces or "
       "commas, or all"},
      {"--size", "SIZE", WordKind::size, false,
       "message sizes: 1GiB, 64MB, a list 1MiB,4MiB, or powers of two 4KiB..1GiB; K, M and G alone "
       "are KiB, MiB and GiB as in nccl-tests, KB, MB and GB are decimal"},
      {"--chunk", "SIZE", WordKind::chunk, false,
       "maximum size of a transfer: auto, 0 for whole messages, or a size; raised where a "
       "program would have more than 500 000 ops"},
      {"--chunks", "N", WordKind::free, false, "cut the longest transfer into N chunks"},
      {"--profile", "P", WordKind::profile, false,
       "the runtime that moves the bytes, or a file that fit wrote (./fitted.yaml); kernel takes "
       "the "
       "best of its protocols, kernel:ll one"},
      {"--no-merge", "", WordKind::flag, false,
       "refuse programs with more lanes than a GPU has blocks; they share blocks otherwise"},
      {"--engine", "E", WordKind::engine, false,
       "what solves contention on links: an engine of our own (auto, classes), or SimGrid"},
      {"--launch", "MODE", WordKind::launch, false,
       "how a benchmark launches calls: one process for all GPUs of a host, a process per GPU, or "
       "a "
       "CUDA graph"},
      {"--nccl-version", "V", WordKind::free, false,
       "the NCCL that was measured, 2.18 or 2.18.3, whatever the log says; of a version whose "
       "rules "
       "are not known, the nearest"},
      {"--plot", "FILE", WordKind::file, false,
       "write a picture (SVG) of simulated / measured times by size, a series for each table"},
      {"--against", "LIBRARY", WordKind::free, false,
       "also measure this library's own collective on the same buffers: nccl, with --backend cuda"},
      {"--no-nccl", "", WordKind::flag, false, "do not ask how fast NCCL is, which takes a while"},
      {"--links", "SCOPE", WordKind::links, false,
       "links to use: all, the GPU fabric alone, or all with detours through NICs within a host"},
      {"--in-place", "", WordKind::flag, false, "input and output share a buffer"},
      {"--backend", "B", WordKind::backend, false, "what runs the programs"},
      {"--devices", "LIST", WordKind::free, false,
       "the GPU of each rank and relay, for --backend cuda: 0-3, or 0,0,0,0 for four ranks on one; "
       "all assigns the GPUs of this computer in turn"},
      {"--memory", "KIND", WordKind::process_memory, false,
       "where the buffers of --backend mpi are: host, memory of the computers, or cuda, a GPU for "
       "each process, which --devices may name"},
      {"--transport", "T", WordKind::gpu_transport, false,
       "how messages get from GPU to GPU with --memory cuda: auto (CUDA IPC between processes of a "
       "computer, CUDA-aware MPI, or else pinned memory), mpi (MPI is given GPU memory), staged "
       "(through pinned memory) or nccl"},
      {"--virtual", "N", WordKind::free, false,
       "number of ranks that share one GPU, or this computer; default 4 with --backend host"},
      {"--dtype", "TYPE", WordKind::data_type, false, "element type"},
      {"--op", "OP", WordKind::reduce_op, false, "reduction operator"},
      {"--iters", "N", WordKind::free, false, "timed runs"},
      {"--warmup", "N", WordKind::free, false, "runs before the timed ones"},
      {"--no-check", "", WordKind::flag, false, "do not check the results"},
      {"--timeout", "SECONDS", WordKind::free, false,
       "report a run as stuck after this time without progress"},
      {"--budget", "SECONDS", WordKind::free, false,
       "stop every search after this time, with the best found so far; 0 takes what is found "
       "first, and has fit keep all constants; run grants it to each question"},
      {"--jobs", "N", WordKind::free, false,
       "number of worker processes; 0: one for each processor that may be used; with --budget, "
       "all but run answer in one process"},
      {"--resume", "FILE", WordKind::file, false,
       "append answers to FILE as they are found, and reuse those it already has"},
      {"--shard", "I/N", WordKind::free, false,
       "answer part I of N of the questions into the file of --resume, and print no tables: for "
       "several computers"},
      {"--merge", "FILE...", WordKind::file, true,
       "take answers from these files, which runs with --resume wrote"},
      {"--show-links", "N", WordKind::free, false, "draw the N busiest links (of the fastest run)"},
      {"--critical-path", "", WordKind::flag, false, "print the critical path of the fastest run"},
      {"--explain", "", WordKind::flag, false,
       "print what the library decides for each size of algorithm nccl, and why: its tuner's "
       "table"},
      {"--show-buckets", "", WordKind::flag, false,
       "list the buckets of the fastest run, and when each was exchanged"},
      {"--show-trees", "N", WordKind::free, false, "draw the N heaviest trees"},
      {"--dot", "[FILE]", WordKind::file, false,
       "write a Graphviz graph to FILE; without FILE or with -, to standard output instead of the "
       "text"},
      {"--save", "FILE", WordKind::file, false,
       "write the program in the text form that verify reads; - for standard output instead of the "
       "text"},
      {"--format", "FORMAT", WordKind::free, false,
       "of --output: yaml, or nccl-csv[:VERSION] for the example tuner plugin of that NCCL"},
      {"--export", "FILE", WordKind::file, false,
       "write the program (of sim and exec: that of the fastest run) as another program reads it, "
       "by the ending of FILE: .xml for MSCCL, .json for MSCCL++, .esp for the text form"},
      {"--to", "FORMAT", WordKind::format, false,
       "the format to write, where the ending of the file does not say it"},
      {"--instances", "N", WordKind::free, false,
       "copies of the program side by side, each for a part of the message, in what --export "
       "writes; auto: one lane for every block of a GPU"},
      {"--output", "FILE", WordKind::file, false,
       "write the tuning table, topology or profile as YAML; - for standard output instead of the "
       "text"},
      {"--exact", "", WordKind::flag, false, "compare results exactly, however large the program"},
      {"--strict", "", WordKind::flag, false, "take warnings for failures, with exit code 1"},
      {"--seed", "N", WordKind::free, false, "seed for random sums; unless given, drawn at random"},
      {"--json", "FILE", WordKind::file, false,
       "write the results as JSON; - for standard output instead of the text"},
      {"--nccl-tests", "FILE", WordKind::file, false,
       "write the table of one algorithm as the JSON of nccl-tests (its -J); - for standard output "
       "instead of the text"},
      {"--csv", "FILE", WordKind::file, false,
       "write the rows of the table as CSV; - for standard output instead of the text"},
      {"--validation", "FILE", WordKind::file, false,
       "write Markdown tables of simulated times beside the measured ones that studies state; - "
       "for "
       "standard output"},
      {"--claims", "FILE", WordKind::file, false,
       "write a Markdown table of the papers' claims and their verdicts; - for standard output"},
      {"--trace", "FILE", WordKind::file, false,
       "write the fastest run's timeline for ui.perfetto.dev; compressed if FILE ends in .gz"},
      {"--trace-ops", "N", WordKind::free, false, "ops in --trace, the longest ones; 0: all"},
      {"--html", "FILE", WordKind::file, false,
       "write a page for a browser, in one file: curves, the machine with the load of its links, "
       "timelines; - for standard output instead of the text"},
      {"--markdown", "", WordKind::flag, false, ""},
  };
  return options;
}

const OptionSpec& option_spec(std::string_view name) {
  const auto spec = std::ranges::find(all_options(), name, &OptionSpec::name);
  CHECK(spec != all_options().end());
  return *spec;
}

namespace {

template <class Range, class Name>
std::vector<std::string> names(const Range& range, Name name) {
  std::vector<std::string> all;
  for (const auto& element : range) all.emplace_back(name(element));
  return all;
}

std::vector<std::string> topology_names() {
  auto all = names(catalogue(), [](auto& entry) { return entry.name; });
  for (const GenericMachine& generic : generic_machines()) all.push_back(generic.name);
  return all;
}

std::vector<std::string> algorithm_names() {
  return names(all_algorithms(), [](auto* algorithm) { return algorithm->name; });
}

std::vector<std::string> scenario_names() {
  return names(builtin_scenarios(), [](auto& entry) { return entry.name; });
}

std::vector<std::string> model_names() {
  return names(builtin_models(), [](auto& entry) { return entry.name; });
}

/// Without repetitions: a ring is an algorithm and a machine.
std::vector<std::string> nameable() {
  std::vector<std::string> all = topology_names();
  for (const auto& more : {algorithm_names(), scenario_names(), model_names()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

using ParameterNames = std::map<std::string, std::vector<std::string>>;

bool has_clusters(const std::string& machine) {
  try {
    load_topology(machine + ":nodes=2");
    return true;
  } catch (const Error&) {
    return false;
  }
}

ParameterNames topology_parameters() {
  const auto name = [](auto& parameter) { return parameter.name; };
  ParameterNames all;
  for (const GenericMachine& generic : generic_machines()) {
    all[generic.name] = names(generic.parameters, name);
  }
  for (const CatalogueEntry& entry : catalogue()) {
    if (has_clusters(entry.name)) all[entry.name] = {"nodes"};
  }
  return all;
}

ParameterNames algorithm_parameters() {
  ParameterNames all;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const AlgorithmParameter& parameter : algorithm->parameters) {
      all[algorithm->name].push_back(parameter.name);
    }
  }
  return all;
}

}  // namespace

const Synonyms& option_synonyms() {
  static const Synonyms synonyms = {
      {"-b", "--size"},
      {"-e", "--size"},
      {"--minbytes", "--size"},
      {"--maxbytes", "--size"},
      {"--bytes", "--size"},
      {"--message-size", "--size"},
      {"-n", "--iters"},
      {"--iterations", "--iters"},
      {"-w", "--warmup"},
      {"--warmup_iters", "--warmup"},
      {"-J", "--nccl-tests"},
      {"--output_file", "--nccl-tests"},
      {"-d", "--dtype"},
      {"--datatype", "--dtype"},
      {"-o", "--op"},
      {"--reduction", "--op"},
      {"-g", "--virtual"},
      {"--ngpus", "--gpus"},
      {"--machine", "--topology"},
      {"-t", "--topology"},
      {"--system", "--topology"},
      {"-a", "--algorithm"},
      {"--algo", "--algorithm"},
      {"--device", "--devices"},
      {"--network", "--model"},
      {"--batch-size", "--batch"},
      {"-j", "--jobs"},
      {"--threads", "--jobs"},
      {"--out", "--output"},
  };
  return synonyms;
}

namespace {

const Synonyms& verb_synonyms() {
  static const Synonyms synonyms = {
      {"simulate", "sim"},  {"simulation", "sim"}, {"predict", "sim"},   {"execute", "exec"},
      {"run-exec", "exec"}, {"execution", "exec"}, {"bench", "exec"},    {"benchmark", "exec"},
      {"time", "exec"},     {"measure", "exec"},   {"check", "verify"},  {"validate", "verify"},
      {"ls", "list"},       {"describe", "show"},  {"info", "show"},     {"print", "show"},
      {"topo", "show"},     {"calibrate", "fit"},  {"fitting", "fit"},   {"regress", "fit"},
      {"survey", "probe"},  {"training", "train"}, {"autotune", "tune"}, {"diff", "compare"},
      {"scenario", "run"},  {"study", "run"},      {"schedule", "plan"}, {"version", "help"},
  };
  return synonyms;
}

const Synonyms& backend_synonyms() {
  static const Synonyms synonyms = {
      {"cpu", "host"}, {"threads", "host"}, {"gpu", "cuda"}, {"nvidia", "cuda"}, {"nccl", "cuda"}};
  return synonyms;
}

/// Of all that can be shown.
const Synonyms& nameable_synonyms() {
  static const Synonyms all = [] {
    Synonyms synonyms = topology_synonyms();
    const Synonyms& more = algorithm_synonyms();
    synonyms.insert(synonyms.end(), more.begin(), more.end());
    return synonyms;
  }();
  return all;
}

}  // namespace

const Synonyms& synonyms_of(WordKind kind) {
  static const Synonyms none;
  switch (kind) {
    case WordKind::topology:
      return topology_synonyms();
    case WordKind::algorithm:
      return algorithm_synonyms();
    case WordKind::collective:
      return collective_synonyms();
    case WordKind::profile:
      return profile_synonyms();
    case WordKind::data_type:
      return data_type_synonyms();
    case WordKind::reduce_op:
      return reduce_op_synonyms();
    case WordKind::backend:
      return backend_synonyms();
    case WordKind::verb:
      return verb_synonyms();
    case WordKind::nameable:
      return nameable_synonyms();
    default:
      return none;
  }
}

ParameterNames parameters_of(WordKind kind) {
  if (kind == WordKind::algorithm) return algorithm_parameters();
  if (kind == WordKind::topology) return topology_parameters();
  if (kind != WordKind::nameable) return {};
  ParameterNames all = topology_parameters();
  for (const auto& [name, parameters] : algorithm_parameters()) {
    all[name].insert(all[name].end(), parameters.begin(), parameters.end());
  }
  return all;
}

/// Those that can be written, and our own.
std::vector<std::string> format_names() {
  std::vector<std::string> all{"esp", "yaml"};
  for (const Format* format : all_formats()) {
    if (format->write_machine != nullptr || format->write_program != nullptr) {
      all.push_back(format->name);
    }
  }
  return all;
}

std::vector<std::string> words_of(WordKind kind) {
  const auto as_text = [](auto value) { return to_string(value); };
  switch (kind) {
    case WordKind::flag:
    case WordKind::free:
    case WordKind::size:
    case WordKind::file:
      return {};
    case WordKind::topology:
      return topology_names();
    case WordKind::algorithm: {
      auto all = algorithm_names();
      for (const char* chooser : {"all", "auto", "tuned:"}) all.emplace_back(chooser);
      return all;
    }
    case WordKind::collective:
      return names(all_collectives(), [](auto& collective) { return collective.name; });
    case WordKind::profile:
      return names(built_in_profiles().profiles, [](auto& one) { return one.first; });
    case WordKind::links:
      return names(all_link_scopes(), as_text);
    case WordKind::launch:
      return names(all_launch_modes(), as_text);
    case WordKind::engine:
      return names(all_sim_engines(), as_text);
    case WordKind::scenario:
      return scenario_names();
    case WordKind::model:
      return model_names();
    case WordKind::backend:
      return names(executing_backends(), [](auto* entry) { return entry->name; });
    case WordKind::process_memory:
      return {"host", "cuda"};
    case WordKind::gpu_transport:
      return names(all_gpu_transports(), as_text);
    case WordKind::data_type:
      return names(all_data_types(), as_text);
    case WordKind::reduce_op:
      return names(all_reduce_ops(), as_text);
    case WordKind::chunk:
      return {"auto", "0"};
    case WordKind::verb:
      return names(all_verbs(), [](auto* verb) { return verb->name; });
    case WordKind::shell:
      return {"bash", "zsh", "fish"};
    case WordKind::list_kind:
      return {"topologies", "algorithms",  "scenarios", "models", "profiles",
              "link_kinds", "collectives", "backends",  "formats"};
    case WordKind::nameable:
      return nameable();
    case WordKind::format:
      return format_names();
  }
  CHECK(false);
}

}  // namespace espalier
