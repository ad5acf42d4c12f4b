// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "scenarios/asked_again.h"
#include "sim/simulator.h"

namespace espalier {
namespace {

using Json = nlohmann::json;

/// A trace has a slice a lane in place of them, and those before and after at their dates.
TEST(Trace, HasASliceInPlaceOfRoundsThatRepeatThemselves) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = "p2.8xlarge";
  query.algorithm = "nccl";
  query.collective = Collective::broadcast;
  query.size_bytes = std::int64_t{1} << 30;
  query.only_times = true;  // as who asks for nothing but the trace
  const Outcome asked = study.ask(query);
  const Trace few = trace_of(ask_with_timeline(study, asked, traced_ops(50'000)), 50'000);
  const Outcome again = ask_with_timeline(study, asked, traced_ops(kAllOps));
  const Trace all = trace_of(again, kAllOps);
  EXPECT_EQ(all.counted_in, 0U);
  EXPECT_EQ(all.ops, again.program->ops.size());
  EXPECT_EQ(few.left_out, 0U);
  EXPECT_GT(few.counted_in, 5 * few.ops);
  EXPECT_EQ(few.ops + few.counted_in, all.ops);
  // What is there is there at the same time.
  const auto events_of = [](const Trace& trace) {
    std::map<OpId, Json> events;
    const Json parsed = Json::parse(trace.json);
    for (const Json& event : parsed["traceEvents"]) {
      if (event["args"].contains("op")) events.emplace(event["args"]["op"].get<OpId>(), event);
    }
    return events;
  };
  const std::map<OpId, Json> of_all = events_of(all);
  const std::map<OpId, Json> of_few = events_of(few);
  EXPECT_EQ(of_few.size(), few.ops);
  for (const auto& [op, event] : of_few) {
    const Json& same = of_all.at(op);
    EXPECT_EQ(event["name"], same["name"]);
    EXPECT_EQ(event["tid"], same["tid"]);
    EXPECT_NEAR(event["ts"].get<double>(), same["ts"].get<double>(), 1e-2);
    EXPECT_NEAR(event["dur"].get<double>(), same["dur"].get<double>(), 1e-2);
  }
  // A slice of every lane, from where its ops of these rounds begin to where they end.
  std::size_t slices = 0;
  const Json parsed = Json::parse(few.json);
  for (const Json& event : parsed["traceEvents"]) {
    if (event.value("cat", "") != "rounds") continue;
    ++slices;
    EXPECT_EQ(event["name"], few.counted_rounds);
    for (const auto& [op, other] : of_few) {
      if (other["pid"] != event["pid"] || other["tid"] != event["tid"]) continue;
      const double end = event["ts"].get<double>() + event["dur"].get<double>();
      const bool is_before = other["ts"].get<double>() + other["dur"].get<double>() <=
                             event["ts"].get<double>() + 1e-2;
      EXPECT_TRUE(is_before || other["ts"].get<double>() >= end - 1e-2) << op;
    }
  }
  EXPECT_GE(slices, 8U);  // of eight GPUs
}

}  // namespace
}  // namespace espalier
