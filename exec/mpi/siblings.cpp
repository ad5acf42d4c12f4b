// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/siblings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace espalier {
namespace {

// What is alike in all processes of a run, and different in most others: of Open MPI and PMIx, of
// MPICH, and of torchrun.
constexpr std::array kOfRun{"PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                            "MASTER_ADDR",    "TORCHELASTIC_RUN_ID",  "MASTER_PORT",
                            "WORLD_SIZE"};
// How many of them are on this host: Open MPI, MPICH, torchrun.
constexpr std::array kHere{"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"};

// Names of processes have at most 15 letters.
constexpr const char* kNameOfOneThatHasToldWhy = "has told why";

bool has_told(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  return std::getline(file, name) && name == kNameOfOneThatHasToldWhy;
}

std::string_view text_of(const Environment& environment, const char* name) {
  const char* const text = environment(name);
  return text != nullptr ? text : "";
}

/// Of another process; nothing is set where it may not be read.
std::map<std::string, std::string, std::less<>> environment_of(pid_t pid) {
  std::map<std::string, std::string, std::less<>> variables;
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string one; std::getline(file, one, '\0');) {
    const std::size_t sign = one.find('=');
    if (sign != std::string::npos) variables.emplace(one.substr(0, sign), one.substr(sign + 1));
  }
  return variables;
}

std::optional<int> processes_of(const Launch& launch) {
  return launch.place ? launch.place->processes : launch.processes;
}

}  // namespace

Siblings::Siblings(pid_t parent, Environment environment)
    : parent_(parent), environment_(std::move(environment)) {
  const Launch launch = read_launch(environment_);
  const std::optional<int> all = processes_of(launch);
  const auto is_all = [&](const char* name) {
    return all && text_of(environment_, name) == fmt::format("{}", *all);
  };
  if (!std::ranges::any_of(kHere, is_all)) return;
  for (int rank = 0; rank < *all; ++rank) expected_.insert(rank);
}

std::vector<pid_t> Siblings::children() const {
  std::vector<pid_t> found;
  std::error_code unreadable;
  const std::string tasks = fmt::format("/proc/{}/task", parent_);
  for (const auto& task : std::filesystem::directory_iterator(tasks, unreadable)) {
    std::ifstream file(task.path() / "children");
    found.insert(found.end(), std::istream_iterator<pid_t>(file), {});
  }
  return found;
}

bool Siblings::is_of_this_run(const Environment& other) const {
  return std::ranges::all_of(kOfRun, [&](const char* name) {
    return text_of(other, name) == text_of(environment_, name);
  });
}

void Siblings::note_told() { std::ofstream("/proc/self/comm") << kNameOfOneThatHasToldWhy; }

std::vector<RankView> Siblings::look() {
  for (const pid_t pid : children()) {
    const auto is_it = [&](const auto& known) { return known.second == pid; };
    if (std::ranges::any_of(known_, is_it)) continue;
    const auto variables = environment_of(pid);
    const Environment environment = [&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found != variables.end() ? found->second.c_str() : nullptr;
    };
    const Launch launch = read_launch(environment);
    if ((launch.by_mpi || launch.by_torch) && is_of_this_run(environment)) {
      known_[launch.rank] = pid;
    }
  }
  std::set<int> ranks = expected_;
  for (const auto& [rank, pid] : known_) ranks.insert(rank);
  std::vector<RankView> views;
  for (const int rank : ranks) {
    RankView& view = views.emplace_back();
    view.rank = rank;
    const auto known = known_.find(rank);
    if (known != known_.end()) view.pid = known->second;
    view.life = known != known_.end() ? life_of(view.pid) : Life::silent;
    view.has_told = known != known_.end() && has_told(view.pid);
  }
  return views;
}

}  // namespace espalier
