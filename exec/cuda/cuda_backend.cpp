// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "core/units.h"
#include "exec/cuda/session.h"
#include "exec/host_memory.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

// Programs whose memory and graph are kept.
constexpr std::size_t kMostSessions = 4;

// A graph is built within seconds up to about so many; each op also has two events when it is
// watched.
constexpr std::size_t kMostOps = std::size_t{1} << 18;

// Share of what is free that buffers may take: the rest is for contexts, graphs and fragments.
constexpr double kMemoryShare = 0.95;

/// The GPU of each place: ranks and relays in turn, those of `devices` or all there are.
std::vector<int> devices_of_places(const std::vector<int>& devices, const Program& program) {
  const int wanted = program.ranks() + program.relays;
  if (!devices.empty() && devices.size() < static_cast<std::size_t>(wanted)) {
    throw Error(ErrorKind::usage,
                fmt::format("the program runs on {} GPUs ({} ranks, {} relays), but --devices "
                            "names {}",
                            wanted, program.ranks(), program.relays, devices.size()),
                "name a GPU for each; they may be the same: 0,0,0,0");
  }
  const int count = cuda::gpu_count();
  std::vector<int> all;
  int next = 0;
  for (PlaceId place = 0; place < program.places(); ++place) {
    if (place_number(program, place).kind == PlaceKind::host) {
      all.push_back(DeviceSet::kHost);
      continue;
    }
    all.push_back(devices.empty() ? next % count : devices[static_cast<std::size_t>(next)]);
    ++next;
  }
  return all;
}

bool by_copy_engines(const Target& target) {
  return target.router != nullptr && target.router->profile().reduction == ReductionMode::separate;
}

double bytes_per_unit(const Program& program, const cuda::SessionKey& key) {
  const auto size = static_cast<std::int64_t>(size_of(key.type));
  const ElementLayout layout(program.contract, key.size_bytes / size);
  return static_cast<double>(layout.message_elements()) * static_cast<double>(size) /
         static_cast<double>(program.contract.units);
}

struct Shortage {
  std::string owner;  // "GPU 0"
  double needed = 0;
  double available = 0;
};

/// Where the buffers do not fit, if anywhere.
std::optional<Shortage> find_shortage(const Program& program, const cuda::SessionKey& key) {
  const std::vector<double> places = place_memory_bytes(program, bytes_per_unit(program, key));
  std::map<int, double> needed;  // by GPU
  double pinned = 0;
  for (std::size_t place = 0; place < places.size(); ++place) {
    (key.gpus[place] == DeviceSet::kHost ? pinned : needed[key.gpus[place]]) += places[place];
  }
  for (const auto& [gpu, bytes] : needed) {
    std::size_t free = 0;
    std::size_t total = 0;
    cuda::use_gpu(gpu);
    cuda::require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", gpu);
    const double available = static_cast<double>(free) * kMemoryShare;
    if (bytes > available) return Shortage{fmt::format("GPU {}", gpu), bytes, available};
  }
  const double available = host_memory_limit() * kMemoryShare;
  if (pinned > available) return Shortage{"this computer", pinned, available};
  return std::nullopt;
}

[[noreturn]] void refuse(const Shortage& shortage, std::int64_t size_bytes) {
  const double fitting = static_cast<double>(size_bytes) * shortage.available / shortage.needed;
  const std::int64_t size = fitting < 1 ? 0 : std::int64_t{1} << std::ilogb(fitting);
  throw Error(
      ErrorKind::usage,
      fmt::format("a message of {} takes {:.1f} GiB of buffers on {}, which can give {:.1f}",
                  format_bytes(size_bytes), std::ldexp(shortage.needed, -30), shortage.owner,
                  std::ldexp(shortage.available, -30)),
      fmt::format("{} fits", format_bytes(size)));
}

}  // namespace

struct CudaBackend::Sessions {
  std::vector<std::unique_ptr<cuda::Session>> kept;  // the latest last
  std::set<std::pair<int, int>> peers;               // mapped now, as CUDA numbers them

