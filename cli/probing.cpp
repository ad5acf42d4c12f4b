// SPDX-License-Identifier: Apache-2.0
#include "cli/probing.h"

#include <fmt/format.h>

#include <optional>

#include "core/words.h"
#include "probe/doubts.h"

namespace espalier {
namespace {

/// Notes a problem when they are given for threads.
std::vector<int> read_devices(Arguments& arguments, const BackendEntry& backend) {
  const std::vector<int> devices = arguments.gpus("--devices");
  if (arguments.given("--devices") && !backend.has_devices) {
    arguments.problem(backend.may_use_gpus ? "--devices needs --backend cuda, or --memory cuda"
                                           : "--devices needs --backend cuda");
  }
  return devices;
}

}  // namespace

const BackendEntry& read_backend(Arguments& arguments) {
  std::vector<std::pair<std::string, const BackendEntry*>> choices;
  for (const BackendEntry* entry : executing_backends()) choices.emplace_back(entry->name, entry);
  return *arguments.choice("--backend", choices);
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
  if (backend.processes == nullptr) return;
  backend.connect(question.run.timeout_s);
  if (!question.topology.empty()) return;
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
  request.choice = read_device_choice(arguments, *request.backend);
  request.sharing = request.backend->has_devices ? 0 : kHostRanks;
  std::vector<int>& devices = request.choice.devices;
  if (arguments.given("--virtual")) {
    request.sharing = static_cast<int>(arguments.integer("--virtual", 1, kMaxVirtualRanks));
    if (request.choice.gpu_memory) {
      arguments.problem_of("--virtual", "each process is a rank",
                           "name the same GPU for each with --devices: 0,0,0,0");
    } else if (devices.size() > 1) {
      arguments.problem_of("--virtual", "the ranks share one GPU, but --devices names several",
                           "name one");
    }
    if (request.backend->has_devices && devices.empty()) devices = {0};
  } else if (request.backend->has_devices) {
    if (const auto problem = share_devices(request)) {
      arguments.problem_of("--devices", *problem, kHowToShare);
    }
  }
  if (const auto problem = too_many_sharing(request.sharing)) {
    arguments.problem_of("--devices", *problem);
  }
  request.timeout_s = arguments.number("--timeout", 0.001, 1e9);
  return request;
}

Survey survey_machine(const ProbeRequest& request, const Console& console) {
  std::optional<Progress> progress;
  Survey survey = survey_machine(request, [&](std::size_t steps) {
    progress.emplace(console, steps);
    return [&](const std::string& what) { progress->step(what); };
  });
  progress.reset();
  for (const std::string& doubt : doubts_about(survey)) say(console, "note: " + doubt);
  return survey;
}

}  // namespace espalier
