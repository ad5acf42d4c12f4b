// SPDX-License-Identifier: Apache-2.0
#include "scenarios/profile_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/words.h"
#include "run/launch.h"
#include "scenarios/benchmark.h"
#include "topologies/placement.h"
#include "topologies/profile_file.h"
#include "topologies/profile_grades.h"

namespace espalier {
namespace {

/// Slopes are those between two values of a constant that differ by this share: more than the
/// accuracy of the simulator, less than what moves its kinks.
constexpr double kSlopeStep = 0.01;

/// Where the median deviation of a band is larger after a fit, something else was measured than was
/// simulated: estimate, several times what fits of logs that are right leave.
constexpr double kLargestMedian = 0.5;

/// How far a constant may well be from what a profile says of it, as a share. Where it was taken
/// from a source or fitted, on GPUs like these, few percent change the predictions for everything
/// that it was compared with; hosts, networks and what was estimated may be quite different. Both
/// are estimates.
constexpr double kKnownSpread = 0.015;
constexpr double kGuessedSpread = 1;
/// However much a time decides by itself, what it would be off by without it stays finite.
constexpr double kMostLeverage = 0.9;

using QuestionKey = std::tuple<Collective, int, bool, std::int64_t, std::vector<int>, std::string,
                               LaunchMode, int, int>;

QuestionKey question_key(const Query& query) {
  return {query.collective, query.root,   query.in_place,        query.size_bytes, query.gpus,
          query.algorithm,  query.launch, query.library_version, query.timed_calls};
}

/// Asks the simulator what the times would be with other constants.
class ProfileAsker {
 public:
  ProfileAsker(const FitRequest& request, Backend& simulator, const FitStep& on_step)
      : request_(request),
        on_step_(on_step),
        word_(profile_word(request.profile)),
        profile_(start_of(request, word_.runtime)),
        runtime_(names_profile_file(word_.runtime) ? kOfFile
                                                   : request.machine.profile(word_.runtime).name),
        machine_(request.times.front().query.topology),
        study_(simulator, &simulator) {
    study_.know_machine(machine_, request.machine);
    std::map<QuestionKey, std::size_t> known;
    for (const MeasuredTimeOf& time : request.times) {
      const auto [found, is_new] = known.try_emplace(question_key(time.query), questions_.size());
      if (is_new) add_question(time.query);
      question_of_.push_back(found->second);
    }
  }

  const Profile& profile() const { return profile_; }
  /// What it is called where answers name it.
  const std::string& runtime() const { return runtime_; }
  std::int64_t simulations() const { return simulations_; }

  /// The times that a profile predicts, in seconds, and what it chooses for them.
  std::vector<double> predict(const Profile& profile) {
    begin_pass(profile);
    answers_.clear();
    std::vector<double> by_question_s;
    for (const Query& question : questions_) {
      answers_.push_back(ask(question, word_.protocol));
      by_question_s.push_back(predicted_s(answers_.back()));
    }
    return by_time(by_question_s);
  }

  /// The answer for a time, where `predict` was asked last.
  const Outcome& answer_to(std::size_t time) const { return answers_[question_of_[time]]; }

  /// The same times with the algorithms and protocols that were chosen where `predict` was asked
  /// last: a library's choice does not depend on the constants that are fitted here.
  std::vector<double> times_s(const Profile& profile) {
    begin_pass(profile);
    fixed_s_.clear();
    chunk_bytes_.clear();
    for (std::size_t i = 0; i < questions_.size(); ++i) {
      const Outcome answer = ask(with_choices(i), answers_[i].protocol);
      fixed_s_.push_back(predicted_s(answer));
      calls_[i].gpu_s = answer.report.simulated->back_to_back_s;
      calls_[i].blocks = answer.report.simulated->blocks;
      calls_[i].library_version = answer.library_version;
      calls_[i].busiest_s = answer.report.simulated->busiest_s;
      calls_[i].isolated_s = answer.report.simulated->together_s;
      chunk_bytes_.push_back(answer.chunk_bytes);
    }
    return by_time(fixed_s_);
  }

