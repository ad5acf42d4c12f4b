// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/probing.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "topologies/load.h"

namespace espalier {

namespace {

// Times that differ by more than this between rounds are not those of a machine left alone.
constexpr double kUnsteady = 0.1;

std::string rate(double gbps) { return fit_number(gbps, 7); }
std::string latency_text(double latency_s) { return fit_number(latency_s * 1e6, 7); }

/// One line for each path that was measured.
void print_paths(const Console& console, const CopyFigures& figures, std::string_view heading) {
  console.out << "# " << heading << '\n';
  Columns columns("llrrr");
  columns.add({"from", "to", "latency(us)", "GB/s", "both ways"});
  const auto add = [&](const std::string& from, const std::string& to, const PathFigures& path,
                       double both_gbps) {
    columns.add({from, to, latency_text(path.latency_s), rate(path.gbps),
                 both_gbps > 0 ? rate(both_gbps) : ""});
  };
  add("gpu0", "gpu0", figures.local, 0);
  for (std::size_t from = 0; from < figures.pairs.size(); ++from) {
    for (std::size_t to = 0; to < figures.pairs.size(); ++to) {
      if (from == to) continue;
      add(fmt::format("gpu{}", from), fmt::format("gpu{}", to), figures.pairs[from][to],
          from < to ? figures.both_ways_gbps[from][to] : 0);
    }
  }
  for (std::size_t gpu = 0; gpu < figures.to_host.size(); ++gpu) {
    const std::string name = fmt::format("gpu{}", gpu);
    add(name, "host", figures.to_host[gpu], figures.host_both_ways_gbps[gpu]);
    add("host", name, figures.from_host[gpu], 0);
  }
  console.out << columns.render("#   ") << "#\n";
}

/// Bytes that move through memory, reads and writes together, while copying and combining.
void print_memory(const Console& console, const Survey& survey) {
  console.out << "# memory, reads and writes together, GB/s\n";
  std::vector<std::string> head{"", "copy"};
  for (const int k : ArithmeticFigures::kOperands) head.push_back(fmt::format("{} operands", k));
  Columns columns("l" + std::string(head.size() - 1, 'r'));
  columns.add(head);
  const auto add = [&](const std::string& name, const ArithmeticFigures& figures) {
    std::vector<std::string> cells{name, rate(2e-9 / figures.copy_s)};
    for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
      const int moved = ArithmeticFigures::kOperands[i] + 1;
      cells.push_back(rate(moved * 1e-9 / figures.combine_s[i]));
    }
    columns.add(std::move(cells));
  };
  for (std::size_t gpu = 0; gpu < survey.alone.size(); ++gpu) {
    add(fmt::format("gpu{} alone", gpu), survey.alone[gpu]);
  }
  if (survey.inventory.is_shared()) add("all together", survey.together);
  console.out << columns.render("#   ") << "#\n";
}

int run_probe(Arguments& arguments, const Console& given) {
  const ProbeRequest request = read_probe_request(arguments);
  const std::string output = arguments.output("--output");
  arguments.finish();
  const Console console = console_for(*request.backend, given);

  const Survey survey = survey_machine(request, console);
  const Topology machine = probed_machine(survey);
  if (output == "-") {
    console.out << print_topology(machine);
    return 0;
  }
  console.out << fmt::format("# probed {}\n#\n", machine.title);
  const bool engines = survey.copy_engine.has_value();
  print_paths(console, survey.kernel, engines ? "copies by kernels" : "copies");
  if (engines) print_paths(console, *survey.copy_engine, "copies by copy engines");
  print_memory(console, survey);
  console.out << fmt::format(
      "# half of the times differ by more than {:.1f} % between rounds{}\n#\n", 100 * survey.spread,
      survey.spread > kUnsteady ? ": the computer was busy; probe again when it is idle" : "");
  if (output.empty()) {
    console.out << "# --output FILE writes the topology\n";
  } else {
    write_output(console, output, print_topology(machine));
    console.out << fmt::format("# wrote {}\n", output);
  }
  return 0;
}

}  // namespace

const Verb& probe_verb() {
  static const Verb verb = {
      "probe",
      "measure this machine and write its topology",
      "Asks the system which GPUs there are and how they are connected, then measures what a "
      "transfer "
      "costs to start and how fast it goes: within every GPU, between every pair in each direction "
      "and in both at once, and to and from host memory, by kernels and by copy engines; "
      "and "
      "how fast memory is when 2, 4 and 8 operands are combined. Everything is measured in "
      "three rounds, and the medians count. --output writes the resulting topology, "
      "which `sim`, `plan`, `tune` and "
      "`compare` accept as --topology. With --backend host, the machine is this computer's threads "
      "and memory. docs/probing.md explains how figures are found.",
      {},
      {{"--backend", "host"},
       {"--devices", "all"},
       {"--virtual"},
       {"--timeout", "60"},
       {"--output"}},
      {{"probe --backend cuda --output here.yaml", "all GPUs of this computer"},
       {"probe --backend cuda --devices 0 --virtual 8 --output eight.yaml",
        "eight ranks that share one GPU"},
       {"probe --output host.yaml", "this computer itself, as a machine of four ranks"}},
      run_probe};
  return verb;
}

}  // namespace espalier
