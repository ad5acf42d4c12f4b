// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/algorithm.h"
#include "core/error.h"
#include "ir/builder.h"
#include "ir/chunk.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

constexpr int kRanks = 8;
constexpr int kRuns = 21;
constexpr int kShortChain = 256;
constexpr int kLongChain = 2304;
constexpr std::int64_t kSmallOp = 1024;
// A GPU that was idle first raises its clocks: its memcpy is measured until it no longer gets
// faster.
constexpr double kSteady = 0.01;
constexpr double kMinWarmup_s = 1;
constexpr int kMaxWarmups = 1000;
// Pieces that keep a GPU busy and yet let a tree's ranks work at once.
constexpr double kPieceBytes = 16 << 20;

/// Shares of the memcpy rate and microseconds that are asked of the executor.
constexpr double kCopyShare = 90;
constexpr double kCombineShare = 85;
constexpr double kAllreduceShare = 80;
constexpr double kOpMicroseconds = 2.5;

double bytes_moved(const Program& program, std::int64_t message_bytes) {
  const double unit_bytes =
      static_cast<double>(message_bytes) / static_cast<double>(program.contract.units);
  double bytes = 0;
  for (const Op& op : program.ops) bytes += (op.src_count + 1.0) * op.length * unit_bytes;
  return bytes;
}

/// r0.out <- r0.in + r0.tmp + ...
Program combine_of(int operands) {
  Builder builder("combine", {.ranks = 1, .units = 1});
  std::vector<Slice> sources{builder.input(0, 0, 1)};
  for (int i = 1; i < operands; ++i) sources.push_back(builder.tmp(0, i - 1, 1));
  builder.combine(builder.output(0, 0, 1), sources);
  return builder.finish();
}

/// Each op needs the one before it, to and fro between two ranks or in one lane of one.
Program chain_of(int ops, bool between_ranks) {
  Builder builder("chain", {.ranks = 2, .units = 1});
  const int other = between_ranks ? 1 : 0;
  for (int op = 0; op < ops; ++op) {
    const Slice here = builder.output(0, 0, 1);
    const Slice there = between_ranks ? builder.output(1, 0, 1) : builder.tmp(0, 0, 1);
    const bool forth = op % 2 == 0;
    builder.copy(forth ? there : here, forth ? here : there, {.at = forth ? 0 : other});
  }
  return builder.finish();
}

/// One GPU under test.
class Rates {
 public:
  explicit Rates(Backend& backend) : backend_(backend) {}

  double time_s(const Program& program, std::int64_t bytes, DataType type, bool copy_engine) {
    Target target;
    if (copy_engine) target.router = &engines_;
    RunOptions options;
    options.size_bytes = bytes;
    options.type = type;
    options.iterations = kRuns;
    options.warmup = 3;
    options.check = false;
    return backend_.run(program, target, options).executed->median_time_s;
  }

  double gbps(const Program& program, std::int64_t bytes, DataType type = DataType::float32,
              bool copy_engine = false) {
    return bytes_moved(program, bytes) / time_s(program, bytes, type, copy_engine) * 1e-9;
  }

  double memcpy_gbps(std::int64_t bytes) {
    return gbps(combine_of(1), bytes, DataType::float32, true);
  }

  /// Keeps the GPU busy for a second at least, and until two memcpys in a row are as fast.
  void warm_up(std::int64_t bytes) {
    double busy_s = 0;
    double before_s = 0;
    for (int i = 0; i < kMaxWarmups; ++i) {
      const double now_s = time_s(combine_of(1), bytes, DataType::float32, true);
      busy_s += kRuns * now_s;
      if (busy_s >= kMinWarmup_s && std::abs(now_s / before_s - 1) <= kSteady) return;
      before_s = now_s;
    }
  }

  double op_us(bool between_ranks) {
    const double more_s =
        time_s(chain_of(kLongChain, between_ranks), kSmallOp, DataType::float32, false) -
        time_s(chain_of(kShortChain, between_ranks), kSmallOp, DataType::float32, false);
    return more_s / (kLongChain - kShortChain) * 1e6;
  }

  /// Built for eight GPUs around a switch: every rank is as near as any other.
  double allreduce_gbps(const std::string& algorithm, std::int64_t bytes) {
    const Topology machine = load_topology(fmt::format("switch:n={}", kRanks));
    Router router(machine, machine.profile("ideal"));
    const Placement placement = place_ranks(router, {});
    BuildRequest request;
    request.ranks = kRanks;
    request.router = &router;
    request.placement = &placement;
    const Program whole = build(parse_algorithm(algorithm), request);
    const Program program =
        chunk(whole, plan_chunking(whole, static_cast<double>(bytes), kPieceBytes));
    return gbps(program, bytes);
  }

 private:
  Backend& backend_;
  // A back end tells by the profile who copies; the machine does not matter.
  const Topology machine_ = load_topology("full:n=2");
  Router engines_{machine_, machine_.profile("copy_engine")};
};

}  // namespace

std::vector<GpuRate> gpu_rates(Backend& backend, std::int64_t bytes, std::int64_t message_bytes,
                               const std::function<void(const std::string&)>& progress) {
  Rates rates(backend);
  std::vector<GpuRate> all;
  // The first and the last figure: the clocks may change on the way. Shares are of the larger.
  progress("cudaMemcpy, repeated until its rate is steady");
  rates.warm_up(bytes);
  const double first_gbps = rates.memcpy_gbps(bytes);
  all.push_back({"device-to-device cudaMemcpy, bytes moved, before", first_gbps, 0, "GB/s"});
  const auto share = [&](const std::string& what, double gbps, double wanted) {
    all.push_back({what, gbps, wanted, "%"});
  };
  progress("copy kernel");
  share("copy op by a kernel", rates.gbps(combine_of(1), bytes), kCopyShare);
  for (const DataType type : {DataType::float32, DataType::float16}) {
    for (const int operands : {2, 4, 8}) {
      const std::string what = fmt::format("combine of {}, {}", operands, to_string(type));
      progress(what);
      share(what, rates.gbps(combine_of(operands), bytes, type), kCombineShare);
    }
  }
  for (const bool between_ranks : {false, true}) {
    const std::string what = between_ranks ? "chain of small ops between two ranks, graph replay"
                                           : "chain of small ops in a lane, graph replay";
    progress(what);
    all.push_back({what, rates.op_us(between_ranks), kOpMicroseconds, "us per op", true});
  }
  for (const char* algorithm : {"ring", "optimal"}) {
    const std::string what =
        fmt::format("allreduce of {} MiB, 8 ranks on one GPU, {}", message_bytes >> 20, algorithm);
    progress(what);
    share(what, rates.allreduce_gbps(algorithm, message_bytes), kAllreduceShare);
  }
  progress("cudaMemcpy again");
  const double last_gbps = rates.memcpy_gbps(bytes);
  all.push_back({"device-to-device cudaMemcpy, bytes moved, after", last_gbps, 0, "GB/s"});
  for (GpuRate& rate : all) {
    if (rate.unit == "%") rate.value *= 100 / std::max(first_gbps, last_gbps);
  }
  return all;
}

std::string gpu_rates_table(const std::vector<GpuRate>& rates) {
  std::string text = "| what | measured | wanted | |\n|---|---|---|---|\n";
  for (const GpuRate& rate : rates) {
    const bool judged = rate.wanted > 0;
    text += fmt::format("| {} | {:.4g} {} | {} | {} |\n", rate.what, rate.value, rate.unit,
                        judged ? fmt::format("{} {} {}", rate.at_most ? "at most" : "at least",
                                             rate.wanted, rate.unit)
                               : "",
                        !judged          ? ""
                        : rate.reached() ? "reached"
                                         : "**missed**");
  }
  return text;
}

}  // namespace espalier
