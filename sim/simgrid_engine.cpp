// SPDX-License-Identifier: Apache-2.0
#include "sim/simgrid_engine.h"

#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include "core/check.h"

namespace espalier {
namespace {

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;
using SimGridLink = simgrid::kernel::resource::StandardLinkImpl;

/// Epoch e: SimGrid's clock is in [2^e, 2^(e + 1)). Before the first, its date precision (1e-12)
/// would be coarser than the clock's steps; after the last, scaled rates would leave the doubles.
constexpr int kFirstEpoch = 20;
constexpr int kLastEpoch = 900;
/// A simulation begins on a multiple of 2^-40 epochs, an even number of steps, so that ties between
/// two dates are rounded the same way.
constexpr int kStartGrid = -40;
/// An epoch lasts at most 2^kLongestEpoch times what a simulation is expected to take, 2^kLongEpoch
/// times when many flows follow one another, and no less than 2^kShortestEpoch ticks, or scaled
/// rates would leave the doubles.
constexpr int kLongestEpoch = 12;
constexpr int kLongEpoch = 6;
constexpr int kShortestEpoch = -60;
/// For flows as small as 2^-24 of a byte, the smallest unit of a message of one byte.
constexpr int kMaxByteScale = 62 + 24;
/// A run that takes this many times as long as expected, or a part as short, is repeated with a
/// better expectation: it would use up the epochs, or its dates would be rounded too much.
constexpr double kMaxOff = 32;
constexpr std::uint32_t kNoPrivateLink = ~std::uint32_t{0};
constexpr double kUnlimitedRate = 1e300;

/// SimGrid asks a zone for the route between two hosts whenever a flow starts; this one answers
/// with the links of the flow being started, whichever hosts they are. So there is no route table.
class FlowZone : public routing::NetZoneImpl {
 public:
  explicit FlowZone(const std::string& name) : NetZoneImpl(name) {}
  void get_local_route(const routing::NetPoint*, const routing::NetPoint*, routing::Route* into,
                       double* latency) override {
    into->link_list_.assign(links.begin(), links.end());
    // SimGrid shares bandwidth in inverse proportion to a route's latency. All routes say 1 here,
    // and the latency factor turns that into the flow's own latency, so that shares are equal.
    *latency += 1;
  }
  std::vector<SimGridLink*> links;
};

/// SimGrid replaces the handlers of Ctrl-C and of crashes; this puts back those that were there.
class SignalHandlers {
 public:
  SignalHandlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &saved_[i]);
  }
  ~SignalHandlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &saved_[i], nullptr);
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
  std::array<struct sigaction, kSignals.size()> saved_{};
};

/// SimGrid's engine keeps a reference to the arguments, hence static.
s4u::Engine* make_engine() {
  static std::array<std::string, 7> arguments = {
      "espalier",
      "--log=root.thres:critical",
      "--cfg=network/model:CM02",
      "--cfg=network/crosstraffic:0",
      "--cfg=network/TCP-gamma:1e300",  // no TCP window: links as fast as they say
      "--cfg=surf/precision:1e-12",
      "--cfg=maxmin/precision:1e-9"};
  static std::array<char*, arguments.size() + 1> pointers{};
  std::transform(arguments.begin(), arguments.end(), pointers.begin(),
                 [](std::string& argument) { return argument.data(); });
  int count = static_cast<int>(arguments.size());
  const SignalHandlers handlers;
  return new s4u::Engine(&count, pointers.data());
}

}  // namespace

struct SimGridEngine::Impl {
  Impl();
  s4u::Link* make_link(const std::string& name, double rate) const;
  std::uint32_t take_private_link();
  void set_clock(double units) const;
  void on_completion(const s4u::Activity& activity);

  // SimGrid owns the zones, hosts and links from the moment they are made until the process ends.
  s4u::Engine* engine = nullptr;
  FlowZone* routes = nullptr;
  FlowZone* pool = nullptr;  ///< never sealed, so links can be added between simulations
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;
  std::vector<s4u::Link*> links;
  std::vector<SimGridLink*> link_impls;  ///< of `links`; asking for them takes time
  /// For flows in flight that need one (see start), and the numbers of those to be had.
  std::vector<SimGridLink*> private_links;
  std::vector<std::uint32_t> free_private_links;

