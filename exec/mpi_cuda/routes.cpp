// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "exec/cuda/calls.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/this_computer.h"

namespace espalier::cuda {
namespace {

std::vector<std::vector<std::byte>> gather(const Processes& processes, const Packed& packed) {
  const Meeting meeting(processes.board);
  return gather_from_all(processes.transport, packed.bytes());
}

/// What every process offers, and whether all of them have a transport that reads GPUs.
struct Offers {
  std::vector<MemoryOffer> by_process;
  bool all_take_gpus = true;
};

Offers gather_offers(const Processes& processes, const MemoryOffer& mine) {
  Packed packed;
  packed.put(processes.transport.takes_gpu_memory());
  packed.put(mine.handles);
  packed.put(mine.problem);
  Offers offers;
  for (const auto& bytes : gather(processes, packed)) {
    Unpacking unpacking(bytes);
    MemoryOffer& offer = offers.by_process.emplace_back();
    bool takes_gpus = false;
    unpacking.get(takes_gpus);
    unpacking.get(offer.handles);
    unpacking.get(offer.problem);
    offers.all_take_gpus = offers.all_take_gpus && takes_gpus;
  }
  return offers;
}

/// Of one process to every other, and why one that could be mapped is not.
struct Choice {
  std::vector<Route> to;
  std::string refused;
};

Choice choose(const Processes& processes, GpuTransport transport, bool may_map,
              const Offers& offers, SharedMemory& memory) {
  const auto mine = static_cast<std::size_t>(processes.transport.process());
  const bool prefers_direct = transport != GpuTransport::staged && offers.all_take_gpus;
  const Route otherwise = prefers_direct ? Route::direct : Route::staged;
  Choice choice{std::vector<Route>(offers.by_process.size(), otherwise), {}};
  if (transport != GpuTransport::automatic || !may_map) return choice;
  for (std::size_t other = 0; other < choice.to.size(); ++other) {
    if (other == mine || !processes.board.is_here(static_cast<int>(other))) continue;
    const auto problem = memory.map(static_cast<int>(other), offers.by_process[other]);
    if (!problem) {
      choice.to[other] = Route::mapped;
    } else if (choice.refused.empty()) {
      choice.refused =
          fmt::format("rank {} cannot map the memory of rank {}: {}", mine, other, *problem);
    }
  }
  return choice;
}

/// "messages from GPU to GPU: CUDA IPC (12), pinned memory (4)", by ordered pairs of processes.
std::string describe_routes(const std::vector<Choice>& choices) {
  std::map<Route, int> counts;
  for (std::size_t from = 0; from < choices.size(); ++from) {
    for (std::size_t to = 0; to < choices.size(); ++to) {
      if (to != from) ++counts[choices[from].to[to]];
    }
  }
  static constexpr std::array kNames{"CUDA IPC", "MPI on GPU memory", "pinned memory"};
  std::string text;
  for (const auto& [route, count] : counts) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", kNames[static_cast<std::size_t>(route)]);
    if (counts.size() > 1) text += fmt::format(" ({} pairs)", count);
  }
  return text.empty() ? "" : "messages from GPU to GPU: " + text;
}

/// With what NCCL takes for a computer in place of each.
std::vector<GpuPlace> as_nccl_sees(std::vector<GpuPlace> places) {
  for (GpuPlace& place : places) {
    if (!place.nccl_host.empty()) place.computer = place.nccl_host;
  }
  return places;
}

/// Throws in all processes Error{usage} where two of a computer have the same GPU: `problem`, with
/// the two and the GPU after it, and `help`.
void require_different_gpus(const Processes& processes, const std::vector<GpuPlace>& places,
                            const std::string& problem, const std::string& help) {
  std::map<std::pair<std::string, std::string>, std::size_t> first;  // by computer and bus id
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const GpuPlace& place = places[rank];
    const auto [known, is_new] = first.emplace(std::pair(place.computer, place.bus_id), rank);
    if (is_new) continue;
    throw_together(processes, {true, false, ErrorKind::usage,
                               fmt::format("{}: ranks {} and {} would share one ({})", problem,
                                           known->second, rank, place.text),
                               help});
  }
}

}  // namespace

GpuPlace place_of(const Processes& processes, const Gpu& gpu, std::string nccl_host) {
  const auto mine = static_cast<std::size_t>(processes.transport.process());
  return {fmt::format("{}, GPU {} ({})", processes.places[mine], gpu.number, gpu.name),
          id_of_computer(), bus_id_of(gpu.number), gpu.number, std::move(nccl_host)};
}

std::vector<GpuPlace> gather_places(const Processes& processes, const GpuPlace& mine) {
  Packed packed;
  packed.put(mine.text);
  packed.put(mine.computer);
  packed.put(mine.bus_id);
  packed.put(mine.number);
  packed.put(mine.nccl_host);
  std::vector<GpuPlace> places;
  for (const auto& bytes : gather(processes, packed)) {
    Unpacking unpacking(bytes);
    GpuPlace& place = places.emplace_back();
    unpacking.get(place.text);
    unpacking.get(place.computer);
    unpacking.get(place.bus_id);
    unpacking.get(place.number);
    unpacking.get(place.nccl_host);
  }
  return places;
}

void require_gpus_for(const Processes& processes, const GpuChoice& choice,
                      const std::vector<GpuPlace>& places) {
  if (choice.transport == GpuTransport::nccl) {
    require_different_gpus(processes, as_nccl_sees(places), "NCCL wants a GPU for each rank",
                           "another --transport takes ranks that share one");
  } else if (choice.devices.empty()) {
    require_different_gpus(
        processes, places, "there are too few GPUs",
        "name the GPU of each rank with --devices; they can be the same: 0,0,1,1");
  }
}

SettledRoutes settle_routes(const Processes& processes, GpuTransport transport, bool may_map,
                            SharedMemory& memory) {
  const bool maps = transport == GpuTransport::automatic && may_map;
  const Offers offers = gather_offers(processes, maps ? memory.offer() : MemoryOffer{});
  if (transport == GpuTransport::mpi && !offers.all_take_gpus) {
    throw_together(processes,
                   {true, false, ErrorKind::unsupported,
                    "this library of MPI does not take GPU memory (it is not CUDA-aware)",
                    "leave --transport out: messages then go through pinned memory"});
  }
  const Choice mine = choose(processes, transport, may_map, offers, memory);
  Packed packed;
  packed.put(mine.to);
  packed.put(mine.refused);
  std::vector<Choice> choices;
  for (const auto& bytes : gather(processes, packed)) {
    Unpacking unpacking(bytes);
    Choice& choice = choices.emplace_back();
    unpacking.get(choice.to);
    unpacking.get(choice.refused);
  }
  SettledRoutes settled{{mine.to, {}}, {}};
  const auto me = static_cast<std::size_t>(processes.transport.process());
  for (const Choice& choice : choices) settled.routes.from.push_back(choice.to[me]);
  const std::string text = describe_routes(choices);
  if (!text.empty()) settled.notes.push_back(text);
  const auto refused =
      std::ranges::find_if(choices, [](const Choice& choice) { return !choice.refused.empty(); });
  if (refused != choices.end()) settled.notes.push_back(refused->refused);
  return settled;
}

}  // namespace espalier::cuda
