// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/time_limit.h"
#include "probe/least_squares.h"
#include "scenarios/profile_constants.h"
#include "scenarios/study.h"

// Fits the constants of a profile to measured times: docs/fitting.md.

namespace espalier {

/// A measured time and the question that it answers.
struct MeasuredTimeOf {
  Query query;  ///< of FitRequest::machine; its profile is that of the request
  double time_s = 0;
  std::string file;
  int line = 0;  ///< 0: not known
};

/// What is to be fitted: times that were measured on one machine.
struct FitRequest {
  Topology machine;
  std::string profile;  ///< as `Topology::profile` takes it; a protocol that it names is kept
  std::vector<MeasuredTimeOf> times;
  /// After this time at most one more step is taken. Unlike a TimeLimit it leaves simulations
  /// alone: what they found in a hurry could not be compared.
  double budget_s = std::numeric_limits<double>::infinity();
};

/// A constant and what the times say about it.
struct FittedConstant {
  ProfileConstant constant;
  double before = 0;  ///< in the unit of files, as is `fitted`
  FittedValue fitted;

  bool is_changed() const {
    return fitted.determined == Determined::yes || fitted.determined == Determined::at_limit;
  }
};

/// A measured time and what is simulated for it.
struct FittedTime {
  MeasuredTimeOf measured;
  std::string protocol;     ///< simulated after the fit; empty where the profile has none
  std::string algorithm;    ///< of that simulation, nothing left open
  int library_version = 0;  ///< of that simulation: Outcome::library_version
  Traffic traffic;          ///< of that simulation
  double leverage = 0;      ///< LeastSquaresFit::leverage
  double before_s = 0;      ///< simulated with the constants as they were
  double after_s = 0;       ///< and as they are fitted

  /// What the simulation is off by, as a share of what was measured: 0.1 is 10 % too long.
  double error_before() const { return before_s / measured.time_s - 1; }
  double error_after() const { return after_s / measured.time_s - 1; }
  /// What it would be off by about, had the time not been among those fitted.
  double error_left_out() const;
};

struct ProfileFit {
  std::vector<FittedConstant> constants;  ///< all that were candidates
  std::vector<FittedTime> times;          ///< in the order of the request
  Profile profile;                        ///< with the fitted constants
  double scatter = 0;                     ///< LeastSquaresFit::scatter
  std::int64_t simulations = 0;
  std::optional<GrantedTime> budget;  ///< where the time was limited
};

/// Why times are hardly of this machine, runtime and unit: the constants that end at a limit of
/// what is possible.
std::vector<std::string> at_limits(const ProfileFit& fit);
/// The same of the times of a table: bands that no constants meet. Empty where nothing speaks
/// against it.
std::vector<std::string> why_not_met(std::span<const FittedTime> times);

/// What a simulation says that a benchmark prints for a question, such as the time of nccl-tests.
/// \pre the outcome ran, simulated
double predicted_s(const Outcome& outcome);

/// Told of what is simulated next: the number of the pass over all times, from 1, and the question.
using FitStep = std::function<void(int pass, const Query& query)>;

/// Fits the constants that the times determine; the others keep their values. Deterministic.
/// Throws what `Study::ask` throws, what reading a profile's file throws, and Error{unsupported}
/// where an algorithm does not apply or its program is refused. \pre there are at least
/// kMinFitTimes times
ProfileFit fit_profile(const FitRequest& request, Backend& simulator, const FitStep& on_step = {});

/// By how much the simulation is off by size, before or after the fit:
/// `fitted_bands(times, &FittedTime::error_after)`.
std::vector<BandDeviations> fitted_bands(std::span<const FittedTime> times,
                                         double (FittedTime::*error)() const);

/// Fewer times determine nothing: see kMinSpare.
inline constexpr std::size_t kMinFitTimes = kMinSpare + 1;

}  // namespace espalier
