// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace espalier {

/// Something flows share: a direction of a link, a memory, a reduction unit. Valid for one
/// simulation.
using ResourceId = std::uint32_t;
/// Whose flow it is; the engine hands it back.
using FlowToken = std::uint32_t;

/// Owns contention: flows in flight share resources by max-min fairness (solved by SimGrid's CM02
/// model, one rate per flow). A flow first waits for its latency, using nothing, then moves its
/// bytes.
///
/// One engine per process, made on first use; not thread-safe. Simulations follow each other:
///
///     do {
///       engine.begin(largest_bytes);
///       ... add_resource, start ...
///     } while (!engine.run([&](FlowToken token) { ... start more ... }));
///
/// SimGrid's clock can't be set back, and its dates are doubles, so the same simulation would end
/// in other last bits when it starts later. The engine therefore counts time in steps of 2^-52 s
/// that stay the same within an epoch of one second, and scales seconds by two when SimGrid's clock
/// passes a power of two: all arithmetic on dates is then exact under translation and results do
/// not depend on what ran before.
class FlowEngine {
 public:
  static FlowEngine& instance();

  /// Starts a simulation at time 0 without resources. No flow will be larger than `largest_bytes`;
  /// bytes are counted in steps of about 2^-62 of it.
  void begin(double largest_bytes);

  /// \pre capacity > 0, in bytes/s.
  ResourceId add_resource(double bytes_per_s);

  /// Starts a flow now. A resource listed k times carries the bytes k times.
  /// \pre latency_s > 0, or bytes > 0 and `resources` is not empty: it must take time.
  void start(std::span<const ResourceId> resources, double latency_s, double bytes,
             FlowToken token);

  /// Since `begin`.
  double now_s() const;

  /// Runs until no flow is left. `on_done` is called when a flow ends, in order of time, and may
  /// start others. False: the simulation outlasted its epoch, and the last bits of its results
  /// depend on earlier ones; the same simulation must be begun and run again and will then succeed.
  bool run(const std::function<void(FlowToken)>& on_done);

  /// SimGrid links made so far. They are reused: no more than the largest simulation needed.
  std::size_t pooled_resources() const;

 private:
  FlowEngine();
  ~FlowEngine();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier
