// SPDX-License-Identifier: Apache-2.0
// bench/gpu_rates on GPUs that exist as a formula only.
#include "bench/gpu_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace espalier {
namespace {

using testing::HasSubstr;

/// Moves bytes at a rate for each way of doing it; ops start one after the other.
class FormulaGpu : public Backend {
 public:
  double engine_gbps = 2000;
  double kernel_gbps = 1900;
  double half_gbps = 1700;
  double op_s = 2e-6;
  double launch_s = 50e-6;
  double cold_s = 0;       ///< at work until its clocks are up; before, everything takes thrice
  int slow_runs_from = 0;  ///< from this call on everything takes twice; 0: never

  std::string name() const override { return "formula"; }
  std::optional<std::string> unsupported(const Program&, const Target&) const override {
    return std::nullopt;
  }
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override {
    const bool by_engine =
        target.router != nullptr && target.router->profile().reduction == ReductionMode::separate;
    const double gbps = by_engine                           ? engine_gbps
                        : options.type == DataType::float16 ? half_gbps
                                                            : kernel_gbps;
    double units = 0;
    for (const Op& op : program.ops) units += (op.src_count + 1.0) * op.length;
    RunReport report;
    report.executed.emplace().median_time_s =
        launch_s + static_cast<double>(program.ops.size()) * op_s +
        units * static_cast<double>(options.size_bytes) /
            static_cast<double>(program.contract.units) / gbps * 1e-9;
    if (busy_s_ < cold_s) report.executed->median_time_s *= 3;
    if (slow_runs_from > 0 && ++calls_ >= slow_runs_from) report.executed->median_time_s *= 2;
    busy_s_ += options.iterations * report.executed->median_time_s;
    return report;
  }

 private:
  double busy_s_ = 0;
  int calls_ = 0;
};

std::map<std::string, GpuRate> rates_of(FormulaGpu& gpu) {
  std::map<std::string, GpuRate> by_name;
  int told = 0;
  const auto all =
      gpu_rates(gpu, std::int64_t{1} << 40, std::int64_t{1} << 30, [&](const auto&) { ++told; });
  for (const GpuRate& rate : all) by_name[rate.what] = rate;
  EXPECT_EQ(told, static_cast<int>(all.size()));
  EXPECT_EQ(by_name.size(), all.size());
  return by_name;
}

TEST(GpuRates, AreSharesOfTheMemcpyOfTheSameRun) {
  FormulaGpu gpu;
  const auto rates = rates_of(gpu);
  ASSERT_EQ(rates.size(), 13U);
  // A terabyte takes seconds: starts don't count.
  for (const char* when : {"before", "after"}) {
    const std::string what = "device-to-device cudaMemcpy, bytes moved, ";
    EXPECT_NEAR(rates.at(what + when).value, 2000, 1);
  }
  EXPECT_NEAR(rates.at("copy op by a kernel").value, 95, 0.1);
  for (const char* operands : {"2", "4", "8"}) {
    const std::string what = std::string("combine of ") + operands;
    EXPECT_NEAR(rates.at(what + ", float").value, 95, 0.1);
    EXPECT_NEAR(rates.at(what + ", half").value, 85, 0.1);
  }
}

TEST(GpuRates, AreThoseOfAGpuThatIsNotCold) {
  FormulaGpu gpu;
  gpu.cold_s = 0.5;
  const auto rates = rates_of(gpu);
  EXPECT_NEAR(rates.at("device-to-device cudaMemcpy, bytes moved, before").value, 2000, 1);
  EXPECT_NEAR(rates.at("copy op by a kernel").value, 95, 0.1);
}

TEST(GpuRates, AreSharesOfTheFasterMemcpy) {
  FormulaGpu gpu;
  gpu.slow_runs_from = 5;  // two memcpys to warm up, one that counts, the copy op; then it gets hot
  const auto rates = rates_of(gpu);
  EXPECT_NEAR(rates.at("device-to-device cudaMemcpy, bytes moved, before").value, 2000, 1);
  EXPECT_NEAR(rates.at("device-to-device cudaMemcpy, bytes moved, after").value, 1000, 1);
  EXPECT_NEAR(rates.at("copy op by a kernel").value, 95, 0.1);
  EXPECT_NEAR(rates.at("combine of 8, half").value, 42.5, 0.1);
}

TEST(GpuRates, TakeWhatAnOpAddsToAChain) {
  FormulaGpu gpu;
  gpu.op_s = 3e-6;
  const auto rates = rates_of(gpu);
  for (const char* where : {"in a lane", "between two ranks"}) {
    const GpuRate& rate = rates.at(std::string("chain of small ops ") + where + ", graph replay");
    // 1 KiB is read and written besides: about a nanosecond.
    EXPECT_NEAR(rate.value, 3, 0.01);
    EXPECT_FALSE(rate.reached());
  }
}

TEST(GpuRates, JudgeAllreducesByTheBytesTheyMove) {
  FormulaGpu gpu;
  gpu.op_s = 0;
  gpu.launch_s = 0;
  for (const char* algorithm : {"ring", "optimal"}) {
    const auto rates = rates_of(gpu);
    const GpuRate& rate =
        rates.at(std::string("allreduce of 1024 MiB, 8 ranks on one GPU, ") + algorithm);
    EXPECT_NEAR(rate.value, 95, 0.1);
    EXPECT_TRUE(rate.reached());
  }
}

TEST(GpuRates, ATableSaysWhatWasMissed) {
  const std::string table = gpu_rates_table(
      {{"copy", 2000, 0, "GB/s"}, {"kernel", 89.9, 90, "%"}, {"op", 2.5, 2.5, "us per op", true}});
  EXPECT_EQ(table,
            "| what | measured | wanted | |\n|---|---|---|---|\n"
            "| copy | 2000 GB/s |  |  |\n"
            "| kernel | 89.9 % | at least 90 % | **missed** |\n"
            "| op | 2.5 us per op | at most 2.5 us per op | reached |\n");
}

}  // namespace
}  // namespace espalier
