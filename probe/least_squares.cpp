// SPDX-License-Identifier: Apache-2.0
#include "probe/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/median.h"

namespace espalier {
namespace {

/// Repeated runs of a collective differ by about this much at best: estimate.
constexpr double kLeastScatter = 0.01;
/// What a right model is off by where nothing is fitted yet: estimate.
constexpr double kAssumedScatter = 0.03;
/// A constant whose change by 1 % changes no prediction by more than 0.001 %.
constexpr double kNoEffect = 1e-3;
/// Errors beyond this many times the scatter count no more than in proportion. 95 % efficiency with
/// normal errors: Huber's choice.
constexpr double kHuber = 1.345;
/// The median of |x| of a standard normal x is 1 / 1.4826.
constexpr double kMedianToDeviation = 1.4826;
/// No step changes a constant by more than this factor: slopes are those of a model with kinks.
constexpr double kLongestStep = 2;
/// Steps shorter than this, relatively, are below what any measurement resolves.
constexpr double kShortestStep = 3e-3;
constexpr int kMaxSteps = 20;
constexpr double kMaxDamping = 1e2;
/// A step that lowers the loss by less than this share is the last one.
constexpr double kLeastGain = 1e-3;
/// So many measurements of neighbouring sizes have one error of the model in common, and say no
/// more of a constant than one does: estimate.
constexpr double kAlike = 2;
/// A measurement that has this share of the squares of all slopes says alone what a constant is.
constexpr double kMostOfOne = 0.98;
/// Steps towards the likeliest constants, of which each weighs them anew.
constexpr int kMaxWeighings = 100;
/// A measurement that decides a constant alone has no error of its own; it counts this many times.
constexpr double kLeastFreedom = 0.1;
/// A constant that does not matter lowers the sum of squares by less than this many times the
/// variance in 99.9 % of cases: the quantile of chi squared with one degree of freedom.
constexpr double kSureGain = 10.8;
/// What cannot be told apart at all gets an interval that is much too wide, and no infinite one.
constexpr double kRidge = 1e-12;
/// However many errors are far off, intervals stay finite.
constexpr double kLeastShare = 0.1;
/// Two constants whose effects agree to this correlation cannot be told apart.
constexpr double kConfounded = 0.9;

double huber_weight(double error, double scatter) {
  const double size = std::abs(error) / (kHuber * scatter);
  return size <= 1 ? 1 : 1 / size;
}

double huber_loss(const std::vector<double>& errors, double scatter) {
  const double knee = kHuber * scatter;
  double sum = 0;
  for (const double error : errors) {
    const double size = std::abs(error);
    sum += size <= knee ? size * size : knee * (2 * size - knee);
  }
  return sum;
}

double scatter_of(const std::vector<double>& errors, std::size_t constants) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  const auto count = static_cast<double>(errors.size());
  const double free = std::max(1.0, count - static_cast<double>(constants));
  return std::max(kLeastScatter, kMedianToDeviation * median(sizes) * std::sqrt(count / free));
}

class Fitter {
 public:
  explicit Fitter(const LeastSquaresProblem& problem)
      : problem_(problem), constants_(problem.start), found_(problem.start.size()) {}

  LeastSquaresFit run() {
    errors_ = ask(constants_);
    for (std::size_t index = 0; index < constants_.size(); ++index) active_.push_back(index);
    take_slopes();
    while (drop_uncertain(kAssumedScatter)) {
    }
    settle();
    // Only now is it known what the measurements are off by, and with it what else they determine.
    while (add_one()) {
    }
    free_ = constants_;
    hold_back();
    return result();
  }

 private:
  std::size_t rows() const { return errors_.size(); }

  /// Fits, and takes out what turns out to be too uncertain.
  void settle() {
    do {
      approach();
    } while (fix_at_limits() || drop_uncertain(std::nullopt));
  }

  /// Takes in the first constant with which the errors become so much smaller that it must be
  /// another one than it was. False when there is none.
  bool add_one() {
    for (std::size_t index = 0; index < constants_.size(); ++index) {
      const Determined state = found_[index].determined;
      const bool was_dropped = state == Determined::uncertain || state == Determined::confounded ||
                               state == Determined::one_time;
      if (!was_dropped) continue;
      if (!is_over() && may_gain(index) && add(index)) return true;
      // It was dropped when it was not known yet what the measurements are off by.
      if (is_over()) found_[index] = {.determined = Determined::not_tried};
    }
    return false;
  }

  /// Whether the errors would become so much smaller if slopes did not change. Asking is cheap.
  bool may_gain(std::size_t index) {
    if (asked_ != constants_) errors_ = ask(constants_);
    const std::vector<double> slopes = problem_.slopes(constants_, index);
    const Eigen::Index row_count = slopes_.rows();
    Eigen::MatrixXd all(row_count, slopes_.cols() + 1);
    all << slopes_, Eigen::Map<const Eigen::VectorXd>(slopes.data(), row_count);
    const double scatter = scatter_of(errors_, active_.size());
    const Eigen::VectorXd weights = this->weights(scatter);
    const Eigen::Map<const Eigen::VectorXd> errors(errors_.data(), row_count);
    Eigen::MatrixXd normal = all.transpose() * weights.asDiagonal() * all;
    normal.diagonal().array() += kRidge * normal.trace() + std::numeric_limits<double>::min();
    const Eigen::VectorXd down = all.transpose() * weights.asDiagonal() * errors;
    return down.dot(normal.ldlt().solve(down)) > kSureGain * scatter * scatter;
  }

  bool add(std::size_t index) {
    const Fitter before = *this;
    const double scatter = scatter_of(errors_, active_.size());
    active_.insert(std::ranges::lower_bound(active_, index), index);
    found_[index] = {};
    if (active_.size() + kMinSpare <= rows()) {
      approach();
      const double gain = huber_loss(before.errors_, scatter) - huber_loss(errors_, scatter);
      if (gain > kSureGain * scatter * scatter) {
        settle();
        if (std::ranges::count(active_, index) > 0) return true;
      }
    }
    restore(before);
    return false;
  }

  /// \pre `before` is of the same problem
  void restore(const Fitter& before) {
    constants_ = before.constants_;
    found_ = before.found_;
    active_ = before.active_;
    slopes_ = before.slopes_;
    errors_ = before.errors_;
  }

  /// Keeps these columns of what is fitted.
  void keep(const std::vector<std::size_t>& columns) {
    std::vector<std::size_t> active;
    Eigen::MatrixXd slopes(slopes_.rows(), static_cast<Eigen::Index>(columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      active.push_back(active_[columns[i]]);
      slopes.col(static_cast<Eigen::Index>(i)) = slopes_.col(static_cast<Eigen::Index>(columns[i]));
    }
    active_ = std::move(active);
    slopes_ = std::move(slopes);
  }

  void drop(std::size_t column) {
    std::vector<std::size_t> kept;
    for (std::size_t other = 0; other < active_.size(); ++other) {
      if (other != column) kept.push_back(other);
    }
    keep(kept);
  }

  /// Once it is, it stays so.
  bool is_over() {
    is_cut_short_ = is_cut_short_ || (problem_.is_over && problem_.is_over());
    return is_cut_short_;
  }

  std::vector<double> ask(const std::vector<double>& constants) {
    asked_ = constants;
    return problem_.errors(constants);
  }

  bool knows_slopes() const { return slopes_.cols() == static_cast<Eigen::Index>(active_.size()); }

  /// When it is over, slopes are those of before; constants without any are taken out.
  void take_slopes() {
    if (asked_ != constants_) errors_ = ask(constants_);
    const bool knows_slopes = this->knows_slopes();
    if (!knows_slopes) {
      slopes_ = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(rows()),
                                      static_cast<Eigen::Index>(active_.size()));
    }
    for (std::size_t column = 0; column < active_.size(); ++column) {
      if (is_over()) {
        while (!knows_slopes && active_.size() > column) {
          found_[active_.back()].determined = Determined::not_tried;
          put_back(active_.size() - 1);
        }
        return;
      }
      const std::vector<double> slopes = problem_.slopes(constants_, active_[column]);
      CHECK(slopes.size() == rows());
      for (std::size_t row = 0; row < rows(); ++row) {
        slopes_(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column)) = slopes[row];
      }
    }
  }

  Eigen::VectorXd weights(double scatter) const {
    Eigen::VectorXd all(static_cast<Eigen::Index>(rows()));
    for (std::size_t row = 0; row < rows(); ++row) {
      all(static_cast<Eigen::Index>(row)) = huber_weight(errors_[row], scatter);
    }
    return all;
  }

