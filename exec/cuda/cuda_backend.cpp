// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>

#include "exec/cuda/machine_check.h"
#include "exec/cuda/numbering.h"
#include "exec/cuda/peers.h"
#include "exec/cuda/session.h"
#include "exec/room.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

// Programs whose memory and graph are kept.
constexpr std::size_t kMaxSessions = 4;

// A graph is built within seconds up to about so many; each op also has two events when it is
// watched.
constexpr std::size_t kMaxOps = std::size_t{1} << 18;

/// The GPU of each rank and then of each relay that --devices names, in turn all there are.
std::vector<int> devices_in_turn(const std::vector<int>& devices, const Program& program) {
  const int wanted = program.ranks() + program.relays;
  if (!devices.empty() && devices.size() < static_cast<std::size_t>(wanted)) {
    throw Error(ErrorKind::usage,
                fmt::format("the program runs on {} GPUs ({} ranks, {} relays), but --devices "
                            "names {}",
                            wanted, program.ranks(), program.relays, devices.size()),
                "name a GPU for each rank and relay; they can be the same: 0,0,0,0");
  }
  const int count = cuda::gpu_count();
  std::vector<int> all;
  for (int next = 0; next < wanted; ++next) {
    all.push_back(devices.empty() ? next % count : devices[static_cast<std::size_t>(next)]);
  }
  return all;
}

/// Of each rank and then of each relay. \pre the target has a router
std::vector<NodeId> nodes_of(const Target& target, const Program& program) {
  const std::vector<NodeId>& ranks = target.placement.ranks;
  const std::vector<NodeId>& relays = target.placement.relays;
  std::vector<NodeId> nodes(ranks.begin(), ranks.begin() + program.ranks());
  nodes.insert(nodes.end(), relays.begin(), relays.begin() + program.relays);
  return nodes;
}

/// The GPU of each rank and then of each relay: the one with the number that its node has in its
/// host.
std::vector<int> devices_as_placed(const Topology& topology, const std::vector<NodeId>& nodes) {
  const int count = cuda::gpu_count();
  std::vector<int> all;
  DiagnosticList problems;
  const std::string hint = "name the GPU of each rank and relay with --devices";
  for (const NodeId id : nodes) {
    const Node& node = topology.node(id);
    const int number = number_in_host(topology, id);
    if (node.host != topology.node(nodes[0]).host) {
      problems.add({}, fmt::format("{} of '{}' is on another host", node.name, topology.name),
                   hint);
    } else if (number >= count) {
      problems.add({},
                   fmt::format("{} of '{}' is not on this computer, which has {} GPU{}", node.name,
                               topology.name, count, count == 1 ? "" : "s"),
                   hint);
    }
    all.push_back(number);
  }
  problems.throw_if_any(ErrorKind::usage);
  return all;
}

/// By place; DeviceSet::kHost for host memories.
std::vector<int> with_hosts(const std::vector<int>& devices, const Program& program) {
  std::vector<int> all;
  std::size_t next = 0;
  for (PlaceId place = 0; place < program.places(); ++place) {
    const bool is_host = place_number(program, place).kind == PlaceKind::host;
    all.push_back(is_host ? DeviceSet::kHost : devices[next++]);
  }
  return all;
}

CopyEngineUse copy_engine_use(const Target& target) {
  if (target.router == nullptr) return CopyEngineUse::none;
  switch (target.router->profile().reduction) {
    case ReductionMode::separate:
      return CopyEngineUse::operands;
    case ReductionMode::reading:
      return CopyEngineUse::copies;
    case ReductionMode::free:
    case ReductionMode::fused:
      break;
  }
  return CopyEngineUse::none;
}

cuda::SessionKey key_of(const Program& program, const RunOptions& options, const Target& target,
                        std::vector<int> gpus) {
  return {.size_bytes = options.size_bytes,
          .type = options.type,
          .op = options.op,
          .copy_engines = copy_engine_use(target),
          .gpus = std::move(gpus),
          .host_nodes = cuda::host_nodes(program, target, numa_nodes(allowed_processors()))};
}

}  // namespace

struct CudaBackend::Sessions {
  std::vector<std::unique_ptr<cuda::Session>> kept;  // the latest last

  /// Gives up old programs for a new one. Throws OutOfMemory when it would not fit even so.
  void make_room(const Program& program, const cuda::SessionKey& key,
                 const cuda::Prepared* prepared) {
    for (;;) {
      const auto shortage = find_shortage(memory_needs(program, key, prepared), key.size_bytes);
      if (!shortage) return;
      if (kept.empty()) throw *shortage;
      kept.erase(kept.begin());
    }
  }

  /// Counts buffers first: those of absurd sizes are not lowered.
  std::shared_ptr<const cuda::Prepared> prepare(const Program& program,
                                                const cuda::SessionKey& key) {
    make_room(program, key, nullptr);
    auto prepared = std::make_shared<const cuda::Prepared>(program, key);
    make_room(program, key, prepared.get());
    return prepared;
  }

  cuda::Session* find(const Program& program, const cuda::SessionKey& key) {
    const auto known = std::ranges::find_if(
        kept, [&](const auto& session) { return session->serves(program, key); });
    if (known == kept.end()) return nullptr;
    std::rotate(known, known + 1, kept.end());
    return kept.back().get();
  }

