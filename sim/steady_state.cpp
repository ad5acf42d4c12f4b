// SPDX-License-Identifier: Apache-2.0
#include "sim/steady_state.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/interruption.h"
#include "ir/lane_numbers.h"
#include "ir/rounds.h"

namespace espalier {
namespace {

/// Dates that differ by less than this part of the time are the same: sums of thousands of
/// roundings. What is taken for the same from round to round may grow with every round left out.
constexpr double kSameTime = 1e-12;
/// And periods that differ by less than this part of them, roundings of dates aside.
constexpr double kSamePeriod = 1e-11;
constexpr double kRounding = 1e-15;
/// Rounds after which all may repeat itself, at most: blocks take turns, and trees.
constexpr OpId kLongestPeriod = 12;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// The lanes of a program that goes through rounds. \pre what comes after these is on their lanes
class LanesOfRounds {
 public:
  LanesOfRounds(const Program& program, const Rounds& rounds) : rounds_(rounds) {
    LaneNumbers numbers;
    const auto add = [&](const Op& op) { lane_of_.push_back(numbers.number(op.at, op.lane)); };
    for (OpId id = 0; id < rounds.ops; ++id) add(program.ops[id]);
    size_ = numbers.size();
    for (OpId id = rounds.end(); id < program.ops.size(); ++id) add(program.ops[id]);
    is_all_ = numbers.size() == size_;
  }

  std::size_t size() const { return size_; }
  /// Whether what comes after the rounds is on their lanes: else it would not wait for them.
  bool is_all() const { return is_all_; }
  std::uint32_t of(OpId id) const {
    return lane_of_[id < rounds_.end() ? id % rounds_.ops : id - rounds_.end() + rounds_.ops];
  }

 private:
  const Rounds& rounds_;
  std::vector<std::uint32_t> lane_of_;  ///< by op of a round, and of what comes after them all
  std::size_t size_ = 0;
  bool is_all_ = true;
};

/// When the ops of a program ran.
class Dates {
 public:
  /// Refers to its arguments.
  Dates(const OpHistory& history, const std::vector<OpId>* number)
      : history_(history), number_(number) {}
  OpId in_history(OpId id) const { return number_ == nullptr ? id : (*number_)[id]; }
  double start_s(OpId id) const { return history_.ops[in_history(id)].start_s; }
  double end_s(OpId id) const { return history_.ends[in_history(id)].end_s; }
  double seen_s(OpId id) const { return history_.ends[in_history(id)].seen_s; }

 private:
  const OpHistory& history_;
  const std::vector<OpId>* const number_;
};

/// How fast lanes could use each resource.
class ResourceUses {
 public:
  /// What a lane may use at once. Lanes come one after the other.
  void add(OpFlows& flows, const FlowList& list, std::uint32_t lane, std::uint32_t team) {
    of_op_.clear();
    for (const FlowList::Flow& flow : list.flows) {
      const double bytes_per_s = narrowest_bytes_per_s(flows, list, flow);
      for (const ResourceId one : list.resources_of(flow)) of_op_.emplace_back(one, bytes_per_s);
    }
    std::ranges::sort(of_op_);
    for (std::size_t i = 0; i < of_op_.size();) {
      const ResourceId one = of_op_[i].first;
      double bytes_per_s = 0;
      for (; i < of_op_.size() && of_op_[i].first == one; ++i) bytes_per_s += of_op_[i].second;
      if (one >= uses_.size()) uses_.resize(one + 1);
      Use& use = uses_[one];
      if (use.lane == kNoLane) use.team = team;
      use.is_shared = use.is_shared || use.team != team;
      if (use.lane != lane) use.before_bytes_per_s += std::exchange(use.bytes_per_s, 0);
      use.lane = lane;
      use.bytes_per_s = std::max(use.bytes_per_s, bytes_per_s);
    }
  }

  /// Whether what teams use together has room for all of them.
  bool have_room(const OpFlows& flows) const {
    for (ResourceId one = 0; one < uses_.size(); ++one) {
      const Use& use = uses_[one];
      const double most = flows.bytes_per_s(one) * (1 + kSameTime);
      if (use.is_shared && use.before_bytes_per_s + use.bytes_per_s > most) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kNoLane = ~std::uint32_t{0};
  struct Use {
    std::uint32_t lane = kNoLane;   ///< the latest
    double bytes_per_s = 0;         ///< of its ops, the most
    double before_bytes_per_s = 0;  ///< of all lanes before
    std::uint32_t team = 0;         ///< of the first
    bool is_shared = false;         ///< by several teams
  };
  std::vector<Use> uses_;
  std::vector<std::pair<ResourceId, double>> of_op_;
};

/// From which round on each op is so much later than the one of the same lane so many `rounds`
/// before.
struct SteadyState {
  OpId from = 0;
  OpId rounds = 1;
  std::vector<double> period_s;  ///< by lane
};

/// Looks for it. Lanes of one period are a team: what happens to them follows from what they do,
/// where teams do not slow each other down.
class SteadySearch {
 public:
  /// Refers to its arguments.
  SteadySearch(const Simulation& of, const LanesOfRounds& lanes, const Dates& dates,
               MachineFlows& of_ops, OpFlows& flows)
      : of_(of),
        program_(of.program),
        rounds_(of.names.rounds()),
        lanes_(lanes),
        dates_(dates),
        of_ops_(of_ops),
        flows_(flows) {
    double end_s = 0;
    for (OpId id = 0; id < program_.ops.size(); ++id) end_s = std::max(end_s, dates.seen_s(id));
    same_s_ = kSameTime * end_s;
    OpId id = rounds_.end();
    while (id > rounds_.ops && is_settled(id - 1)) --id;
    settled_ = (id - 1) / rounds_.ops;
  }

  /// One that repeats itself after so many rounds.
  std::optional<SteadyState> find(OpId rounds) {
    if (!find_periods(rounds)) return std::nullopt;
    find_teams();
    find_what_is_under_way();
    OpId from = std::max(first_round_again(rounds), settled_ + rounds);
    // What let the first of these ops start may have happened before all came to repeat itself,
    // such as the beginning: those of a period later are let start in the same way each time.
    if (of_.options.details) from += rounds;
    if (from >= rounds_.count - 1 || !is_over_before(from)) return std::nullopt;
    const bool is_apart =
        teams_.size() == 1 || (!of_.blocks.shares() && waits_in_good_time() && keep_apart());
    if (!is_apart) return std::nullopt;
    return SteadyState{from, rounds, period_s_};
  }

 private:
  struct Team {
    double period_s = 0;
    double date_s = kNever;   ///< when the first of them begins the last round: from there on, they
                              ///< may know that none follows
    double since_s = kNever;  ///< since when something was under way that is at that date
  };

  Team& team(OpId id) { return teams_[team_of_[lanes_.of(id)]]; }
  bool is_same(double one_s, double other_s) const { return std::abs(one_s - other_s) <= same_s_; }
  bool is_same_period(double one_s, double other_s) const {
    return std::abs(one_s - other_s) <= kSamePeriod * one_s + kRounding / kSameTime * same_s_;
  }
  OpId last_round() const { return rounds_.end() - rounds_.ops; }
  /// A round that lanes mostly go through before any knows the end: else periods are not found
  /// again.
  OpId late_round() const { return (rounds_.count - 1 - rounds_.count / 4) * rounds_.ops; }

  /// Whether an op costs what that of the round before costs, and those of later rounds will.
  bool is_settled(OpId id) const {
    check_interruption_at(id);
    const Op& op = program_.ops[id];
    const Op& before = program_.ops[id - rounds_.ops];
    return of_ops_.is_settled(before) && of_ops_.turn_of(op) == of_ops_.turn_of(before);
  }

  bool find_periods(OpId rounds) {
    if (late_round() < rounds * rounds_.ops) return false;
    constexpr double kUnknown = -1;
    period_s_.assign(lanes_.size(), kUnknown);
    for (OpId id = late_round(); id < late_round() + rounds_.ops; ++id) {
      const double period_s = dates_.start_s(id) - dates_.start_s(id - rounds * rounds_.ops);
      double& known_s = period_s_[lanes_.of(id)];
      if (known_s == kUnknown) known_s = period_s;
      if (!is_same_period(known_s, period_s)) return false;
    }
    return true;
  }

  void find_teams() {
    std::vector<std::uint32_t> order(lanes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::uint32_t lane) { return period_s_[lane]; });
    teams_.clear();
    team_of_.resize(lanes_.size());
    for (const std::uint32_t lane : order) {
      const bool is_next =
          !teams_.empty() && is_same_period(teams_.back().period_s, period_s_[lane]);
      if (!is_next) teams_.push_back({.period_s = period_s_[lane]});
      team_of_[lane] = static_cast<std::uint32_t>(teams_.size() - 1);
    }
  }

  void find_what_is_under_way() {
    for (OpId id = last_round(); id < program_.ops.size(); ++id) {
      team(id).date_s = std::min(team(id).date_s, dates_.start_s(id));
    }
    for (Team& one : teams_) one.since_s = one.date_s;
    for (OpId id = 0; id < rounds_.end(); ++id) {
      Team& of = team(id);
      const bool is_under_way = dates_.start_s(id) < of.date_s && dates_.seen_s(id) > of.date_s;
      if (is_under_way) of.since_s = std::min(of.since_s, dates_.start_s(id));
    }
  }

  /// From this round on, all that happens up to its team's date happens so many rounds later again.
  OpId first_round_again(OpId rounds) {
    const auto is_again = [&](OpId id) {
      check_interruption_at(id);
      const OpId before = id - rounds * rounds_.ops;
      const Team& of = team(id);
      const auto is_later = [&](double one_s, double before_s) {
        return is_same(std::min(one_s, of.date_s), std::min(before_s + of.period_s, of.date_s));
      };
      return is_later(dates_.start_s(id), dates_.start_s(before)) &&
             is_later(dates_.end_s(id), dates_.end_s(before)) &&
             is_later(dates_.seen_s(id), dates_.seen_s(before));
    };
    OpId id = rounds_.end();
    while (id > rounds * rounds_.ops && is_again(id - 1)) --id;
    return (id + rounds_.ops - 1) / rounds_.ops;
  }

  /// Whether nothing of earlier rounds is under way a period before what is at the date has begun.
  bool is_over_before(OpId round) {
    for (OpId id = 0; id < round * rounds_.ops; ++id) {
      const Team& of = team(id);
      if (dates_.seen_s(id) > of.since_s - of.period_s + same_s_) return false;
    }
    return true;
  }

  /// Whether no lane is held up by another team: what it waits for comes from a faster one, which
  /// is further ahead of it with every round, and was there before it was needed. (Results that are
  /// under way to an op without a dependency are those of ops before what it depends on.)
  bool waits_in_good_time() {
    const auto waits_so = [&](OpId id) {
      check_interruption_at(id);
      bool is_so = true;
      for (const OpId earlier : program_.dependencies_of(program_.ops[id])) {
        if (&team(id) == &team(earlier)) continue;
        is_so = is_so && team(id).period_s > team(earlier).period_s &&
                dates_.seen_s(earlier) < dates_.start_s(id) - same_s_;
      }
      // Who takes steps of a FIFO waits for who gives them back.
      of_.sent().for_each_read(id,
                               [&](OpId sender) { is_so = is_so && &team(id) == &team(sender); });
      return is_so;
    };
    for (OpId id = late_round(); id < late_round() + rounds_.ops; ++id) {
      if (!waits_so(id)) return false;
    }
    for (OpId id = last_round(); id < program_.ops.size(); ++id) {
      if (!waits_so(id)) return false;
    }
    return true;
  }

  /// Whether teams never slow each other down: rounds of one that are left out may run beside all
  /// that another does, from its first ops to what it ends with.
  bool keep_apart() {
    std::vector<std::pair<std::uint32_t, OpId>> ops;  // by lane, one of all that are alike
    std::vector<bool> is_known(program_.ops.size());
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      check_interruption_at(id);
      const OpId known = dates_.in_history(id);
      if (!is_known[known]) ops.emplace_back(lanes_.of(id), id);
      is_known[known] = true;
    }
    std::ranges::sort(ops);
    ResourceUses uses;
    for (const auto& [lane, id] : ops) {
      const auto add = [&, lane = lane](const FlowList& list) {
        uses.add(flows_, list, lane, team_of_[lane]);
        of_ops_.again(list, -1);  // it does not start
      };
      const OpId one = dates_.in_history(id);
      add(flows_.begin(one));
      if (flows_.reduces_separately(one)) add(flows_.reduce(one));
    }
    return uses.have_room(flows_);
  }

  const Simulation& of_;
  const Program& program_;
  const Rounds& rounds_;
  const LanesOfRounds& lanes_;
  const Dates& dates_;
  MachineFlows& of_ops_;
  OpFlows& flows_;
  double same_s_ = 0;
  OpId settled_ = 0;  ///< the first round of which all ops are, and those that follow
  // For a number of rounds.
  std::vector<double> period_s_;        ///< by lane
  std::vector<std::uint32_t> team_of_;  ///< by lane
  std::vector<Team> teams_;
};

/// All that happens in the rounds of the steady state, and after them. False where an op of the
/// history stands for ops that are moved unlike each other.
bool move_on(const Simulation& of, const LanesOfRounds& lanes, const Dates& dates,
             const SteadyState& steady, OpHistory& history) {
  const OpId begin = steady.from * of.names.rounds().ops;
  const std::int64_t times = of.options.more_rounds / steady.rounds;
  constexpr double kUnknown = -1;
  std::vector<double> moved_s(history.ops.size(), kUnknown);
  for (OpId id = 0; id < of.program.ops.size(); ++id) {
    const double by_s = id < begin ? 0 : static_cast<double>(times) * steady.period_s[lanes.of(id)];
    double& known_s = moved_s[dates.in_history(id)];
    if (known_s != kUnknown && std::abs(known_s - by_s) > kSameTime * by_s) return false;
    known_s = by_s;
  }
  history.last_seen_s = 0;
  for (OpId id = 0; id < history.ops.size(); ++id) {
    history.ops[id].start_s += moved_s[id];
    history.ends[id].end_s += moved_s[id];
    history.ends[id].seen_s += moved_s[id];
    const double seen_s = history.ends[id].seen_s;
    if (seen_s > history.last_seen_s * (1 + kSameTime)) history.last = id;
    history.last_seen_s = std::max(history.last_seen_s, seen_s);
  }
  return true;
}

/// What so many rounds more move.
void count_flows(const Simulation& of, const Dates& dates, MachineFlows& of_ops, OpFlows& flows,
                 OpHistory& history) {
  const Rounds& rounds = of.names.rounds();
  const std::int64_t more = of.options.more_rounds;
  const auto again = [&](const FlowList& once) {
    of_ops.again(once, static_cast<double>(more - 1));
  };
  std::vector<bool> is_counted(history.ops.size(), false);
  for (OpId id = rounds.end() - rounds.ops; id < rounds.end(); ++id) {
    for_each_transfer(of.program, of.program.ops[id],
                      [&](PlaceId, PlaceId) { history.transfers += more; });
    const OpId known = dates.in_history(id);
    if (is_counted[known]) continue;
    is_counted[known] = true;
    again(flows.begin(known));
    if (flows.reduces_separately(known)) again(flows.reduce(known));
  }
}

/// Of a history of all ops of the program.
RepeatedRounds repeated(const Simulation& of, const LanesOfRounds& lanes,
                        const SteadyState& steady) {
  const Rounds& rounds = of.names.rounds();
  RepeatedRounds again;
  again.begin = (steady.from - steady.rounds) * rounds.ops;
  again.end = steady.from * rounds.ops;
  again.rounds = steady.rounds;
  again.times = of.options.more_rounds / steady.rounds;
  again.units = steady.rounds * rounds.units;
  for (OpId id = again.begin; id < again.end; ++id) {
    again.period_s.push_back(steady.period_s[lanes.of(id)]);
  }
  return again;
}

/// Where they are named, ops of all rounds have numbers.
bool can_be_numbered(const Simulation& of) {
  if (!of.options.details) return true;
  const double more = static_cast<double>(of.options.more_rounds) * of.names.rounds().ops;
  return static_cast<double>(of.program.ops.size()) + more < std::numeric_limits<OpId>::max();
}

}  // namespace

bool count_in_rounds(const Simulation& of, const std::vector<OpId>* number, MachineFlows& of_ops,
                     OpFlows& flows, OpHistory& history) {
  const std::int64_t more = of.options.more_rounds;
  if (more == 0) return true;
  const bool is_possible = of.names.rounds().count > 0 && !of.names.all_groups() &&
                           !of.program.fold.shares_ranks() && can_be_numbered(of) &&
                           !of.target.router->topology().has_working_sets();
  if (!is_possible) return false;
  const LanesOfRounds lanes(of.program, of.names.rounds());
  if (!lanes.is_all()) return false;
  const Dates dates(history, number);
  SteadySearch search(of, lanes, dates, of_ops, flows);
  for (OpId rounds = 1; rounds <= kLongestPeriod; ++rounds) {
    const auto found = more % rounds == 0 ? search.find(rounds) : std::nullopt;
    if (!found) continue;
    if (!move_on(of, lanes, dates, *found, history)) return false;
    count_flows(of, dates, of_ops, flows, history);
    const bool has_all_ops = number == nullptr;
    if (has_all_ops && of.options.details) history.repeated = repeated(of, lanes, *found);
    return true;
  }
  return false;
}

}  // namespace espalier