  /// d log(time) / d log(constant) for every time, where `times_s` was asked last: between a little
  /// less and a little more, because constants that are about to matter have a slope on one side.
  std::vector<double> slopes(const Profile& profile, const ProfileConstant& constant) {
    const double value = constant.value(profile);
    const double up = std::min(value * (1 + kSlopeStep), constant.maximum);
    const double down = std::max(value / (1 + kSlopeStep), constant.minimum);
    const std::vector<double> more_s = moved_times_s(profile, constant, up);
    const std::vector<double> less_s = moved_times_s(profile, constant, down);
    std::vector<double> by_question;
    for (std::size_t i = 0; i < more_s.size(); ++i) {
      by_question.push_back(std::log(more_s[i] / less_s[i]) / std::log(up / down));
    }
    return by_time(by_question);
  }

 private:
  /// What a profile from a file is called on the machine that is asked.
  static constexpr const char* kOfFile = "fitted";

  /// The profile named, all its protocols open.
  static Profile start_of(const FitRequest& request, const std::string& runtime) {
    static_cast<void>(request.machine.profile(request.profile));  // throws if there is none
    if (names_profile_file(runtime)) return read_profile_file(runtime, request.machine);
    return request.machine.profiles.at(request.machine.profile(runtime).name);
  }

  void add_question(const Query& query) {
    const Topology& machine = request_.machine;
    const Router router(machine, machine.profile("ideal"), query.links);
    questions_.push_back(query);
    questions_.back().run.start_together = true;  // what logs print does not depend on it
    LaunchedCalls& calls = calls_.emplace_back();
    calls.timed = query.timed_calls;
    calls.gpus_per_process = most_gpus_of_a_host(machine, place_ranks(router, query.gpus));
  }

  void begin_pass(const Profile& profile) {
    ++pass_;
    study_.change_profile(machine_, runtime_, profile);
  }

  std::vector<double> by_time(const std::vector<double>& by_question) const {
    std::vector<double> all;
    for (const std::size_t question : question_of_) all.push_back(by_question[question]);
    return all;
  }

  Outcome ask(Query query, const std::string& protocol) {
    if (on_step_) on_step_(pass_, query);
    ++simulations_;
    query.profile = runtime_ + (protocol.empty() ? "" : ":" + protocol);
    query.judge = false;
    Outcome outcome = study_.ask(query);
    if (outcome.skipped) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{} is not possible here: {}", query.algorithm, *outcome.skipped),
                  outcome.instead);
    }
    if (!outcome.verified) throw Error(ErrorKind::unsupported, outcome.problems);
    return outcome;
  }

  Query with_choices(std::size_t question) const {
    Query query = questions_[question];
    if (!answers_[question].chosen.empty()) query.algorithm = answers_[question].chosen;
    return query;
  }

  /// Of every question, with the chunks that were best without the change.
  std::vector<double> moved_times_s(Profile profile, const ProfileConstant& constant,
                                    double value) {
    constant.set(profile, value);
    if (constant.of_launch) return launched_times_s(profile.launch);
    begin_pass(profile);
    std::vector<double> all;
    for (std::size_t i = 0; i < questions_.size(); ++i) {
      if (constant.concerns && !constant.concerns(answers_[i])) {
        all.push_back(fixed_s_[i]);
        continue;
      }
      Query query = with_choices(i);
      query.chunk_bytes = chunk_bytes_[i];
      all.push_back(predicted_s(ask(query, answers_[i].protocol)));
    }
    return all;
  }

  /// Of every question, if calls were launched at other costs.
  std::vector<double> launched_times_s(const LaunchCosts& costs) const {
    std::vector<double> all;
    for (std::size_t i = 0; i < questions_.size(); ++i) {
      all.push_back(launched_s(costs, questions_[i].launch, calls_[i]));
    }
    return all;
  }

