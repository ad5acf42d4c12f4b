// SPDX-License-Identifier: Apache-2.0
// Questions to copies of a study: who predicted something answers it, too.
#include "scenarios/study_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "scenarios/records.h"
#include "sim/simulator.h"
#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

/// Counts the simulations of all processes that are made from this one.
class CountingSimulator : public Simulator {
 public:
  CountingSimulator()
      : shared_(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)) {
    if (shared_ == MAP_FAILED) throw std::bad_alloc();
    new (shared_) Shared;
  }
  ~CountingSimulator() override { ::munmap(shared_, sizeof(Shared)); }
  CountingSimulator(const CountingSimulator&) = delete;
  CountingSimulator& operator=(const CountingSimulator&) = delete;

  /// Slowly, so that every worker gets something to do.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override {
    ++shared().simulations;
    if (!std::exchange(has_run_, true)) ++shared().processes;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return Simulator::run(program, target, options);
  }
  int simulations() const { return shared().simulations; }
  /// How many of them have simulated.
  int processes() const { return shared().processes; }

 private:
  struct Shared {
    std::atomic<int> simulations = 0;
    std::atomic<int> processes = 0;
  };
  Shared& shared() const { return *static_cast<Shared*>(shared_); }

  void* shared_;
  bool has_run_ = false;  ///< in this process
};

/// How many simulations it takes to predict how long algorithms take, and then to answer what was
/// predicted.
int simulations_of(int workers_asked) {
  CountingSimulator simulator;
  Study study(simulator, &simulator);
  StudyWorkers workers(study, simulator, workers_asked);
  const std::vector<std::string> algorithms = {"ring",  "double_binary_tree", "halving_doubling",
                                               "chain", "pipelined_chain",    "all_pairs"};
  const auto ask = [&](StudyRequest::Kind kind, const std::string& algorithm, auto& found) {
    StudyRequest request;
    request.kind = kind;
    request.query = with(question("dgx1-v100"), algorithm, 1 << 20);
    const std::size_t group = workers.group_of(request.query);
    return workers.add(std::move(request), group,
                       [&found](const StudyReply& reply) { read_record(reply.answer, found); });
  };
  std::vector<Prediction> predictions(algorithms.size());
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    numbers.push_back(ask(StudyRequest::Kind::predict, algorithms[i], predictions[i]));
  }
  for (const std::size_t number : numbers) workers.wait_for(number, {});
  numbers.clear();
  std::vector<Outcome> outcomes(algorithms.size());
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    numbers.push_back(ask(StudyRequest::Kind::answer, predictions[i].algorithm, outcomes[i]));
  }
  for (const std::size_t number : numbers) workers.wait_for(number, {});
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    EXPECT_DOUBLE_EQ(outcomes[i].report.time_s, predictions[i].best.time_s) << algorithms[i];
  }
  EXPECT_GE(simulator.processes(), std::min(workers_asked, 2));
  return simulator.simulations();
}

TEST(StudyWorkers, WhoPredictedItAnswersIt) {
  // One worker knows all that was simulated.
  const int alone = simulations_of(1);
  EXPECT_GT(alone, 20);
  EXPECT_EQ(simulations_of(3), alone);
}

}  // namespace
}  // namespace espalier
