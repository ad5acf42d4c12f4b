// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "scenarios/study.h"

namespace espalier {

/// What to expect of a question before anything is built for it. Only orders and orders of
/// magnitude matter: it decides what is asked first where there may be no time to ask everything.
struct Forecast {
  /// Candidates whose best it stands for, or 1 where a plan is searched for; else 0. Such questions
  /// take as long as they may, and are the better the more is known.
  std::size_t compares = 0;
  double takes_s = 0;  ///< to build, verify and simulate it once, on a usual computer
  double time_s = 0;   ///< the answer, uncut, on links of usual speed

  /// Whether it takes so little that nothing is gained by asking others first, all its pieces
  /// included.
  bool is_quick() const;
  /// In which order questions are asked: those without a search first; then by how many times
  /// longer than a moment they take; and then the fastest.
  std::tuple<std::size_t, int, double> order() const;
};

/// Forecasts of questions about one machine and collective, each made once. The study is borrowed.
class Forecasts {
 public:
  explicit Forecasts(Study& study) : study_(study) {}

  const Forecast& of(const Query& query);

 private:
  Forecast make(const Query& query);
  double ops(const Query& query, const AlgorithmChoice& choice);
  bool plans_by_nodes(const Query& query);

  Study& study_;
  std::map<std::pair<std::string, std::int64_t>, Forecast> known_;  ///< by algorithm and size
  std::map<std::string, double> ops_;                               ///< by algorithm
  std::optional<bool> plans_by_nodes_;
};

}  // namespace espalier
