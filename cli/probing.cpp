// SPDX-License-Identifier: Apache-2.0
#include "cli/probing.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "cli/text.h"
#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_inventory.h"
#include "exec/host/host_backend.h"
#include "probe/fit_machine.h"

namespace espalier {

namespace {

constexpr int kHostRanks = 4;
constexpr int kMaxVirtualRanks = 64;

/// What a rank's buffers take while it is measured, and ops. More than caches hold, and ops as
/// large as those of large messages; a GPU moves a hundred times as many bytes while an op starts.
/// Ranks that share a memory have less each, since all of them have buffers.
struct Scale {
  std::int64_t max_bytes = 0;
  std::int64_t min_bytes = 0;
  std::int64_t shared_bytes = 0;  ///< of all ranks together
  std::int64_t piece_bytes = 0;

  std::int64_t footprint_bytes(int sharing) const {
    return std::clamp(shared_bytes / std::max(1, sharing), min_bytes, max_bytes);
  }
};
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr Scale kHostScale{128 * kMiB, 32 * kMiB, 1024 * kMiB, 4 * kMiB};
constexpr Scale kGpuScale{2048 * kMiB, 256 * kMiB, 4096 * kMiB, 128 * kMiB};

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
constexpr const char* kHowToShare = "give each rank its own GPU, or all of them one: 0,0,0,0";

std::optional<std::string> too_many(int sharing) {
  if (sharing <= kMaxVirtualRanks) return std::nullopt;
  return fmt::format("{} ranks on one device: at most {} can be probed", sharing, kMaxVirtualRanks);
}

}  // namespace

Executor read_executor(Arguments& arguments) {
  return arguments.choice<Executor>("--backend",
                                    {{"host", Executor::host}, {"cuda", Executor::cuda}});
}

std::vector<int> read_devices(Arguments& arguments, Executor executor) {
  const std::vector<int> devices = arguments.gpus("--devices");
  if (arguments.given("--devices") && executor != Executor::cuda) {
    arguments.problem("--devices needs --backend cuda");
  }
  return devices;
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

std::unique_ptr<Backend> make_backend(Executor executor, const std::vector<int>& devices,
                                      bool names_topology) {
  if (executor == Executor::cuda) {
    return std::make_unique<CudaBackend>(
        devices, names_topology ? UnnamedDevices::as_placed : UnnamedDevices::in_turn);
  }
  return std::make_unique<HostBackend>();
}

ProbeRequest read_probe_request(Arguments& arguments) {
  ProbeRequest request;
  request.executor = read_executor(arguments);
  request.devices = read_devices(arguments, request.executor);
  request.sharing = request.executor == Executor::host ? kHostRanks : 0;
  if (arguments.given("--virtual")) {
    request.sharing = static_cast<int>(arguments.integer("--virtual", 1, kMaxVirtualRanks));
    if (request.devices.size() > 1) {
      arguments.problem_of("--virtual", "the ranks share one GPU, and --devices names several",
                           "name one");
    }
    if (request.executor == Executor::cuda && request.devices.empty()) request.devices = {0};
  } else if (const auto problem = settle_sharing(request)) {
    arguments.problem_of("--devices", *problem, kHowToShare);
  }
  if (const auto problem = too_many(request.sharing)) {
    arguments.problem_of("--devices", *problem);
  }
  request.timeout_s = arguments.number("--timeout", 0.001, 1e9);
  return request;
}

int ranks_to_probe(Executor executor, int unless_gpus) {
  const int gpus = executor == Executor::cuda ? cuda_gpus() : 1;
  return gpus > 1 ? gpus : unless_gpus;
}

ProbeRequest probe_request_for(Executor executor, const std::vector<int>& devices, int ranks,
                               double timeout_s) {
  ProbeRequest request{executor, devices, 0, timeout_s};
  if (executor == Executor::host) {
    request.sharing = ranks;
    if (const auto problem = too_many(ranks)) throw Error(ErrorKind::usage, *problem);
    return request;
  }
  const int known = devices.empty() ? cuda_gpus() : static_cast<int>(devices.size());
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

std::vector<std::string> doubts_about(const Topology& machine, Executor executor,
                                      const std::vector<int>& devices) {
  const std::vector<NodeId> gpus = machine.gpus();
  const auto node = [&](NodeId id) -> const Node& { return machine.node(id); };
  std::vector<std::string> doubts;
  if (std::ranges::none_of(machine.sources, [](const std::string& source) {
        return source.starts_with(kProbedSource);
      })) {
    doubts.push_back(fmt::format("'{}' was not measured by espalier probe", machine.name));
  }
  const auto model =
      std::ranges::find_if(gpus, [&](NodeId gpu) { return !node(gpu).model.empty(); });
  if (executor == Executor::host && model != gpus.end()) {
    doubts.push_back(fmt::format("'{}' is of {}, and measured are threads of this computer",
                                 machine.name, node(*model).model));
  }
  if (executor == Executor::host || gpus.size() < 2) return doubts;
  const bool predicted_shared = !node(gpus.front()).memory.empty();
  const bool measured_shared =
      std::set<int>(devices.begin(), devices.end()).size() < devices.size();
  if (predicted_shared && !measured_shared) {
    doubts.push_back(
        fmt::format("the ranks of '{}' share a GPU, and those measured do not: "
                    "--devices 0,0,... puts them on one",
                    machine.name));
  } else if (!predicted_shared && measured_shared) {
    doubts.push_back(
        fmt::format("ranks that are measured share a GPU, those of '{}' do not", machine.name));
  }
  return doubts;
}

std::int64_t probe_footprint_bytes(const Inventory& inventory) {
  const Scale& scale = inventory.is_host ? kHostScale : kGpuScale;
  std::int64_t bytes = scale.footprint_bytes(inventory.sharing);
  for (const ProbedDevice& device : inventory.devices) {
    if (device.free_bytes == 0) continue;
    bytes = std::min(bytes, device.free_bytes / 2 / std::max(1, inventory.sharing));
  }
  return std::max(bytes, kMiB);
}

Survey survey_machine(const ProbeRequest& request, const Console& console) {
  const bool cuda = request.executor == Executor::cuda;
  Inventory inventory = cuda ? cuda_inventory(request.devices) : host_inventory(request.sharing);
  if (cuda && request.sharing > 0) inventory.sharing = request.sharing;
  std::vector<int> devices = request.devices;
  if (cuda && request.sharing > 0) {
    devices.assign(static_cast<std::size_t>(request.sharing), request.devices.front());
  }
  const std::unique_ptr<Backend> backend = make_backend(request.executor, devices);
  MeterSettings settings;
  settings.footprint_bytes = probe_footprint_bytes(inventory);
  settings.piece_bytes = (cuda ? kGpuScale : kHostScale).piece_bytes;
  settings.timeout_s = request.timeout_s;
  Meter meter = backend_meter(*backend, settings);
  meter.copy_engines = cuda;
  Progress progress(console, survey_steps(inventory, meter));
  meter.progress = [&](const std::string& what) { progress.step(what); };
  return take_survey(inventory, meter);
}

Topology probed_machine(const Survey& survey) {
  return fit_machine(survey, fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))));
}

}  // namespace espalier