  Eigen::MatrixXd normal_matrix(const Eigen::VectorXd& weights) const {
    return slopes_.transpose() * weights.asDiagonal() * slopes_;
  }

  /// Of the logarithms of constants with these slopes. Every measurement counts with its own error:
  /// the "sandwich" HC3 of MacKinnon and White, Journal of Econometrics 29, 1985. As far as it
  /// decides its own prediction (its leverage), that error says nothing, and the scatter of all
  /// stands for it. `assumed`: a scatter to count instead, while errors are yet to be fitted away.
  Eigen::MatrixXd covariance(const Eigen::MatrixXd& slopes, std::optional<double> assumed) const {
    const double scatter = scatter_of(errors_, 0);
    const Eigen::VectorXd weights = this->weights(scatter);
    Eigen::MatrixXd normal = slopes.transpose() * weights.asDiagonal() * slopes;
    const double ridge = kRidge * normal.trace() + std::numeric_limits<double>::min();
    normal.diagonal().array() += ridge;
    const Eigen::MatrixXd inverse =
        normal.ldlt().solve(Eigen::MatrixXd::Identity(normal.rows(), normal.cols()));
    if (assumed) return *assumed * *assumed * inverse;
    const double of_all = scatter_of(errors_, active_.size());
    Eigen::VectorXd variances(slopes.rows());
    for (Eigen::Index row = 0; row < slopes.rows(); ++row) {
      const double leverage =
          weights(row) * slopes.row(row) * inverse * slopes.row(row).transpose();
      const double error = errors_[static_cast<std::size_t>(row)] * weights(row);
      const double alone = error / std::max(1 - leverage, kLeastFreedom);
      variances(row) =
          std::max({alone * alone, leverage * of_all * of_all, kLeastScatter * kLeastScatter});
    }
    const double sharper = weights.mean() / share_within(scatter);
    return sharper * sharper *
           (inverse * (slopes.transpose() * variances.asDiagonal() * slopes) * inverse);
  }

  /// The share of errors that count in proportion: what others say of a constant does not change
  /// with it (Huber's asymptotic variance has the derivative of the loss's slope here, not
  /// weights).
  double share_within(double scatter) const {
    const auto within = std::ranges::count_if(
        errors_, [&](double error) { return huber_weight(error, scatter) == 1; });
    return std::max(kLeastShare, static_cast<double>(within) / static_cast<double>(rows()));
  }

  /// Half of the widths of the 95 % intervals of those logarithms.
  Eigen::VectorXd half_widths(const Eigen::MatrixXd& covariance) const {
    return quantile() * covariance.diagonal().cwiseSqrt();
  }

  double quantile() const {
    const auto spare = static_cast<double>(rows()) - static_cast<double>(active_.size());
    return student_quantile(std::max(spare, static_cast<double>(kMinSpare)));
  }

  /// Takes out the constant whose interval is the widest, if it is too wide and contains the value
  /// that the constant had, or if there are too few measurements; of two that cannot be told apart,
  /// the later one. False when there is nothing to be taken out.
  bool drop_uncertain(std::optional<double> assumed) {
    if (active_.empty()) return false;
    if (drop_without_effect() || drop_of_one_time()) return true;
    const double widest_allowed = std::log1p(kWidestInterval);
    const Eigen::MatrixXd covariance = this->covariance(slopes_, assumed);
    const Eigen::VectorXd halves = half_widths(covariance);
    Eigen::VectorXd doubtful = halves;
    const bool too_many = active_.size() + kMinSpare > rows();
    for (Eigen::Index at = 0; at < doubtful.size() && !too_many; ++at) {
      const std::size_t index = active_[static_cast<std::size_t>(at)];
      const double moved = std::abs(std::log(constants_[index] / problem_.start[index]));
      if (halves(at) <= widest_allowed || moved > halves(at)) doubtful(at) = 0;
    }
    Eigen::Index column = 0;
    if (doubtful.maxCoeff(&column) <= 0) return false;

    std::optional<Eigen::Index> twin = twin_of(covariance, column);
    if (twin && *twin > column && is_determined_without(column, *twin, assumed)) {
      std::swap(column, *twin);
    }
    FittedValue& found = found_[active_[static_cast<std::size_t>(column)]];
    const Eigen::VectorXd alone =
        half_widths(this->covariance(Eigen::MatrixXd(slopes_.col(column)), assumed));
    found.determined = Determined::uncertain;
    if (twin && alone(0) <= widest_allowed) {
      found.determined = Determined::confounded;
      found.confounded_with = active_[static_cast<std::size_t>(*twin)];
    }
    put_back(static_cast<std::size_t>(column));
    return true;
  }