  cuda::Session& get(const Program& program, const cuda::SessionKey& key) {
    const auto known = std::ranges::find_if(
        kept, [&](const auto& session) { return session->serves(program, key); });
    if (known != kept.end()) {
      std::rotate(known, known + 1, kept.end());
      return *kept.back();
    }
    if (kept.size() == kMostSessions) kept.erase(kept.begin());
    auto shortage = find_shortage(program, key);
    while (shortage && !kept.empty()) {
      kept.erase(kept.begin());
      shortage = find_shortage(program, key);
    }
    if (shortage) refuse(*shortage, key.size_bytes);
    kept.push_back(std::make_unique<cuda::Session>(program, key));
    return *kept.back();
  }

  /// Maps what the session needs, and nothing else.
  void map_peers(const cuda::Session& session) {
    std::set<std::pair<int, int>> wanted;
    const auto number = [&](int device) {
      return session.gpus().all[static_cast<std::size_t>(device)].number;
    };
    for (const auto& [device, other] : session.plan().peers) {
      wanted.emplace(number(device), number(other));
    }
    for (auto pair = peers.begin(); pair != peers.end();) {
      if (wanted.count(*pair) > 0) {
        ++pair;
        continue;
      }
      cuda::use_gpu(pair->first);
      cuda::require(cudaDeviceDisablePeerAccess(pair->second), "cudaDeviceDisablePeerAccess",
                    pair->first, fmt::format("for the memory of GPU {}", pair->second));
      pair = peers.erase(pair);
    }
    for (const auto& pair : wanted) {
      if (peers.count(pair) > 0) continue;
      cuda::use_gpu(pair.first);
      const cudaError_t status = cudaDeviceEnablePeerAccess(pair.second, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();  // by an earlier back end of this process
      } else {
        cuda::require(status, "cudaDeviceEnablePeerAccess", pair.first,
                      fmt::format("for the memory of GPU {}", pair.second));
      }
      peers.insert(pair);
    }
  }
};

std::optional<std::string> cuda_unavailable() { return cuda::cuda_problem(); }

CudaBackend::CudaBackend(std::vector<int> devices)
    : devices_(std::move(devices)), sessions_(std::make_unique<Sessions>()) {
  if (const auto problem = cuda_unavailable()) throw Error(ErrorKind::unsupported, *problem);
  const int count = cuda::gpu_count();
  DiagnosticList unknown;
  for (const int device : std::set<int>(devices_.begin(), devices_.end())) {
    if (device >= 0 && device < count) continue;
    unknown.add({}, fmt::format("there is no GPU {} on this computer", device),
                count == 1 ? "it has one, GPU 0" : fmt::format("it has GPUs 0 to {}", count - 1));
  }
  unknown.throw_if_any(ErrorKind::usage);
}
CudaBackend::~CudaBackend() = default;

std::optional<std::string> CudaBackend::unsupported(const Program& program, const Target&) const {
  if (program.ops.size() <= kMostOps) return std::nullopt;
  return fmt::format("it has {} ops, and graphs of more than {} are not built; larger chunks help",
                     program.ops.size(), kMostOps);
}

RunReport CudaBackend::run(const Program& program, const Target& target,
                           const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  require_sane(options);
  if (cuda::devices_abandoned()) {
    throw Error(ErrorKind::runtime, "the GPUs still hold a run that did not end");
  }
  const cuda::SessionKey key{options.size_bytes, options.type, options.op, by_copy_engines(target),
                             devices_of_places(devices_, program)};
  cuda::Session& session = sessions_->get(program, key);
  sessions_->map_peers(session);
  RunReport report = session.run(options);
  const auto size = static_cast<std::int64_t>(size_of(options.type));
  report.message_bytes =
      ElementLayout(program.contract, options.size_bytes / size).message_elements() * size;
  report.transfers = count_transfers(program);
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace espalier