  const FitRequest& request_;
  const FitStep& on_step_;
  const ProfileWord word_;
  const Profile profile_;                  ///< with the constants as they are
  const std::string runtime_;              ///< its name on the machine that is asked
  const std::string machine_;              ///< and the machine's, in questions
  Study study_;                            ///< of the pass that goes on
  std::vector<Query> questions_;           ///< each once
  std::vector<std::size_t> question_of_;   ///< by time
  std::vector<LaunchedCalls> calls_;       ///< by question, where `times_s` was asked last
  std::vector<Outcome> answers_;           ///< by question, where `predict` was asked last
  std::vector<double> fixed_s_;            ///< by question, where `times_s` was asked last
  std::vector<std::int64_t> chunk_bytes_;  ///< the same
  std::int64_t simulations_ = 0;
  int pass_ = 0;
};

/// The digits that are worth writing: intervals are wider.
double four_digits(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

Profile with_values(Profile profile, const std::vector<ProfileConstant>& constants,
                    const std::vector<double>& values) {
  for (std::size_t i = 0; i < constants.size(); ++i) constants[i].set(profile, values[i]);
  return profile;
}

/// Adds what the answer to a time used.
void add_traffic(const FitRequest& request, const ProfileAsker& asker, std::size_t time,
                 Traffic& traffic) {
  traffic.add(asker.answer_to(time), request.machine,
              chosen_gpus(request.machine, request.times[time].query.gpus));
}

/// The constants that the messages make use of, for the profile as it is.
std::vector<ProfileConstant> candidates(const FitRequest& request, const ProfileAsker& asker) {
  Traffic traffic;
  for (std::size_t time = 0; time < request.times.size(); ++time) {
    add_traffic(request, asker, time, traffic);
  }
  return constants_in_use(asker.profile(), traffic);
}

/// A library has some of its kernels run under a profile of their own.
void require_any_under(const FitRequest& request, const ProfileAsker& asker) {
  std::string other;
  for (std::size_t time = 0; time < request.times.size(); ++time) {
    other = asker.answer_to(time).profile;
    if (other == asker.runtime()) return;
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("these messages run under profile {}, which no fit of {} changes", other,
                          request.profile),
              "--profile " + other);
}

/// Whether a profile has the constant from a source or a fit. Its links' are from either, unless a
/// file says something else (graded_link).
bool is_known(const ProfileConstant& constant, const Profile& profile, const Topology& machine,
              const std::vector<GradedFigure>& figures) {
  if (constant.is_local) return false;
  std::optional<GradedFigure> graded;
  if (constant.path.front() == "links") {
    graded = graded_link(profile, machine, constant.path[1]);
    if (!graded) return true;
  }
  std::vector<std::string> of_others = constant.path;  // what models without their own have
  of_others.back() = "other";
  for (const std::string& name : {constant.name(), join(of_others, ".")}) {
    for (const GradedFigure& figure : figures) {
      if (!graded && figure.name == name) graded = figure;
    }
  }
  return graded && (graded->grade == "source" || graded->grade == "fitted");
}

LeastSquaresFit fit(const FitRequest& request, ProfileAsker& asker,
                    const std::vector<ProfileConstant>& constants,
                    const std::function<bool()>& is_over) {
  LeastSquaresProblem problem;
  const std::vector<GradedFigure> figures = graded_figures(asker.profile(), request.machine);
  for (const ProfileConstant& constant : constants) {
    problem.start.push_back(constant.value(asker.profile()));
    problem.lower.push_back(constant.minimum);
    problem.upper.push_back(constant.maximum);
    problem.spread.push_back(is_known(constant, asker.profile(), request.machine, figures)
                                 ? kKnownSpread
                                 : kGuessedSpread);
  }
  problem.errors = [&](const std::vector<double>& values) {
    std::vector<double> errors = asker.times_s(with_values(asker.profile(), constants, values));
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i] = std::log(errors[i] / request.times[i].time_s);
    }
    return errors;
  };
  problem.slopes = [&](const std::vector<double>& values, std::size_t index) {
    return asker.slopes(with_values(asker.profile(), constants, values), constants[index]);
  };
  problem.is_over = is_over;
  return least_squares(problem);
}

}  // namespace