  /// Whether a constant would be determined if another one were known.
  bool is_determined_without(Eigen::Index column, Eigen::Index other,
                             std::optional<double> assumed) const {
    Eigen::MatrixXd slopes(slopes_.rows(), slopes_.cols() - 1);
    slopes << slopes_.leftCols(other), slopes_.rightCols(slopes_.cols() - other - 1);
    const Eigen::Index at = column < other ? column : column - 1;
    return half_widths(covariance(slopes, assumed))(at) <= std::log1p(kWidestInterval);
  }

  /// What no prediction depends on any longer.
  bool drop_without_effect() {
    for (std::size_t column = 0; column < active_.size(); ++column) {
      const auto slopes = slopes_.col(static_cast<Eigen::Index>(column));
      if (slopes.cwiseAbs().maxCoeff() >= kNoEffect) continue;
      found_[active_[column]].determined = Determined::no_effect;
      put_back(column);
      return true;
    }
    return false;
  }

  /// A constant on which a single measurement depends: that one would meet its prediction whatever
  /// it is off by.
  bool drop_of_one_time() {
    for (std::size_t column = active_.size(); column-- > 0;) {
      const Eigen::VectorXd squares = slopes_.col(static_cast<Eigen::Index>(column)).cwiseAbs2();
      if (squares.maxCoeff() < kMostOfOne * squares.sum()) continue;
      found_[active_[column]].determined = Determined::one_time;
      put_back(column);
      return true;
    }
    return false;
  }

