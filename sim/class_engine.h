// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "run/options.h"
#include "sim/date_heap.h"
#include "sim/flow_engine.h"
#include "sim/max_min.h"
#include "sim/order_key.h"

namespace espalier {

/// SimLimits, in ticks.
struct EngineLimits {
  Ticks time{std::numeric_limits<double>::infinity()};
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
};

/// Made for many flows in flight: flows of one class (over the same resources, beside those that
/// each has alone, which are alike) have one rate, so
/// the engine keeps for every class what a flow that was always there would have received, and
/// where on that scale each flow ends. That a flow starts or ends costs the logarithm of their
/// number, and rates are solved for once per instant, class by class.
///
/// It can be told to give up (see EngineLimits): at a date, or after so much work.
///
/// Flows that end within 2^-44 of the date
/// end together: what is simultaneous on paper is so here, whatever its roundings. Every simulation
/// is exact and needs no expectation.
class ClassEngine final : public FlowEngine {
 public:
  explicit ClassEngine(const EngineLimits& limits = {}) : limits_(limits) {}

  std::string_view name() const override { return "classes"; }
  void begin(const Expectation& expected) override;
  ResourceId add_resource(double bytes_per_tick) override {
    return max_min_.add_resource(bytes_per_tick);
  }
  using FlowEngine::start;
  void start(std::span<const ResourceId> resources, ResourceId alone, Ticks latency, double bytes,
             FlowToken token, FlowKind& kind) override;
  Ticks now() const override { return now_; }
  using FlowEngine::run;
  std::optional<Expectation> run(const std::function<void(FlowToken)>& on_done,
                                 const std::function<void()>& on_instant_over) override;

  void give_up() override { end_ = SimEnd::too_slow; }
  SimEnd end() const override { return end_; }
  /// Of the latest simulation, as SimLimits counts it.
  std::int64_t work() const;

 private:
  static constexpr ClassId kNoClass = ~ClassId{0};

  struct Ended {
    std::uint64_t number = 0;  ///< counts starts
    FlowToken token = 0;
  };
  struct Moving {
    double end_bytes = 0;  ///< it ends when its class has served these
    Ended flow;
    bool operator>(const Moving& other) const {
      return order_key(end_bytes, flow.number) > order_key(other.end_bytes, other.flow.number);
    }
  };
  struct Waiting {
    Ticks until;  ///< the end of its latency
    Ended flow;
    ClassId id = kNoClass;  ///< none: it has nothing to move
    double bytes = 0;
    bool operator>(const Waiting& other) const {
      return order_key(until.value, flow.number) > order_key(other.until.value, other.flow.number);
    }
  };
  struct Served {
    double bytes = 0;  ///< what each flow received since the class last had none, until `at`
    Ticks at;
    double rate = 0;             ///< from then on, bytes per tick
    double first_end_bytes = 0;  ///< of the first to end: the heap lies elsewhere
    std::vector<Moving> moving;  ///< heap, the first to end on top
    bool is_touched = false;     ///< listed in touched_

    double bytes_until(Ticks date) const { return bytes + rate * (date - at).value; }
    Ticks end() const { return at + Ticks{(first_end_bytes - bytes) / rate}; }
  };

  void move(ClassId id, double bytes, const Ended& flow);
  void touch(ClassId id);
  void update_rates();
  void end_latencies(Ticks until);
  void end_moving(Ticks until);

  const EngineLimits limits_;
  SimEnd end_ = SimEnd::finished;
  MaxMin max_min_;
  Ticks now_;
  std::uint64_t started_ = 0;
  std::vector<Waiting> waiting_;  ///< heap, the first to end on top
  std::vector<Served> classes_;
  std::vector<ClassId> touched_;           ///< flows came or went since the rates were solved for
  DateHeap ends_;                          ///< of the first flow of every class that has any
  std::vector<DateHeap::Entry> new_ends_;  ///< of classes whose flows or rates have changed
  std::vector<Ended> ended_;               ///< at this instant
};

}  // namespace espalier