  Expectation expected;
  std::size_t used = 0;  ///< links of the current simulation
  std::size_t in_flight = 0;
  int epoch = kFirstEpoch - 1;
  double units_per_tick = 1;  ///< of SimGrid's clock; a power of two, so that scaling is exact
  double begin_units = 0;     ///< SimGrid's clock when the simulation began
  double byte_scale = 1;      ///< SimGrid's bytes per byte
  double latency_units = 0;   ///< of the flow being started
  const std::function<void(FlowToken)>* on_done = nullptr;
  /// SimGrid still touches a flow after telling that it ended, until it tells the next.
  s4u::CommPtr last_done;
};

SimGridEngine::Impl::Impl() : engine(make_engine()) {
  routes = new FlowZone("flows");
  from = routes->get_iface()->create_host("from", 1e9)->seal();
  to = routes->get_iface()->create_host("to", 1e9)->seal();
  routes->get_iface()->seal();
  pool = new FlowZone("resources");
  pool->set_network_model(routes->get_network_model());
  routes->get_iface()->get_network_model()->set_lat_factor_cb(
      [this](double, const s4u::Host*, const s4u::Host*, const std::vector<s4u::Link*>&,
             const std::unordered_set<s4u::NetZone*>&) { return latency_units; });
  s4u::Activity::on_completion_cb(
      [this](const s4u::Activity& activity) { on_completion(activity); });
}

s4u::Link* SimGridEngine::Impl::make_link(const std::string& name, double rate) const {
  return pool->get_iface()->create_link(name, rate)->seal();
}

std::uint32_t SimGridEngine::Impl::take_private_link() {
  if (free_private_links.empty()) {
    const std::string name = "private" + std::to_string(private_links.size());
    free_private_links.push_back(static_cast<std::uint32_t>(private_links.size()));
    private_links.push_back(make_link(name, kUnlimitedRate)->get_impl());
  }
  const std::uint32_t taken = free_private_links.back();
  free_private_links.pop_back();
  return taken;
}

void SimGridEngine::Impl::set_clock(double units) const {
  if (s4u::Engine::get_clock() < units) engine->run_until(units);
}

void SimGridEngine::Impl::on_completion(const s4u::Activity& activity) {
  --in_flight;
  // Takes over the reference that `start` left with the flow.
  auto* flow = const_cast<s4u::Comm*>(static_cast<const s4u::Comm*>(&activity));
  last_done = s4u::CommPtr(flow, /*add_ref=*/false);
  const std::uintptr_t data = reinterpret_cast<std::uintptr_t>(flow->get_data<void>());
  const auto private_link = static_cast<std::uint32_t>(data >> 32);
  if (private_link != kNoPrivateLink) free_private_links.push_back(private_link);
  if (on_done != nullptr) (*on_done)(static_cast<FlowToken>(data));
}

SimGridEngine::SimGridEngine() : impl_(std::make_unique<Impl>()) {}
SimGridEngine::~SimGridEngine() = default;

SimGridEngine& SimGridEngine::instance() {
  // Never destroyed: SimGrid tears itself down at exit, in an order of its own.
  static auto* engine = new SimGridEngine;
  return *engine;
}

void SimGridEngine::begin(const Expectation& expected) {
  Impl& impl = *impl_;
  impl.on_done = nullptr;
  impl.expected = expected;
  if (impl.in_flight > 0) impl.engine->run();  // left by a simulation whose callback threw

  const double grid = std::ldexp(1.0, impl.epoch + kStartGrid);
  double clock = std::ceil(s4u::Engine::get_clock() / grid) * grid;
  if (clock >= std::ldexp(1.0, impl.epoch + 1) || impl.epoch < kFirstEpoch) {
    const int epoch = clock > 0 ? std::ilogb(clock) + 1 : kFirstEpoch;
    impl.epoch = std::clamp(epoch, kFirstEpoch, kLastEpoch);
    clock = std::max(clock, std::ldexp(1.0, impl.epoch));
  }
  impl.set_clock(clock);
  impl.begin_units = s4u::Engine::get_clock();
  int tick_scale = impl.epoch;
  if (expected.time.value > 0) {
    const double finite = std::min(expected.time.value, std::numeric_limits<double>::max());
    const int longer = kLongestEpoch - std::ilogb(std::max(1.0, expected.flows_in_turn));
    tick_scale -= std::max(kShortestEpoch, std::ilogb(finite) + std::max(longer, kLongEpoch));
  }
  impl.units_per_tick = std::ldexp(1.0, tick_scale);
  impl.used = 0;
  const int exponent = expected.largest_bytes > 0 ? std::ilogb(expected.largest_bytes) + 1 : 0;
  impl.byte_scale = std::ldexp(1.0, std::min(62 - exponent, kMaxByteScale));
}

ResourceId SimGridEngine::add_resource(double bytes_per_tick) {
  CHECK(bytes_per_tick > 0);
  Impl& impl = *impl_;
  const double scaled = bytes_per_tick * impl.byte_scale / impl.units_per_tick;
  if (impl.used == impl.links.size()) {
    impl.links.push_back(impl.make_link(std::to_string(impl.links.size()), scaled));
    impl.link_impls.push_back(impl.links.back()->get_impl());
  } else {
    impl.links[impl.used]->set_bandwidth(scaled);
  }
  return static_cast<ResourceId>(impl.used++);
}

void SimGridEngine::start(std::span<const ResourceId> resources, ResourceId alone, Ticks latency,
                          double bytes, FlowToken token, FlowKind&) {
  Impl& impl = *impl_;
  std::vector<SimGridLink*>& links = impl.routes->links;
  links.clear();
  std::uint64_t payload = 0;
  std::uint32_t private_link = kNoPrivateLink;
  const bool has_alone = alone != kNoResource;
  if (bytes > 0 && (has_alone || !resources.empty())) {
    // When a flow's latency is over, SimGrid 3.32 looks for the links whose shares change beginning
    // at the flow's first link, and looks no further if that link is already known to change: the
    // flow's other links are then shared without it, beyond their capacity. A first link that no
    // other flow has is never known already. A flow of one link has no others.
    if (latency.value > 0 && resources.size() + (has_alone ? 1 : 0) > 1) {
      private_link = impl.take_private_link();
      links.push_back(impl.private_links[private_link]);
    }
    const auto add = [&](ResourceId resource) {
      CHECK(resource < impl.used);
      links.push_back(impl.link_impls[resource]);
    };
    std::ranges::for_each(resources, add);
    if (has_alone) add(alone);
    payload = static_cast<std::uint64_t>(std::max(1.0, std::nearbyint(bytes * impl.byte_scale)));
  }
  CHECK(latency.value > 0 || payload > 0);
  impl.latency_units = latency.value * impl.units_per_tick;
  const s4u::CommPtr flow = s4u::Comm::sendto_init(impl.from, impl.to);
  flow->set_payload_size(payload);
  const std::uintptr_t data = std::uintptr_t{private_link} << 32 | token;
  flow->set_data(reinterpret_cast<void*>(data));  // NOLINT: it is a pair of numbers
  flow->add_ref();
  ++impl.in_flight;
  flow->start();
}

Ticks SimGridEngine::now() const {
  return {(s4u::Engine::get_clock() - impl_->begin_units) / impl_->units_per_tick};
}

std::optional<Expectation> SimGridEngine::run(const std::function<void(FlowToken)>& on_done,
                                              const std::function<void()>& on_instant_over) {
  Impl& impl = *impl_;
  const std::function<void(FlowToken)> on_each = [&](FlowToken token) {
    on_done(token);
    on_instant_over();
  };
  impl.on_done = &on_each;
  impl.engine->run();
  impl.on_done = nullptr;
  impl.last_done.reset();

  Expectation better = impl.expected;
  const double took = now().value;
  const double expected = better.time.value;
  const bool too_long = took > kMaxOff * expected;
  const bool too_short = took > 0 && took * kMaxOff < expected;
  if (too_long || too_short) {
    // What takes long waits for other flows in turn.
    if (too_long && expected > 0) better.flows_in_turn *= took / expected;
    better.time = {took};
    return better;
  }
  const double epoch_begin = std::ldexp(1.0, impl.epoch);
  const bool outlasted = s4u::Engine::get_clock() > 2 * epoch_begin;
  if (!outlasted || impl.begin_units == epoch_begin || impl.epoch == kLastEpoch) return {};
  return better;
}

std::size_t SimGridEngine::pooled_resources() const { return impl_->links.size(); }

}  // namespace espalier

espalier::FlowEngine* espalier_simgrid_engine() { return &espalier::SimGridEngine::instance(); }