  /// Gives a constant the value it had, and takes it out.
  void put_back(std::size_t column) {
    const std::size_t index = active_[column];
    const double change = std::log(problem_.start[index] / constants_[index]);
    const bool moved = change != 0;
    constants_[index] = problem_.start[index];
    if (moved && is_cut_short_) {  // no time to ask
      for (std::size_t row = 0; row < rows(); ++row) {
        errors_[row] +=
            change * slopes_(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column));
      }
    }
    drop(column);
    if (moved && !is_cut_short_) errors_ = ask(constants_);
  }

  /// The constant with the same effect as that of `column`, if there is one.
  static std::optional<Eigen::Index> twin_of(const Eigen::MatrixXd& covariance,
                                             Eigen::Index column) {
    double largest = kConfounded;
    std::optional<Eigen::Index> twin;
    for (Eigen::Index other = 0; other < covariance.cols(); ++other) {
      if (other == column) continue;
      const double deviations = std::sqrt(covariance(column, column) * covariance(other, other));
      const double correlation = std::abs(covariance(column, other)) / deviations;
      if (correlation < largest) continue;
      largest = correlation;
      twin = other;
    }
    return twin;
  }

  /// Levenberg and Marquardt's steps until they are short. When it is over, one more, once, with
  /// the slopes that are known.
  void approach() {
    double damping = 1e-3;
    for (int step = 0; step < kMaxSteps && !active_.empty() && !took_last_; ++step) {
      took_last_ = is_over();
      if (!took_last_ || !knows_slopes()) take_slopes();
      if (active_.empty()) return;
      const double scatter = scatter_of(errors_, active_.size());
      double length = 0;
      const double loss = huber_loss(errors_, scatter);
      while (damping <= kMaxDamping && !try_step(scatter, damping, length)) damping *= 10;
      if (damping > kMaxDamping || length < kShortestStep) return;
      if (huber_loss(errors_, scatter) > (1 - kLeastGain) * loss) return;
      damping = std::max(damping / 10, 1e-9);
    }
  }

  /// Takes the step with this damping if that lowers the loss. `length`: the largest relative
  /// change of a constant.
  bool try_step(double scatter, double damping, double& length) {
    const Eigen::VectorXd weights = this->weights(scatter);
    Eigen::MatrixXd normal = normal_matrix(weights);
    normal.diagonal() *= 1 + damping;
    const Eigen::Map<const Eigen::VectorXd> errors(errors_.data(),
                                                   static_cast<Eigen::Index>(rows()));
    const Eigen::VectorXd down = -(slopes_.transpose() * weights.asDiagonal() * errors);
    const Eigen::VectorXd step = normal.ldlt().solve(down);
    std::vector<double> moved = constants_;
    length = 0;
    const double longest = std::log(kLongestStep);
    for (std::size_t column = 0; column < active_.size(); ++column) {
      const std::size_t index = active_[column];
      const double change = std::clamp(step(static_cast<Eigen::Index>(column)), -longest, longest);
      moved[index] =
          std::clamp(moved[index] * std::exp(change), problem_.lower[index], problem_.upper[index]);
      length = std::max(length, std::abs(std::log(moved[index] / constants_[index])));
    }
    if (length < kShortestStep) return true;  // there already
    const std::vector<double> errors_there = ask(moved);
    if (huber_loss(errors_there, scatter) >= huber_loss(errors_, scatter)) return false;
    constants_ = moved;
    errors_ = errors_there;
    return true;
  }

  /// Takes out what has come to a limit, which it keeps. False when nothing has.
  bool fix_at_limits() {
    constexpr double kNear = 1e-6;
    for (std::size_t column = 0; column < active_.size(); ++column) {
      const std::size_t index = active_[column];
      const double value = constants_[index];
      if (value > problem_.lower[index] * (1 + kNear) &&
          value < problem_.upper[index] * (1 - kNear)) {
        continue;
      }
      found_[index].determined = Determined::at_limit;
      drop(column);
      return true;
    }
    return false;
  }

  /// The weights of what is known of the active constants, beside measurements of one variance: of
  /// Geman and McClure's loss, which a change of many times the spread does not enlarge any more
  /// (Bulletin of the International Statistical Institute 52, 1987).
  Eigen::VectorXd prior_weights(const Eigen::VectorXd& moved, double variance) const {
    Eigen::VectorXd all = Eigen::VectorXd::Zero(moved.size());
    for (Eigen::Index at = 0; at < moved.size() && !problem_.spread.empty(); ++at) {
      const double spread = problem_.spread[active_[static_cast<std::size_t>(at)]];
      if (spread <= 0) continue;
      const double size = moved(at) / spread;
      all(at) = kSureGain * variance / std::pow(spread * (1 + size * size), 2);
    }
    return all;
  }

  double variance_alike() const {
    const double scatter = scatter_of(errors_, active_.size());
    return kAlike * scatter * scatter;
  }

  /// What the active constants have moved by.
  Eigen::VectorXd moved() const {
    Eigen::VectorXd all(static_cast<Eigen::Index>(active_.size()));
    for (std::size_t at = 0; at < active_.size(); ++at) {
      const std::size_t index = active_[at];
      all(static_cast<Eigen::Index>(at)) = std::log(constants_[index] / problem_.start[index]);
    }
    return all;
  }

  /// The likeliest logarithms of changes that weighing leads to from these. `free`: those by the
  /// measurements alone, by whose slopes it goes.
  Eigen::VectorXd likeliest_from(Eigen::VectorXd changes, const Eigen::MatrixXd& normal,
                                 const Eigen::VectorXd& free) const {
    for (int weighing = 0; weighing < kMaxWeighings; ++weighing) {
      Eigen::MatrixXd both = normal;
      both.diagonal() += prior_weights(changes, variance_alike());
      changes = both.ldlt().solve(normal * free);
    }
    return changes;
  }

  /// The sum of squares with such changes, in variances, and what is known of the constants.
  double cost_of(const Eigen::VectorXd& changes, const Eigen::MatrixXd& normal,
                 const Eigen::VectorXd& free) const {
    double cost = (changes - free).dot(normal * (changes - free)) / variance_alike();
    for (Eigen::Index at = 0; at < changes.size(); ++at) {
      const double spread = problem_.spread[active_[static_cast<std::size_t>(at)]];
      const double square = spread > 0 ? std::pow(changes(at) / spread, 2) : 0;
      cost += kSureGain * square / (1 + square);
    }
    return cost;
  }

  /// Takes constants back towards the values they had, to the likeliest place. There may be several
  /// that are likelier than those around them: some constants where the measurements have them, the
  /// others nearly where they were.
  void hold_back() {
    if (active_.empty() || !knows_slopes() || problem_.spread.empty()) return;
    Eigen::MatrixXd normal = normal_matrix(weights(scatter_of(errors_, active_.size())));
    normal.diagonal().array() += kRidge * normal.trace() + std::numeric_limits<double>::min();
    const Eigen::VectorXd free = moved();
    Eigen::VectorXd held = likeliest_from(free, normal, free);
    for (Eigen::Index at = 0; at < held.size(); ++at) {
      Eigen::VectorXd other = held;
      other(at) = 0;
      other = likeliest_from(other, normal, free);
      if (cost_of(other, normal, free) < cost_of(held, normal, free)) held = other;
    }
    for (std::size_t at = 0; at < active_.size(); ++at) {
      const std::size_t index = active_[at];
      const double value = problem_.start[index] * std::exp(held(static_cast<Eigen::Index>(at)));
      constants_[index] = std::clamp(value, problem_.lower[index], problem_.upper[index]);
    }
    if (!is_cut_short_) {
      errors_ = ask(constants_);
      return;
    }
    const Eigen::VectorXd change = slopes_ * (held - free);
    for (std::size_t row = 0; row < rows(); ++row) {
      errors_[row] += change(static_cast<Eigen::Index>(row));
    }
  }

  std::vector<double> leverages() const {
    std::vector<double> all(rows(), 0);
    if (active_.empty() || !knows_slopes()) return all;
    const Eigen::VectorXd weights = this->weights(scatter_of(errors_, active_.size()));
    Eigen::MatrixXd normal = normal_matrix(weights);
    normal.diagonal() += prior_weights(moved(), variance_alike());
    normal.diagonal().array() += kRidge * normal.trace() + std::numeric_limits<double>::min();
    const Eigen::LDLT<Eigen::MatrixXd> solver = normal.ldlt();
    for (Eigen::Index row = 0; row < slopes_.rows(); ++row) {
      const Eigen::VectorXd slopes = slopes_.row(row).transpose();
      all[static_cast<std::size_t>(row)] =
          std::clamp(weights(row) * slopes.dot(solver.solve(slopes)), 0.0, 1.0);
    }
    return all;
  }

  LeastSquaresFit result() {
    LeastSquaresFit fit;
    fit.leverage = leverages();
    fit.scatter = scatter_of(errors_, active_.size());
    fit.is_cut_short = is_cut_short_;
    if (!active_.empty()) {
      const Eigen::VectorXd halves = half_widths(covariance(slopes_, std::nullopt));
      for (std::size_t column = 0; column < active_.size(); ++column) {
        const double half = halves(static_cast<Eigen::Index>(column));
        const std::size_t index = active_[column];
        FittedValue& found = found_[index];
        found.determined = Determined::yes;
        found.low = std::min(constants_[index], free_[index]) * std::exp(-half);
        found.high = std::max(constants_[index], free_[index]) * std::exp(half);
      }
    }
    for (std::size_t index = 0; index < constants_.size(); ++index) {
      found_[index].value = constants_[index];
    }
    fit.values = found_;
    fit.errors = errors_;
    return fit;
  }

  const LeastSquaresProblem& problem_;
  std::vector<double> constants_;
  std::vector<FittedValue> found_;
  std::vector<double> free_;         ///< `constants_` by the measurements alone
  std::vector<double> asked_;        ///< constants whose errors were asked last
  std::vector<double> errors_;       ///< with `constants_`
  std::vector<std::size_t> active_;  ///< constants that are being fitted
  Eigen::MatrixXd slopes_;           ///< of the active ones, where slopes were taken last
  bool is_cut_short_ = false;
  bool took_last_ = false;  ///< the step that is taken although it is over
};

}  // namespace

LeastSquaresFit least_squares(const LeastSquaresProblem& problem) {
  CHECK(!problem.start.empty());
  CHECK(problem.lower.size() == problem.start.size());
  CHECK(problem.upper.size() == problem.start.size());
  return Fitter(problem).run();
}

double student_quantile(double degrees) {
  CHECK(degrees >= 3);
  // Expansion around the normal quantile: Abramowitz and Stegun, Handbook of Mathematical
  // Functions, 26.7.5.
  constexpr double z = 1.959963984540054;
  constexpr double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
  constexpr double g1 = (z3 + z) / 4;
  constexpr double g2 = (5 * z5 + 16 * z3 + 3 * z) / 96;
  constexpr double g3 = (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384;
  constexpr double g4 = (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / 92160;
  const double one = 1 / degrees;
  return z + one * (g1 + one * (g2 + one * (g3 + one * g4)));
}

}  // namespace espalier
