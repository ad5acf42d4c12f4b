// SPDX-License-Identifier: Apache-2.0
#include "scenarios/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace espalier {

namespace {

Skipped skipped_of(const Query& query) {
  Skipped one;
  one.topology = query.topology;
  one.profile = query.profile;
  one.in_place = query.in_place;
  one.gpus = query.gpus;
  one.relays = query.relays;
  one.links = query.links;
  one.collective = to_string(query.collective);
  one.algorithm = query.algorithm;
  return one;
}

/// Of an outcome of either kind that has no result.
template <class Answer>
Skipped skipped_of(const Query& query, const Answer& outcome) {
  Skipped one = skipped_of(query);
  one.ranks = outcome.ranks;
  one.budget = outcome.budget;
  if (one.budget && query.size_bytes > 0) one.sizes = {query.size_bytes};
  one.is_refused = !outcome.skipped;
  if (!one.is_refused) {
    one.reason = *outcome.skipped;
    one.instead = outcome.instead;
  } else if (!outcome.problems.empty()) {
    const Diagnostic& first = outcome.problems.front();
    one.reason =
        fmt::format("the verifier refuses its program: {} [{}]", first.message, first.rule);
  }
  return one;
}

/// For what there was no time is told of all sizes together.
void add_once(std::vector<Skipped>& all, const Skipped& one) {
  const auto known = std::ranges::find_if(all, [&](Skipped other) {
    other.sizes = one.sizes;
    return other == one;
  });
  if (known == all.end()) {
    all.push_back(one);
    return;
  }
  for (const std::int64_t size_bytes : one.sizes) {
    if (std::ranges::count(known->sizes, size_bytes) == 0) known->sizes.push_back(size_bytes);
  }
}

template <class Outcomes>
void label_all(Outcomes& outcomes, std::vector<Skipped>& skipped, const AskedBy& asked_by) {
  for (auto& outcome : outcomes) outcome.asked_by = asked_by;
  for (Skipped& one : skipped) one.asked_by = asked_by;
}

}  // namespace

void Answers::add(const Skipped& one) { add_once(skipped, one); }

void Answers::add(Outcome outcome) {
  if (!outcome.ran()) {
    add(skipped_of(outcome.query, outcome));
    return;
  }
  outcome.program.reset();
  outcome.report.timeline.clear();
  outcomes.push_back(std::move(outcome));
}

void Answers::add_half(const Outcome& outcome) {
  Skipped one = skipped_of(outcome.query, outcome);
  one.is_half = true;
  add(one);
}

void Answers::add_neither(const Outcome& outcome) {
  Skipped one = skipped_of(outcome.query, outcome);
  one.in_place.reset();
  add(one);
}

void Answers::add(Answers more) {
  std::ranges::move(more.outcomes, std::back_inserter(outcomes));
  for (const Skipped& one : more.skipped) add(one);
}

void Answers::label(const AskedBy& asked_by) { label_all(outcomes, skipped, asked_by); }

const Outcome* Answers::best() const {
  const Outcome* best = nullptr;
  for (const Outcome& outcome : outcomes) {
    const auto order = [](const Outcome& one) {
      return std::pair(-one.query.size_bytes, one.report.time_s);
    };
    if (best == nullptr || order(outcome) < order(*best)) best = &outcome;
  }
  return best;
}

std::vector<std::string> Answers::refused() const {
  std::vector<std::string> names;
  for (const Skipped& one : skipped) {
    if (one.is_refused && std::ranges::count(names, one.algorithm) == 0) {
      names.push_back(one.algorithm);
    }
  }
  return names;
}

bool Answers::all_right() const {
  return std::ranges::none_of(skipped, &Skipped::is_refused) &&
         std::ranges::none_of(
             outcomes, [](const Outcome& outcome) { return outcome.report.wrong_elements() > 0; });
}

void TrainingAnswers::add(TrainingOutcome outcome) {
  if (!outcome.ran()) {
    Skipped one = skipped_of(outcome.query.exchange, outcome);
    one.collective = to_string(Collective::allreduce);
    one.in_place.reset();
    one.model = outcome.query.model->name;
    add_once(skipped, one);
    return;
  }
  outcome.iteration = {};
  outcome.report.timeline.clear();
  outcomes.push_back(std::move(outcome));
}

void TrainingAnswers::label(const AskedBy& asked_by) { label_all(outcomes, skipped, asked_by); }

const TrainingOutcome* TrainingAnswers::best() const {
  const auto best = std::ranges::max_element(outcomes, {}, [](const TrainingOutcome& outcome) {
    return std::pair(outcome.ranks, outcome.samples_per_s());
  });
  return best == outcomes.end() ? nullptr : &*best;
}

}  // namespace espalier
