// SPDX-License-Identifier: Apache-2.0
#include "scenarios/chunk_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/activity.h"
#include "core/time_limit.h"

namespace espalier {

namespace {

/// No more pieces of the longest transfer than this, and no smaller ones. Halves are tried whatever
/// their size: ops that share a link, of which every other one begins with half a piece, pipeline
/// once they are cut at all, and a message would else take longer than one twice as large.
constexpr int kMaxPieces = 2048;
constexpr double kSmallestPieceBytes = 4096;
constexpr int kAnySizePieces = 2;
/// The search ends where two doublings of the pieces in a row did not take less than this of the
/// least time. Halves are no reason to end it: that few pieces hardly pipeline.
constexpr double kWorthwhile = 0.998;
/// Where twice as many pieces took less by no more than 0.4 %, twice as many again are not
/// tried if earlier times say that they take longer by more than 0.1 %: to find out takes as
/// long as all before together. Where it takes some 50 ms or more they must promise to take less by
/// 0.1 %.
constexpr double kFlat = 0.004;
constexpr double kNoFaster = 1.001;
constexpr double kHardlyFaster = 0.999;
constexpr std::int64_t kMuchWork = 4'000'000;
/// So many pieces pipeline.
constexpr int kManyPieces = 16;
/// Pieces up to which nothing has to be fast enough to be of interest.
constexpr int kPatience = 32;
/// Gains halve with each doubling, so that all to come together are about the latest one; of many
/// pieces they are less. Times are out of reach where so many times that is not enough, of this
/// many pieces or more.
constexpr double kMostGains = 4;
constexpr double kMostGainsOfMany = 2;
constexpr int kFewPieces = 8;
/// Sums of bytes in another order differ by less than this part of them.
constexpr double kRounding = 1e-9;
/// Ops of a program that is cut, when the chunk size is searched for and when it was asked for.
constexpr std::int64_t kMaxCutOps = 4'000'000;
constexpr std::int64_t kMaxAskedOps = 500'000;
/// Pieces of every op that may be asked for nevertheless.
constexpr std::int64_t kMaxAskedPieces = 4;

/// What twice as many pieces would take, from the times of the latest three numbers of pieces, each
/// twice the one before: T(P) = A + B / P + C P, a pipeline's filling, which gets shorter, and the
/// start-up of pieces, of which there are more.
double next_time_s(double first_s, double second_s, double third_s) {
  // In units of the latest P: T(P/2) - T(P) = B - C / 2, T(P/4) - T(P/2) = 2 B - C / 4.
  const double later_s = second_s - third_s;
  const double earlier_s = first_s - second_s;
  const double per_piece_s = (earlier_s - 2 * later_s) / 0.75;  // C
  const double filling_s = later_s + per_piece_s / 2;           // B
  return third_s - filling_s / 2 + per_piece_s;
}

/// How fast this computer simulates, by the clock of the time limit.
class Pace {
 public:
  /// A simulation begins.
  void begin() { left_before_s_ = time_left_s(); }
  /// It has ended, after so much work.
  void end(std::int64_t work) {
    const double took_s = left_before_s_ - time_left_s();
    if (took_s > 0 && work > 0) work_per_s_ = static_cast<double>(work) / took_s;
  }
  /// Work that can be done in the time that is left: any, where there is no limit or nothing has
  /// been learnt.
  std::int64_t work_left() const {
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
    const double work = time_left_s() * work_per_s_;
    return work < static_cast<double>(kAny) ? static_cast<std::int64_t>(work) : kAny;
  }

 private:
  double left_before_s_ = 0;
  double work_per_s_ = std::numeric_limits<double>::infinity();
};

/// Whether the curve is flat by now, and goes on to more than `of_latest` times the latest time.
/// \pre that is the best
bool has_turned(const std::vector<double>& times_s, double of_latest) {
  const std::size_t known = times_s.size();
  if (known < 3) return false;
  const double before_s = times_s[known - 2];
  const double latest_s = times_s[known - 1];
  if (latest_s > before_s || before_s - latest_s > kFlat * latest_s) return false;
  return next_time_s(times_s[known - 3], before_s, latest_s) > latest_s * of_latest;
}

double longest_bytes_of(const ChunkQuestion& question) {
  return static_cast<double>(question.message_bytes) * question.longest_share;
}

/// For which the busiest of what transfers use is busy, however they are cut: pieces carry the same
/// bytes. Less by roundings.
double least_time_s(const RunReport& whole) { return whole.simulated->busiest_s * (1 - kRounding); }

/// What more pieces are not faster than, after times of half as many and of as many. Of few pieces
/// that is not known.
double reached_s(double before_s, double latest_s, int pieces) {
  if (pieces < kFewPieces) return 0;
  const double most_gains = pieces > kManyPieces ? kMostGainsOfMany : kMostGains;
  return latest_s - most_gains * (before_s - latest_s);
}

std::string note_not_tried(std::int64_t piece_bytes, bool is_late) {
  if (is_late) note_cut_short();
  return is_late ? chunk_note_no_time(piece_bytes) : chunk_note_too_costly(piece_bytes);
}

/// \pre the longest transfer is too short for many pieces. A message that is small itself needs no
/// explanation.
std::string why_not_cut(const ChunkQuestion& question) {
  const bool is_small = static_cast<double>(question.message_bytes) < 2 * kSmallestPieceBytes;
  if (is_small || question.longest_share <= 0) return "";
  return fmt::format("not cut: already in {:.0f} pieces", 1 / question.longest_share);
}

}  // namespace

std::string chunk_note_too_costly(std::int64_t piece_bytes) {
  return fmt::format("chunks of {} bytes or less were not tried, to save time", piece_bytes);
}

std::string chunk_note_no_time(std::int64_t piece_bytes) {
  return fmt::format("chunks of {} bytes or less were not tried: the time ran out", piece_bytes);
}

std::int64_t max_ops_when_cut(std::int64_t uncut_ops, bool is_asked) {
  if (!is_asked) return kMaxCutOps;
  return std::clamp(kMaxAskedPieces * uncut_ops, kMaxAskedOps, kMaxCutOps);
}

std::string chunk_note_raised(std::int64_t asked_bytes, std::int64_t used_bytes,
                              std::int64_t max_ops) {
  if (used_bytes == 0) {
    return fmt::format("not cut: pieces of {} bytes would make more than {} ops", asked_bytes,
                       max_ops);
  }
  return fmt::format("raised from {} to {} bytes: smaller ones would make more than {} ops",
                     asked_bytes, used_bytes, max_ops);
}

bool is_cuttable(const ChunkQuestion& question) {
  return longest_bytes_of(question) >= kAnySizePieces;
}

ChunkChoice search_chunk(const ChunkQuestion& question, const SimulatePieces& simulate) {
  const double longest_bytes = longest_bytes_of(question);
  const Activity activity("simulating chunk sizes");
  Pace pace;
  pace.begin();
  const RunReport whole = simulate(0, {});  // to its end, to know how busy links are
  pace.end(whole.simulated->work);
  const bool is_known = whole.simulated->end == SimEnd::finished;
  ChunkChoice best{0, {}, std::numeric_limits<double>::infinity(), 0};
  if (is_known && whole.time_s <= question.at_most_s) {
    best = {0, {}, whole.time_s, whole.algbw_gbps()};
  }
  const double too_slow_s = std::min(question.at_most_s, question.worthwhile_s);
  if ((is_known && least_time_s(whole) > too_slow_s) || !is_cuttable(question)) return best;
  const bool is_short = longest_bytes < 2 * kSmallestPieceBytes;
  std::int64_t work_left = question.max_work;
  std::int64_t last_work = whole.simulated->work;
  int in_vain = 0;
  std::vector<double> times_s;  // of pieces up to now, as long as all simulations ended
  bool ended_all = true;
  for (int pieces = 2; pieces <= kMaxPieces && in_vain < 2; pieces *= 2) {
    if (pieces > kAnySizePieces && longest_bytes / pieces < kSmallestPieceBytes) break;
    const auto piece_bytes = static_cast<std::int64_t>(std::ceil(longest_bytes / pieces));
    if (question.least_s(piece_bytes) > std::min(best.time_s, too_slow_s)) break;
    const double of_latest = last_work > kMuchWork ? kHardlyFaster : kNoFaster;
    if (ended_all && pieces > kManyPieces && has_turned(times_s, of_latest)) break;
    // Twice as many pieces are twice as many transfers.
    const std::int64_t work_in_time = is_time_up() ? 0 : pace.work_left();
    const std::int64_t work = std::min(work_left, work_in_time);
    std::optional<RunReport> cut;
    if (2 * last_work <= work) {
      pace.begin();
      cut = simulate(
          piece_bytes,
          {.time_s = std::min(best.time_s * (1 + kSameTime), question.at_most_s), .work = work});
      // One that was abandoned early tells nothing.
      if (cut->simulated->end == SimEnd::finished) pace.end(cut->simulated->work);
    }
    if (!cut || cut->simulated->end == SimEnd::too_costly) {
      if (!is_short) best.note = note_not_tried(piece_bytes, work_in_time < work_left);
      break;
    }
    last_work = cut->simulated->work;
    work_left -= last_work;
    ended_all = ended_all && cut->simulated->end == SimEnd::finished;
    times_s.push_back(cut->time_s);
    const bool is_faster = cut->simulated->end == SimEnd::finished && cut->time_s < best.time_s;
    const double reach_s = reached_s(best.time_s, cut->time_s, pieces);
    const bool is_out_of_reach = ended_all && is_faster && reach_s > question.worthwhile_s;
    const bool is_worth_it = is_faster && cut->time_s < kWorthwhile * best.time_s;
    // While all are slower than what is of interest, nobody knows whether they get better.
    const bool may_improve = std::isinf(best.time_s) && pieces < kPatience;
    in_vain = is_worth_it || pieces == 2 || may_improve ? 0 : in_vain + 1;
    // Once they pipeline, pieces cost more the more of them there are.
    if (is_faster) best = {piece_bytes, {}, cut->time_s, cut->algbw_gbps()};
    if ((!is_faster && !may_improve && pieces > kManyPieces) || is_out_of_reach) break;
  }
  if (is_short && best.chunk_bytes == 0 && best.note.empty()) best.note = why_not_cut(question);
  return best;
}

}  // namespace espalier
