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
///       engine.begin(largest_bytes, expected_s);
///       ... add_resource, start ...
///     } while (!engine.run([&](FlowToken token) { ... start more ... }));
///
/// SimGrid's clock can't be set back, and its dates are doubles, so the same simulation would end
/// in other last bits when it starts later. The engine therefore runs simulations in epochs: while
/// SimGrid's clock goes from one power of two to the next, dates are multiples of one step, and
/// arithmetic on them does not change when all are shifted. A simulation's own scale of seconds
/// makes an epoch last some times what it is expected to take, whichever epoch it is in. So dates
/// are as exact for nanoseconds as for hours, and results do not depend on what ran before. How
/// many times depends on how many roundings add up: 2^12 times, each date being rounded to 2^-40 of
/// the simulation, when flows hardly follow one another; half of that for twice as many flows in
/// turn, down to 2^6. Together they come to 2^-40, or 2^-46 per flow when there are many.
///
/// There are some 880 epochs, enough for 2 million short and 50 000 long simulations that take as
/// long as expected. The last epoch has no end: the steps of a process that gets there grow with
/// the time it has simulated, so last bits may differ, one more whenever that time doubles.
class FlowEngine {
 public:
  static FlowEngine& instance();

  /// Starts a simulation at time 0 without resources. No flow will be larger than `largest_bytes`;
  /// bytes are counted in steps of about 2^-62 of it. `expected_s`: about how long it will take,
  /// and `flows_in_turn`: about how many flows follow one another; they set the steps of time (see
  /// above). 0 s: not known, an epoch lasts 1 s.
  void begin(double largest_bytes, double expected_s, double flows_in_turn = 1);

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
