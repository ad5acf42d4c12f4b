// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "run/report.h"
#include "sim/time_unit.h"

namespace espalier {

/// Something flows share: a direction of a link, a memory, a reduction unit. Valid for one
/// simulation.
using ResourceId = std::uint32_t;
inline constexpr ResourceId kNoResource = ~ResourceId{0};
/// Those of an op: mostly few.
using ResourceList = boost::container::small_vector<ResourceId, 8>;
inline std::span<const ResourceId> span_of(const ResourceList& list) {
  return {list.data(), list.size()};
}
/// Whose flow it is; the engine hands it back.
using FlowToken = std::uint32_t;

/// What an engine knows flows over the same resources by. Valid for one simulation.
using FlowKind = std::uint32_t;
inline constexpr FlowKind kUnknownKind = ~FlowKind{0};

/// A rough description of a simulation, from which an engine may choose its precision.
struct Expectation {
  double largest_bytes = 0;  ///< no flow is larger
  Ticks time;                ///< about how long it takes; 0: not known
  double flows_in_turn = 1;  ///< about how many flows follow one another
};

/// Owns contention: flows in flight share resources by max-min fairness, one rate per flow. A flow
/// first waits for its latency, using nothing, then moves its bytes. The seam between the
/// dispatcher and who solves this; private to this room. Not thread-safe. One simulation:
///
///     std::optional<Expectation> again = expectation;
///     while (again) {
///       engine.begin(*again);
///       ... add_resource, start ...
///       again = engine.run([&](FlowToken token) { ... start more ... });
///     }
class FlowEngine {
 public:
  virtual ~FlowEngine() = default;
  FlowEngine() = default;
  FlowEngine(const FlowEngine&) = delete;
  FlowEngine& operator=(const FlowEngine&) = delete;

  /// As reports name it.
  virtual std::string_view name() const = 0;

  /// Starts a simulation at date 0 without resources.
  virtual void begin(const Expectation& expected) = 0;

  /// \pre bytes_per_tick > 0.
  virtual ResourceId add_resource(double bytes_per_tick) = 0;

  /// Starts a flow now. A resource listed k times carries the bytes k times. `alone`: another one,
  /// which no other flow uses while this one moves, such as the block that carries it out; or
  /// kNoResource. `kind`: what the latest flow of this simulation over the same resources left
  /// there, or kUnknownKind. \pre latency > 0, or bytes > 0 and there is a resource: it must take
  /// time.
  virtual void start(std::span<const ResourceId> resources, ResourceId alone, Ticks latency,
                     double bytes, FlowToken token, FlowKind& kind) = 0;
  void start(std::span<const ResourceId> resources, ResourceId alone, Ticks latency, double bytes,
             FlowToken token) {
    FlowKind unknown = kUnknownKind;
    start(resources, alone, latency, bytes, token, unknown);
  }
  void start(std::span<const ResourceId> resources, Ticks latency, double bytes, FlowToken token) {
    start(resources, kNoResource, latency, bytes, token);
  }

  /// Since `begin`.
  virtual Ticks now() const = 0;

  /// Runs until no flow is left. `on_done` is called when a flow ends, in order of time, and may
  /// start others; `on_instant_over` after those that end at the same time, and may, too. (SimGrid
  /// calls it after each.) An answer means that this simulation was not exact: the same one must be
  /// begun and run again with that expectation.
  virtual std::optional<Expectation> run(const std::function<void(FlowToken)>& on_done,
                                         const std::function<void()>& on_instant_over) = 0;
  std::optional<Expectation> run(const std::function<void(FlowToken)>& on_done) {
    return run(on_done, [] {});
  }

  /// What is simulated is known to be too slow (SimEnd::too_slow): it need not go on. An engine
  /// that knows no limits does.
  virtual void give_up() {}

  /// How the latest simulation ended: given up (see SimLimits), flows are left.
  virtual SimEnd end() const { return SimEnd::finished; }
};

}  // namespace espalier
