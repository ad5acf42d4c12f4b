// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/probing.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "report/survey.h"
#include "topologies/load.h"

namespace espalier {

namespace {

// Times that differ by more than this between rounds are not those of a machine left alone.
constexpr double kUnsteady = 0.1;

std::string rate(double gbps) { return fit_number(gbps, 7); }
std::string latency_text(double latency_s) { return fit_number(latency_s * 1e6, 7); }

/// One line for each path that was measured.
void print_paths(const Console& console, const std::vector<MeasuredPath>& paths,
                 std::string_view heading) {
  console.out << "# " << heading << '\n';
  Columns columns("llrrr");
  columns.add({"from", "to", "latency(us)", "GB/s", "both ways"});
  for (const MeasuredPath& path : paths) {
    columns.add({path.from, path.to, latency_text(path.figures.latency_s), rate(path.figures.gbps),
                 path.both_ways_gbps > 0 ? rate(path.both_ways_gbps) : ""});
  }
  console.out << columns.render("#   ") << "#\n";
}

/// What launching a program takes beside its ops.
void print_calls(const Console& console, const Survey& survey) {
  if (survey.inventory.is_host) return;
  console.out << fmt::format("# launching a program of one op at every rank (us): {}",
                             latency_text(survey.kernel.call_s));
  if (survey.copy_engine) {
    console.out << fmt::format(" by kernels, {} by copy engines",
                               latency_text(survey.copy_engine->call_s));
  }
  console.out << "\n#\n";
}

/// Bytes that move through memory, reads and writes together, while copying and combining.
void print_memory(const Console& console, const Survey& survey) {
  console.out << "# memory, reads and writes together, GB/s\n";
  std::vector<std::string> head{"", "copy"};
  for (const int k : ArithmeticFigures::kOperands) head.push_back(fmt::format("{} operands", k));
  Columns columns("l" + std::string(head.size() - 1, 'r'));
  columns.add(head);
  for (const MeasuredMemory& memory : measured_memories(survey)) {
    std::vector<std::string> cells{memory.name, rate(memory.copy_gbps)};
    for (const double gbps : memory.combine_gbps) cells.push_back(rate(gbps));
    columns.add(std::move(cells));
  }
  console.out << columns.render("#   ") << "#\n";
}

void print_survey(const Console& console, const Survey& survey, const std::string& title) {
  console.out << fmt::format("# probed {}\n#\n", title);
  const bool engines = survey.copy_engine.has_value();
  print_paths(console, measured_paths(survey, CopyMethod::kernel),
              engines ? "copies by kernels" : "copies");
  if (engines) {
    print_paths(console, measured_paths(survey, CopyMethod::copy_engine), "copies by copy engines");
  }
  if (survey.sockets) {
    print_paths(console, socket_paths(survey), "between sockets, by a rank and by all of a socket");
  }
  if (survey.network) {
    print_paths(console, network_paths(survey), "between hosts, by a rank and by all of a host");
  }
  print_calls(console, survey);
  print_memory(console, survey);
  console.out << fmt::format(
      "# half of the times differ by more than {:.1f} % between rounds{}\n#\n", 100 * survey.spread,
      survey.spread > kUnsteady ? ": the computer was busy; probe again when it is idle" : "");
}

int run_probe(Arguments& arguments, const Console& given) {
  const ProbeRequest request = read_probe_request(arguments);
  const std::string output = arguments.output("--output");
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  arguments.finish();
  if (request.backend->connect != nullptr) request.backend->connect(request.timeout_s);
  const Console console = console_for(*request.backend, given);

  const Survey survey = survey_machine(request, console);
  const Topology machine = probed_machine(survey);
  if (arguments.prints_text()) print_survey(console, survey, machine.title);
  if (!json.empty()) write_output(console, json, survey_json(survey, machine.title));
  if (!csv.empty()) write_output(console, csv, survey_csv(survey));
  if (!output.empty()) write_output(console, output, print_topology(machine));
  if (!arguments.prints_text()) return 0;
  console.out << (output.empty() ? "# --output FILE writes the topology\n"
                                 : fmt::format("# wrote {}\n", output));
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
      "and memory. With --backend mpi, it is the processes that mpirun or torchrun has started, in "
      "memory of their hosts or, with --memory cuda, of a GPU each, with the messages that they "
      "send and the network between hosts. docs/probing.md explains how figures are found.",
      {},
      {{"--backend", "host"},
       {"--devices", "all"},
       {"--virtual"},
       {"--memory", "host"},
       {"--transport", "auto"},
       {"--timeout", "60"},
       {"--output"},
       {"--json"},
       {"--csv"}},
      {{"probe --backend cuda --output here.yaml", "all GPUs of this computer"},
       {"probe --backend cuda --devices 0 --virtual 8 --output eight.yaml",
        "eight ranks that share one GPU"},
       {"probe --output host.yaml", "this computer itself, as a machine of four ranks"},
       {"probe --backend mpi --memory cuda --output cluster.yaml",
        "processes with a GPU each, that mpirun or torchrun has started"}},
      run_probe};
  return verb;
}

}  // namespace espalier