std::vector<BandDeviations> fitted_bands(std::span<const FittedTime> times,
                                         double (FittedTime::*error)() const) {
  std::vector<Deviation> deviations;
  for (const FittedTime& time : times) {
    deviations.push_back({time.measured.query.size_bytes, (time.*error)()});
  }
  return by_band(deviations);
}

std::vector<std::string> at_limits(const ProfileFit& fit) {
  std::vector<std::string> reasons;
  for (const FittedConstant& one : fit.constants) {
    if (one.fitted.determined != Determined::at_limit) continue;
    reasons.push_back(fmt::format("{} ends at {:.4g}{}{}, the limit of what is possible",
                                  one.constant.name(), one.fitted.value,
                                  one.constant.unit.empty() ? "" : " ", one.constant.unit));
  }
  return reasons;
}

std::vector<std::string> why_not_met(std::span<const FittedTime> times) {
  std::vector<std::string> reasons;
  for (const BandDeviations& band : fitted_bands(times, &FittedTime::error_after)) {
    if (band.median <= kLargestMedian) continue;
    reasons.push_back(fmt::format("simulated times of messages {} are off by {:.0f} % (median)",
                                  band.band->title, 100 * band.median));
  }
  return reasons;
}

double FittedTime::error_left_out() const {
  return std::exp(std::log1p(error_after()) / (1 - std::min(leverage, kMostLeverage))) - 1;
}

double predicted_s(const Outcome& outcome) { return outcome.benchmark_s; }

ProfileFit fit_profile(const FitRequest& request, Backend& simulator, const FitStep& on_step) {
  CHECK(request.times.size() >= kMinFitTimes);
  const auto begin = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return taken.count() >= request.budget_s;
  };
  ProfileAsker asker(request, simulator, on_step);
  const std::vector<double> before_s = asker.predict(asker.profile());
  require_any_under(request, asker);
  const std::vector<ProfileConstant> constants = candidates(request, asker);
  if (constants.empty()) {
    throw Error(ErrorKind::unsupported,
                fmt::format("profile {} has no constant that these times could depend on",
                            quote(request.profile)));
  }
  const LeastSquaresFit found = fit(request, asker, constants, is_over);

  ProfileFit result;
  result.profile = asker.profile();
  for (std::size_t i = 0; i < constants.size(); ++i) {
    FittedValue fitted = found.values[i];
    if (fitted.determined == Determined::yes) fitted.value = four_digits(fitted.value);
    result.constants.push_back({constants[i], constants[i].value(asker.profile()), fitted});
    if (result.constants.back().is_changed()) constants[i].set(result.profile, fitted.value);
  }
  const std::vector<double> after_s = asker.predict(result.profile);
  for (std::size_t i = 0; i < request.times.size(); ++i) {
    const Outcome& answer = asker.answer_to(i);
    FittedTime& time = result.times.emplace_back(
        FittedTime{request.times[i],
                   answer.protocol,
                   answer.chosen.empty() ? answer.query.algorithm : answer.chosen,
                   answer.library_version,
                   {},
                   found.leverage[i],
                   before_s[i],
                   after_s[i]});
    add_traffic(request, asker, i, time.traffic);
  }
  result.scatter = found.scatter;
  result.simulations = asker.simulations();
  if (std::isfinite(request.budget_s)) result.budget = {request.budget_s, found.is_cut_short};
  return result;
}

}  // namespace espalier
