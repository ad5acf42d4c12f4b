// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_ring.h"

#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/child.h"

namespace espalier::bench {
namespace {

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;
using SimGridLink = simgrid::kernel::resource::StandardLinkImpl;

/// Answers with the link of the transfer being started.
class OneLinkZone : public routing::NetZoneImpl {
 public:
  explicit OneLinkZone(double latency_s) : NetZoneImpl("ring"), latency_s_(latency_s) {}
  void get_local_route(const routing::NetPoint*, const routing::NetPoint*, routing::Route* into,
                       double* latency) override {
    into->link_list_.push_back(link);
    *latency += latency_s_;
  }
  SimGridLink* link = nullptr;

 private:
  double latency_s_;
};

struct Ring {
  int ranks = 0;
  int pieces = 1;
  int items = 0;  ///< pieces of all steps, in order, that every rank sends
  std::uint64_t payload = 0;
  OneLinkZone* zone = nullptr;
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  std::vector<SimGridLink*> links;  ///< from each rank to the next
  std::vector<int> sent;            ///< items begun by each rank
  std::vector<int> received;
  std::vector<bool> is_sending;
  long long transfers = 0;
  s4u::CommPtr last_done;

  /// An item needs the same piece of the step before from the rank before, and the rank's own last.
  void advance(int rank) {
    if (is_sending[rank] || sent[rank] == items) return;
    if (sent[rank] - pieces + 1 > received[rank]) return;
    is_sending[rank] = true;
    ++sent[rank];
    zone->link = links[rank];
    const s4u::CommPtr transfer = s4u::Comm::sendto_init(from, to);
    transfer->set_payload_size(payload);
    transfer->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(rank)));
    transfer->add_ref();
    transfer->start();
  }

  void on_done(const s4u::Activity& activity) {
    auto* transfer = const_cast<s4u::Comm*>(static_cast<const s4u::Comm*>(&activity));
    last_done = s4u::CommPtr(transfer, false);
    const auto rank =
        static_cast<int>(reinterpret_cast<std::uintptr_t>(transfer->get_data<void>()));
    const int next = (rank + 1) % ranks;
    ++transfers;
    is_sending[rank] = false;
    ++received[next];
    advance(next);
    advance(rank);
  }
};

s4u::Engine* make_engine() {
  static std::array<std::string, 6> arguments = {"bare",
                                                 "--log=root.thres:critical",
                                                 "--cfg=network/model:CM02",
                                                 "--cfg=network/crosstraffic:0",
                                                 "--cfg=network/TCP-gamma:1e18",
                                                 "--cfg=surf/precision:1e-12"};
  static std::array<char*, arguments.size() + 1> pointers{};
  std::transform(arguments.begin(), arguments.end(), pointers.begin(),
                 [](std::string& argument) { return argument.data(); });
  int count = static_cast<int>(arguments.size());
  return new s4u::Engine(&count, pointers.data());  // SimGrid destroys it at exit
}

}  // namespace

BareRing run_bare_ring(int ranks, int pieces, double bytes, double bytes_per_s, double latency_s,
                       int repetitions) {
  s4u::Engine* engine = make_engine();
  static Ring ring;  // SimGrid keeps the callback below until the process ends
  ring.ranks = ranks;
  ring.pieces = pieces;
  ring.items = 2 * (ranks - 1) * pieces;
  ring.payload = static_cast<std::uint64_t>(std::llround(bytes / ranks / pieces));
  ring.zone = new OneLinkZone(latency_s);
  ring.from = ring.zone->get_iface()->create_host("from", 1e9)->seal();
  ring.to = ring.zone->get_iface()->create_host("to", 1e9)->seal();
  for (int rank = 0; rank < ranks; ++rank) {
    s4u::Link* link = ring.zone->get_iface()->create_link(std::to_string(rank), bytes_per_s);
    ring.links.push_back(link->seal()->get_impl());
  }
  ring.zone->get_iface()->seal();
  s4u::Activity::on_completion_cb([](const s4u::Activity& activity) { ring.on_done(activity); });

  BareRing result;
  std::vector<double> cpu_times_s;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const double start_cpu_s = cpu_s();
    const double start_s = s4u::Engine::get_clock();
    ring.sent.assign(ranks, 0);
    ring.received.assign(ranks, 0);
    ring.is_sending.assign(ranks, false);
    ring.transfers = 0;
    for (int rank = 0; rank < ranks; ++rank) ring.advance(rank);
    engine->run();
    cpu_times_s.push_back(cpu_s() - start_cpu_s);
    result.time_s = s4u::Engine::get_clock() - start_s;
    result.transfers = ring.transfers;
  }
  ring.last_done.reset();
  result.cpu_s = median(std::move(cpu_times_s), std::identity{});
  return result;
}

}  // namespace espalier::bench
