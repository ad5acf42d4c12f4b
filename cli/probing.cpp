// SPDX-License-Identifier: Apache-2.0
#include "cli/probing.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "core/words.h"
#include "probe/fit_machine.h"
#include "probe/probing_meter.h"

namespace espalier {

namespace {

constexpr int kHostRanks = 4;
constexpr int kMaxVirtualRanks = 64;

/// The ranks whose devices are listed share one, or have one each. What is wrong where only some
/// of them share.
std::optional<std::string> settle_sharing(ProbeRequest& request) {
  const std::size_t ranks = request.devices.size();
  const std::set<int> different(request.devices.begin(), request.devices.end());
  if (different.size() == ranks) return std::nullopt;
  if (different.size() > 1) {
    return fmt::format("{} on {}: some of them share a GPU", counted(ranks, "rank"),
                       counted(different.size(), "GPU"));
  }
  request.sharing = static_cast<int>(ranks);
  request.devices.resize(1);
  return std::nullopt;
}
constexpr const char* kHowToShare =
    "give each rank its own GPU, or all of them the same one: 0,0,0,0";

std::optional<std::string> too_many(int sharing) {
  if (sharing <= kMaxVirtualRanks) return std::nullopt;
  return fmt::format("{} ranks on one device: at most {} can be probed", sharing, kMaxVirtualRanks);
}

}  // namespace

const BackendEntry& read_backend(Arguments& arguments) {
  std::vector<std::pair<std::string, const BackendEntry*>> choices;
  for (const BackendEntry* entry : executing_backends()) choices.emplace_back(entry->name, entry);
  return *arguments.choice("--backend", choices);
}

std::vector<int> read_devices(Arguments& arguments, const BackendEntry& backend) {
  const std::vector<int> devices = arguments.gpus("--devices");
  if (arguments.given("--devices") && !backend.has_devices) {
    arguments.problem(backend.may_use_gpus ? "--devices needs --backend cuda, or --memory cuda"
                                           : "--devices needs --backend cuda");
  }
  return devices;
}

DeviceChoice read_device_choice(Arguments& arguments, const BackendEntry& backend) {
  const bool on_gpus = arguments.choice<bool>("--memory", {{"host", false}, {"cuda", true}});
  const GpuTransport transport = arguments.choice_among("--transport", all_gpu_transports());
  if (on_gpus && !backend.may_use_gpus) arguments.problem("--memory cuda needs --backend mpi");
  if (arguments.given("--transport") && !on_gpus) {
    arguments.problem("--transport needs --memory cuda");
  }
  DeviceChoice choice;
  if (on_gpus) {
    choice.devices = arguments.gpus("--devices");
    choice.gpu_memory = transport;
  } else {
    choice.devices = read_devices(arguments, backend);
  }
  return choice;
}

void count_ranks(Arguments& arguments, const std::vector<int>& devices, Query& question) {
  if (devices.empty() || !question.topology.empty()) return;
  const auto count = static_cast<int>(devices.size());
  if (!arguments.given("--ranks")) {
    question.ranks = count;
  } else if (question.ranks != count) {
    arguments.problem_of("--devices",
                         fmt::format("{} named for {}", counted(devices.size(), "GPU"),
                                     counted(question.ranks, "rank")),
                         "name one for each rank; ranks may share one: 0,0,0,0");
  }
}

void count_processes(const Arguments& arguments, const BackendEntry& backend, Query& question) {
  if (backend.processes == nullptr || !question.topology.empty()) return;
  const int processes = backend.processes();
  if (arguments.given("--ranks") && question.ranks != processes) {
    throw Error(ErrorKind::usage,
                fmt::format("{} for {}", counted(static_cast<std::size_t>(question.ranks), "rank"),
                            counted(static_cast<std::size_t>(processes), "process", "processes")),
                "leave --ranks out: each process is a rank");
  }
  question.ranks = processes;
}

Console console_for(const BackendEntry& backend, const Console& console) {
  return backend.tells == nullptr || backend.tells() ? console : mute_console();
}

ProbeRequest read_probe_request(Arguments& arguments) {
  ProbeRequest request;
  request.backend = &read_backend(arguments);
  request.devices = read_devices(arguments, *request.backend);
  request.sharing = !request.backend->has_devices ? kHostRanks : 0;
  if (arguments.given("--virtual")) {
    request.sharing = static_cast<int>(arguments.integer("--virtual", 1, kMaxVirtualRanks));
    if (request.devices.size() > 1) {
      arguments.problem_of("--virtual", "the ranks share one GPU, but --devices names several",
                           "name one");
    }
    if (request.backend->has_devices && request.devices.empty()) request.devices = {0};
  } else if (const auto problem = settle_sharing(request)) {
    arguments.problem_of("--devices", *problem, kHowToShare);
  }
  if (const auto problem = too_many(request.sharing)) {
    arguments.problem_of("--devices", *problem);
  }
  request.timeout_s = arguments.number("--timeout", 0.001, 1e9);
  return request;
}

int ranks_to_probe(const BackendEntry& backend, int unless_gpus) {
  const int gpus = backend.has_devices ? backend.count_devices() : 1;
  return gpus > 1 ? gpus : unless_gpus;
}

ProbeRequest probe_request_for(const BackendEntry& backend, const std::vector<int>& devices,
                               int ranks, double timeout_s) {
  ProbeRequest request{&backend, devices, 0, timeout_s};
  if (!backend.has_devices) {
    request.sharing = ranks;
    if (const auto problem = too_many(ranks)) throw Error(ErrorKind::usage, *problem);
    return request;
  }
  const int known = devices.empty() ? backend.count_devices() : static_cast<int>(devices.size());
  request.devices.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    const int next = rank % known;
    request.devices.push_back(devices.empty() ? next : devices[static_cast<std::size_t>(next)]);
  }
  if (const auto problem = settle_sharing(request)) {
    throw Error(ErrorKind::usage, *problem, kHowToShare);
  }
  if (const auto problem = too_many(request.sharing)) {
    throw Error(ErrorKind::usage, *problem);
  }
  return request;
}

Survey survey_machine(const ProbeRequest& request, const Console& console) {
  const BackendEntry& entry = *request.backend;
  const int sharing = entry.processes != nullptr ? entry.processes() : request.sharing;
  const Inventory inventory = entry.inventory(request.devices, sharing);
  DeviceChoice choice{request.devices};
  if (entry.has_devices && request.sharing > 0) {
    choice.devices.assign(static_cast<std::size_t>(request.sharing), request.devices.front());
  }
  const std::unique_ptr<Backend> backend = entry.make(choice);
  Meter meter = probing_meter(*backend, inventory, request.timeout_s);
  Progress progress(console, survey_steps(inventory, meter));
  meter.progress = [&](const std::string& what) { progress.step(what); };
  return take_survey(inventory, meter);
}

Topology probed_machine(const Survey& survey) {
  return fit_machine(survey, fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))));
}

}  // namespace espalier
