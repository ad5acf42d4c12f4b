// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "sim/flow_engine.h"

namespace espalier {

/// SimGrid's CM02 model, in a library of its own, which `simgrid_engine` loads
/// (sim/load_simgrid.h). One engine per process, made on first use. Each event costs time in
/// proportion to the flows in flight that it may concern.
///
/// SimGrid's clock can't be set back, and its dates are doubles, so the same simulation would end
/// in other last bits when it starts later. The engine therefore runs simulations in epochs: while
/// SimGrid's clock goes from one power of two to the next, dates are multiples of one step, and
/// arithmetic on them does not change when all are shifted. A simulation's own scale of ticks
/// makes an epoch last some times what it is expected to take, whichever epoch it is in. So dates
/// are as exact for nanoseconds as for hours, and results do not depend on what ran before. How
/// many times depends on how many roundings add up: 2^12 times, each date being rounded to 2^-40 of
/// the simulation, when flows hardly follow one another; half of that for twice as many flows in
/// turn, down to 2^6. Together they come to 2^-40, or 2^-46 per flow when there are many. A
/// simulation that outlasts its epoch, or that takes far longer or shorter than expected, has to be
/// repeated. Bytes are counted in steps of about 2^-62 of the largest flow's.
///
/// There are some 880 epochs, enough for 2 million short and 50 000 long simulations that take as
/// long as expected. The last epoch has no end: the steps of a process that gets there grow with
/// the time it has simulated, so last bits may differ, one more whenever that time doubles.
class SimGridEngine final : public FlowEngine {
 public:
  /// \pre always the same thread: SimGrid runs in the one that made the engine, and nothing happens
  /// in others
  static SimGridEngine& instance();

  std::string_view name() const override { return "simgrid"; }
  void begin(const Expectation& expected) override;
  ResourceId add_resource(double bytes_per_tick) override;
  using FlowEngine::start;
  void start(std::span<const ResourceId> resources, ResourceId alone, Ticks latency, double bytes,
             FlowToken token, FlowKind& kind) override;
  Ticks now() const override;
  using FlowEngine::run;
  std::optional<Expectation> run(const std::function<void(FlowToken)>& on_done,
                                 const std::function<void()>& on_instant_over) override;

  /// SimGrid links made so far. They are reused: no more than the largest simulation needed.
  std::size_t pooled_resources() const;

 private:
  SimGridEngine();
  ~SimGridEngine() override;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier

/// SimGridEngine::instance, by a name that can be looked up.
extern "C" espalier::FlowEngine* espalier_simgrid_engine();