  cuda::Session& make(const Program& program, const cuda::SessionKey& key) {
    const std::shared_ptr<const cuda::Prepared> prepared = prepare(program, key);
    if (kept.size() == kMaxSessions) kept.erase(kept.begin());
    for (;;) {
      try {
        kept.push_back(std::make_unique<cuda::Session>(prepared));
        return *kept.back();
      } catch (const OutOfMemory&) {
        // What is free may be in pieces.
        if (kept.empty()) throw;
        kept.erase(kept.begin());
      }
    }
  }

  /// Of this program, with the memory of peers mapped as it needs it.
  cuda::Session& get(const Program& program, const cuda::SessionKey& key) {
    for (;;) {
      cuda::Session* known = find(program, key);
      cuda::Session& session = known != nullptr ? *known : make(program, key);
      const auto number = [&](int device) {
        return session.gpus().all[static_cast<std::size_t>(device)].number;
      };
      std::set<cuda::PeerPair> wanted;
      for (const auto& [device, other] : session.plan().peers) {
        wanted.emplace(number(device), number(other));
      }
      if (cuda::map_peers(wanted)) return session;
      kept.pop_back();  // to be planned again without what can't be mapped
    }
  }

  /// What `work` makes of the program's session.
  template <class Work>
  RunReport run(const Program& program, const cuda::SessionKey& key, const Work& work) {
    for (;;) {
      cuda::Session& session = get(program, key);
      try {
        return work(session);
      } catch (const OutOfMemory&) {
        // Graphs take memory that nobody can count before.
        kept.pop_back();
        if (kept.empty()) throw;
        kept.clear();
      } catch (...) {
        kept.pop_back();  // its streams may hold half a program
        throw;
      }
    }
  }
};

std::optional<std::string> cuda_unavailable() { return cuda::cuda_problem(); }

bool cuda_abandoned() { return cuda::devices_abandoned(); }

void end_process(int exit_code) {
  if (!cuda_abandoned()) std::exit(exit_code);
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

CudaBackend::CudaBackend(std::vector<int> devices, UnnamedDevices unnamed)
    : devices_(std::move(devices)),
      unnamed_(unnamed),
      machine_check_(std::make_unique<cuda::MachineCheck>()),
      sessions_(std::make_unique<Sessions>()) {
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
  if (std::ranges::any_of(program.ops, &Op::in_switch)) {
    return "the program has ops in switches, which this back end does not carry out";
  }
  if (program.ops.size() <= kMaxOps) return std::nullopt;
  return fmt::format("the program has {} ops, but graphs may have at most {}; use larger chunks",
                     program.ops.size(), kMaxOps);
}

CudaBackend::PlacedGpus CudaBackend::gpus_of_places(const Program& program, const Target& target) {
  const bool names_machine = unnamed_ == UnnamedDevices::as_placed && target.router != nullptr;
  const bool as_placed = names_machine && devices_.empty();
  PlacedGpus placed;
  if (!names_machine) {
    placed.by_place = with_hosts(devices_in_turn(devices_, program), program);
    return placed;
  }
  const Topology& topology = target.router->topology();
  const std::vector<NodeId> nodes = nodes_of(target, program);
  const std::vector<int> devices =
      as_placed ? devices_as_placed(topology, nodes) : devices_in_turn(devices_, program);
  placed.notes = machine_check_->check({topology, nodes, devices, !as_placed, program.relays});
  placed.by_place = with_hosts(devices, program);
  return placed;
}

void CudaBackend::require_room(const Program& program, const Target& target,
                               const RunOptions& options) {
  require_sane(options);
  const cuda::SessionKey key =
      key_of(program, options, target, gpus_of_places(program, target).by_place);
  if (sessions_->find(program, key) == nullptr) sessions_->prepare(program, key);
}

/// What `work` reports of the program's session, and what is the same whatever it does.
template <class Work>
RunReport CudaBackend::run_session(const Program& program, const Target& target,
                                   const RunOptions& options, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  require_sane(options);
  if (cuda::devices_abandoned()) {
    throw Error(ErrorKind::runtime, "an earlier run on the GPUs has not ended");
  }
  const cuda::SessionKey key =
      key_of(program, options, target, gpus_of_places(program, target).by_place);
  RunReport report = with_memory_to("run " + program.name + " on GPUs",
                                    [&] { return sessions_->run(program, key, work); });
  const auto size = static_cast<std::int64_t>(size_of(options.type));
  report.message_bytes =
      ElementLayout(program.contract, options.size_bytes / size).message_elements() * size;
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

RunReport CudaBackend::run(const Program& program, const Target& target,
                           const RunOptions& options) {
  RunReport report = run_session(program, target, options,
                                 [&](cuda::Session& session) { return session.run(options); });
  std::ranges::copy(gpus_of_places(program, target).notes,
                    std::back_inserter(report.executed->notes));
  report.transfers = count_transfers(program);
  return report;
}

std::vector<int> CudaBackend::gpus_of_ranks(const Program& program, const Target& target) {
  std::vector<int> gpus = gpus_of_places(program, target).by_place;
  gpus.resize(static_cast<std::size_t>(program.ranks()));
  return gpus;
}

RunReport CudaBackend::run_nccl(cuda::NcclRanks& nccl, const Program& program, const Target& target,
                                const RunOptions& options) {
  return run_session(program, target, options,
                     [&](cuda::Session& session) { return session.run_nccl(nccl, options); });
}

}  // namespace espalier
