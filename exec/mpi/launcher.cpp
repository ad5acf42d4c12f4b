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

namespace espalier {
namespace {

// What launchers tell every process they start: mpirun of Open MPI, mpiexec of MPICH and those
// made from it, srun with PMIx or PMI2, aprun and PALS.
constexpr std::array kMarks{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID"};
constexpr std::array kSizes{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

std::optional<int> number(const char* text, int minimum = 1) {
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* const end = text + std::strlen(text);
  const auto [last, status] = std::from_chars(text, end, value);
  if (status != std::errc{} || last != end || value < minimum) return std::nullopt;
  return value;
}

std::optional<RendezvousPlace> read_place(const Environment& environment) {
  const char* const address = environment("MASTER_ADDR");
  const auto rank = number(environment("RANK"), 0);
  const auto processes = number(environment("WORLD_SIZE"));
  const auto port = number(environment("MASTER_PORT"));
  const bool is_whole = address != nullptr && *address != '\0' && rank && processes && port;
  constexpr int kLastPort = 65535;
  if (!is_whole || *rank >= *processes || *port > kLastPort) return std::nullopt;
  return RendezvousPlace{*rank, *processes, address, *port};
}

}  // namespace

Launch read_launch(const Environment& environment) {
  Launch launch;
  for (const char* mark : kMarks) {
    launch.by_mpi = launch.by_mpi || environment(mark) != nullptr;
    if (launch.rank == 0) launch.rank = number(environment(mark)).value_or(0);
  }
  for (const char* size : kSizes) {
    if (!launch.processes) launch.processes = number(environment(size));
  }
  launch.by_torch =
      !launch.by_mpi && environment("RANK") != nullptr && environment("WORLD_SIZE") != nullptr;
  if (launch.by_torch) {
    launch.place = read_place(environment);
    launch.rank = number(environment("RANK"), 0).value_or(0);
  }
  return launch;
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
  if (processes > 1 || launch.processes.value_or(1) == 1) return std::nullopt;
  return LaunchProblem{
      fmt::format("{} processes were started, but MPI knows of one only: their launcher belongs to "
                  "another MPI than this espalier, which was built with {}",
                  *launch.processes, library),
      "start them with the launcher of the same MPI"};
}

void throw_problem(const LaunchProblem& problem) {
  throw Error(ErrorKind::unsupported, problem.message, problem.help);
}

std::string describe_sockets(const std::string& folder) {
  std::set<int> sockets;
  for (const int processor : allowed_processors()) {
    std::ifstream file(fmt::format("{}/cpu{}/topology/physical_package_id", folder, processor));
    int socket = -1;
    if (file >> socket && socket >= 0) sockets.insert(socket);
  }
  if (sockets.empty()) return {};
  std::vector<std::string> names;
  for (const int socket : sockets) names.push_back(fmt::format("{}", socket));
  return (names.size() == 1 ? "socket " : "sockets ") + join(names, ", ");
}

}  // namespace espalier
