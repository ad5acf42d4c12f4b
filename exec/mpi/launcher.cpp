// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/launcher.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/words.h"
#include "exec/host/numa.h"
#include "exec/mpi/fingerprint.h"

namespace espalier {
namespace {

/// What a launcher tells every process that it starts.
struct LauncherOfMpi {
  const char* rank;
  const char* local_rank;  ///< null: it does not
  const char* processes;
};
// mpirun of Open MPI; mpiexec of MPICH and those made from it, and srun with PMI2; aprun and PALS;
// srun with PMIx. Who is started by one of them has the variables of srun, too, where that has
// started the launcher, so they come last.
constexpr std::array kLaunchers{
    LauncherOfMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    LauncherOfMpi{"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    LauncherOfMpi{"PALS_RANKID", "PALS_LOCAL_RANKID", nullptr},
    LauncherOfMpi{"PMIX_RANK", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"}};

std::optional<int> number(const char* text, int minimum = 1) {
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [last, status] = std::from_chars(text, end, value);
  if (status != std::errc{} || last != end || value < minimum) return std::nullopt;
  return value;
}

/// By what torchrun calls the run, with how often it has started it again; 0 where it has no name.
std::uint64_t read_job(const Environment& environment) {
  const char* const name = environment("TORCHELASTIC_RUN_ID");
  if (name == nullptr || std::string_view(name) == "none") return 0;
  const char* const restarts = environment("TORCHELASTIC_RESTART_COUNT");
  return hash_bytes(fmt::format("{} {}", name, restarts == nullptr ? "" : restarts));
}

std::optional<RendezvousPlace> read_place(const Environment& environment) {
  const char* const address = environment("MASTER_ADDR");
  const auto rank = number(environment("RANK"), 0);
  const auto processes = number(environment("WORLD_SIZE"));
  const auto port = number(environment("MASTER_PORT"));
  const bool is_whole = address != nullptr && *address != '\0' && rank && processes && port;
  constexpr int kLastPort = 65535;
  if (!is_whole || *rank >= *processes || *port > kLastPort) return std::nullopt;
  return RendezvousPlace{*rank, *processes, address, *port, read_job(environment)};
}

/// What a launcher of MPI says; nothing where there was none.
std::optional<Launch> read_mpi(const Environment& environment) {
  const auto read = [&](const char* name, int minimum) {
    return name == nullptr ? std::nullopt : number(environment(name), minimum);
  };
  for (const LauncherOfMpi& launcher : kLaunchers) {
    if (environment(launcher.rank) == nullptr) continue;
    Launch launch;
    launch.by_mpi = true;
    launch.rank = read(launcher.rank, 0).value_or(0);
    launch.local_rank = read(launcher.local_rank, 0);
    launch.processes = read(launcher.processes, 1);
    return launch;
  }
  return std::nullopt;
}

/// Whether the variables of torchrun are those of the launcher that has started this process, and
/// MPI's those of one that has started torchrun: only torchrun sets the first, and nobody starts a
/// single process of MPI to be one of several.
bool is_inner(const Launch& torch, const Launch& mpi, const Environment& environment) {
  if (environment("TORCHELASTIC_RUN_ID") != nullptr) return true;
  return mpi.processes == 1 && torch.place && torch.place->processes > 1;
}

}  // namespace

Launch read_launch(const Environment& environment) {
  const std::optional<Launch> mpi = read_mpi(environment);
  if (environment("RANK") == nullptr || environment("WORLD_SIZE") == nullptr) {
    return mpi.value_or(Launch());
  }
  Launch torch;
  torch.by_torch = true;
  torch.place = read_place(environment);
  torch.rank = number(environment("RANK"), 0).value_or(0);
  torch.local_rank = number(environment("LOCAL_RANK"), 0);
  return mpi && !is_inner(torch, *mpi, environment) ? *mpi : torch;
}

std::optional<LaunchProblem> problem_of(const Launch& launch) {
  if (launch.by_mpi || launch.place) return std::nullopt;
  if (launch.by_torch) {
    return LaunchProblem{
        "RANK and WORLD_SIZE are set, as torchrun does, but don't say with MASTER_ADDR and "
        "MASTER_PORT where the processes meet",
        "RANK from 0 to WORLD_SIZE - 1, the address of rank 0 and a free port there"};
  }
  return LaunchProblem{
      "this is a single process, which neither a launcher of MPI nor torchrun has started",
      "mpirun -n 4 espalier ... --backend mpi"};
}

std::optional<LaunchProblem> problem_of(const Launch& launch, int processes,
                                        const std::string& library) {
  const bool are_several = launch.processes.value_or(1) > 1 || launch.rank > 0;
  if (processes > 1 || !are_several) return std::nullopt;
  const std::string started = launch.processes
                                  ? fmt::format("{} processes were started", *launch.processes)
                                  : fmt::format("this process was started as rank {}", launch.rank);
  return LaunchProblem{
      fmt::format("{}, but MPI knows of one only: the launcher belongs to another MPI than this "
                  "espalier, which was built with {}",
                  started, library),
      "start them with the launcher of the same MPI"};
}

void throw_problem(const LaunchProblem& problem) {
  throw Error(ErrorKind::unsupported, problem.message, problem.help);
}

std::string Sockets::text() const {
  if (numbers.empty()) return {};
  std::vector<std::string> names;
  for (const int number : numbers) names.push_back(fmt::format("{}", number));
  return fmt::format("{}{} {}", are_numa_nodes ? "NUMA node" : "socket",
                     names.size() == 1 ? "" : "s", join(names, ", "));
}

Sockets allowed_sockets(const std::string& folder) {
  const std::vector<int> allowed = allowed_processors();
  std::set<int> packages;
  bool are_single = true;
  for (const int processor : allowed) {
    const std::string topology = fmt::format("{}/cpu/cpu{}/topology/", folder, processor);
    int package = -1;
    if (!(std::ifstream(topology + "physical_package_id") >> package) || package < 0) return {};
    packages.insert(package);
    // "3", or "0-3" of a package with several; older kernels know it as the siblings of a core.
    std::string others;
    if (!(std::ifstream(topology + "package_cpus_list") >> others)) {
      std::ifstream(topology + "core_siblings_list") >> others;
    }
    are_single = are_single && others == fmt::format("{}", processor);
  }
  if (!are_single) return {{packages.begin(), packages.end()}, false};
  Sockets nodes{{}, true};
  for (const NumaNode& node : numa_nodes(allowed, folder + "/node")) {
    nodes.numbers.push_back(node.number);
  }
  return nodes;
}

}  // namespace espalier
